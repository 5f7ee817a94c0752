//! Columns brought into a form that arrow-ipc writes rightly and without what they do not use.
//!
//! Blocks are usually slices, or rows taken from a larger batch. arrow-ipc trims most columns to
//! the rows at hand, but not all:
//!
//! - views and dictionaries share the buffers of the whole column, which would be written again
//!   with every block;
//! - so do list views and dense unions, whose values it does not trim;
//! - a union inside a list or struct that is a slice is written from its first row: wrong rows;
//! - an empty run-end encoded array is written with a run end of 0, which cannot be read.
//!
//! Columns of these types are copied; all others pass through untouched.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::ByteViewType;
use arrow_array::{Array, ArrayRef, GenericByteViewArray, make_array};
use arrow_data::transform::MutableArrayData;
use arrow_schema::{ArrowError, DataType};
use arrow_select::dictionary::garbage_collect_any_dictionary;

/// An array equal to `array` that holds no more than its own values.
pub(super) fn self_contained(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match array.data_type() {
        DataType::Utf8View => Ok(compact_views(array, array.as_string_view())),
        DataType::BinaryView => Ok(compact_views(array, array.as_binary_view())),
        DataType::Dictionary(..) => compact_dictionary(array),
        nested if must_be_copied(nested) => copy_nested(array),
        _ => Ok(array.clone()),
    }
}

fn compact_views<T: ByteViewType>(array: &ArrayRef, views: &GenericByteViewArray<T>) -> ArrayRef {
    let held: usize = views.data_buffers().iter().map(|buffer| buffer.len()).sum();
    // Views that share bytes may use more than is held, and would only grow.
    if held > views.total_buffer_bytes_used() { Arc::new(views.gc()) } else { array.clone() }
}

fn compact_dictionary(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    // Looking for unused values costs a pass over them, so only where some must be unused.
    let array = if array.as_any_dictionary().values().len() > array.len() {
        garbage_collect_any_dictionary(array.as_any_dictionary())?
    } else {
        array.clone()
    };
    let values = array.as_any_dictionary().values();
    if must_be_copied(values.data_type()) {
        Ok(array.as_any_dictionary().with_values(self_contained(values)?))
    } else {
        Ok(array)
    }
}

/// Copies the rows, which trims the children, then does the same with the children.
fn copy_nested(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let data = array.to_data();
    let mut copy = MutableArrayData::new(vec![&data], false, data.len());
    copy.try_extend(0, 0, data.len())?;
    let copy = copy.freeze();
    let children = copy
        .child_data()
        .iter()
        .map(|child| Ok(self_contained(&make_array(child.clone()))?.to_data()))
        .collect::<Result<_, ArrowError>>()?;
    Ok(make_array(copy.into_builder().child_data(children).build()?))
}

/// Whether an array of this type, or something inside it, is one of those above.
fn must_be_copied(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8View
        | DataType::BinaryView
        | DataType::Dictionary(..)
        | DataType::Union(..)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::RunEndEncoded(..) => true,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => must_be_copied(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| must_be_copied(field.data_type())),
        _ => false,
    }
}
