//! Copies the selected rows of one column out of its chunks.
//!
//! Three selections: single rows (by Arrow's own `take` and `interleave`), rows repeated as often
//! as their slices are long, and contiguous slices. The last two copy fixed-width values at memory
//! speed; other types go through Arrow's growable arrays.

use std::cell::OnceCell;
use std::ops::Range;

use arrow_array::{Array, ArrayRef, UInt32Array, make_array, new_null_array};
use arrow_buffer::{ArrowNativeType, BooleanBufferBuilder, Buffer, NullBuffer, ScalarBuffer, i256};
use arrow_data::ArrayData;
use arrow_data::transform::MutableArrayData;
use arrow_schema::{ArrowError, DataType, Field};
use arrow_select::interleave::interleave;
use arrow_select::take::take;

use crate::table::{NO_ROW, Table};
use crate::{Error, Result};

/// Which rows of a table, and how often.
pub(super) enum Selection<'a> {
    /// These rows, in this order.
    Rows(Picked<'a>),
    /// `rows[i]` as often as `slices[i]` is long.
    Repeated { rows: &'a [u32], slices: &'a [Range<u32>] },
    /// These stretches of rows.
    Slices(&'a [Range<u32>]),
}

/// Single rows, and where they lie, found out once for all columns of their table.
pub(super) struct Picked<'a> {
    pub(super) rows: &'a [u32],
    places: OnceCell<Vec<(usize, usize)>>,
}

impl<'a> Picked<'a> {
    pub(super) fn new(rows: &'a [u32]) -> Self {
        Self { rows, places: OnceCell::new() }
    }

    /// Batch and row in it; behind the last batch for a row that is not there.
    fn places(&self, table: &Table) -> &[(usize, usize)] {
        self.places.get_or_init(|| {
            let nowhere = (table.batches().len(), 0);
            let place = |&row: &u32| if row == NO_ROW { nowhere } else { table.locate(row) };
            self.rows.iter().map(place).collect()
        })
    }
}

/// The selected values of the column that `chunks` hold; `len` is how many there are.
pub(super) fn gather(
    field: &Field,
    chunks: &[ArrayRef],
    table: &Table,
    selection: &Selection,
    len: usize,
) -> Result<ArrayRef> {
    match selection {
        Selection::Rows(rows) => gather_rows(field, chunks, table, rows),
        Selection::Repeated { rows, slices } => {
            if let Some(array) = repeat_fixed_width(field, chunks, table, rows, slices, len) {
                return array;
            }
            let mut repeated = Vec::with_capacity(len);
            for (&row, slice) in rows.iter().zip(*slices) {
                repeated.extend(std::iter::repeat_n(row, slice.len()));
            }
            gather_rows(field, chunks, table, &Picked::new(&repeated))
        }
        Selection::Slices(slices) => match copy_fixed_width(field, chunks, table, slices, len) {
            Some(array) => array,
            None => copy_growing(field, chunks, table, slices, len),
        },
    }
}

fn gather_rows(
    field: &Field,
    chunks: &[ArrayRef],
    table: &Table,
    picked: &Picked,
) -> Result<ArrayRef> {
    let padded = picked.rows.contains(&NO_ROW);
    match chunks {
        [] => Ok(new_null_array(field.data_type(), picked.rows.len())),
        // `take` overlooks null indices where nulls are kept in the values below.
        [chunk] if !(padded && keeps_nulls_below(field.data_type())) => {
            let rows = picked.rows.iter();
            let nulls = padded.then(|| NullBuffer::from_iter(rows.map(|&row| row != NO_ROW)));
            let indices = UInt32Array::new(ScalarBuffer::from(picked.rows.to_vec()), nulls);
            Ok(take(chunk, &indices, None)?)
        }
        _ => {
            let null = new_null_array(field.data_type(), 1);
            let mut arrays: Vec<&dyn Array> = chunks.iter().map(AsRef::as_ref).collect();
            arrays.push(&null);
            interleave(&arrays, picked.places(table))
                .map_err(|error| dictionary_overflow(field, error))
        }
    }
}

fn keeps_nulls_below(data_type: &DataType) -> bool {
    match data_type {
        DataType::RunEndEncoded(_, _) | DataType::Union(_, _) => true,
        DataType::Struct(fields) => fields.iter().any(|f| keeps_nulls_below(f.data_type())),
        _ => false,
    }
}

/// Batches with dictionaries of their own may together hold more values than the keys can number.
fn dictionary_overflow(field: &Field, error: ArrowError) -> Error {
    if !matches!(error, ArrowError::DictionaryKeyOverflowError) {
        return error.into();
    }
    Error::invalid(format!(
        "column {:?} ({}) has a different dictionary in each batch, and together they hold more \
         values than its keys can number: cast it to wider keys or to its value type",
        field.name(),
        field.data_type()
    ))
}

/// Calls `$with::<T>(…)` for the integer type that is as wide as values of `$data_type`.
macro_rules! by_width {
    ($data_type:expr, $with:ident($($argument:expr),*)) => {
        match $data_type {
            // Structs inside: their alignment differs from that of integers of the same width.
            DataType::Interval(_) => None,
            other => match other.primitive_width() {
                Some(1) => Some($with::<i8>($($argument),*)),
                Some(2) => Some($with::<i16>($($argument),*)),
                Some(4) => Some($with::<i32>($($argument),*)),
                Some(8) => Some($with::<i64>($($argument),*)),
                Some(16) => Some($with::<i128>($($argument),*)),
                Some(32) => Some($with::<i256>($($argument),*)),
                _ => None,
            },
        }
    };
}

fn repeat_fixed_width(
    field: &Field,
    chunks: &[ArrayRef],
    table: &Table,
    rows: &[u32],
    slices: &[Range<u32>],
    len: usize,
) -> Option<Result<ArrayRef>> {
    by_width!(field.data_type(), repeat_values(field, chunks, table, rows, slices, len))
}

fn repeat_values<T: ArrowNativeType>(
    field: &Field,
    chunks: &[ArrayRef],
    table: &Table,
    rows: &[u32],
    slices: &[Range<u32>],
    len: usize,
) -> Result<ArrayRef> {
    let parts: Vec<_> = chunks.iter().map(values::<T>).collect();
    let mut out = Vec::with_capacity(len);
    let mut valid = validity(chunks, len);
    for (&row, slice) in rows.iter().zip(slices) {
        let (chunk, place) = table.locate(row);
        out.extend(std::iter::repeat_n(parts[chunk][place], slice.len()));
        if let Some(valid) = &mut valid {
            valid.append_n(slice.len(), chunks[chunk].is_valid(place));
        }
    }
    finish(field, out, valid)
}

fn copy_fixed_width(
    field: &Field,
    chunks: &[ArrayRef],
    table: &Table,
    slices: &[Range<u32>],
    len: usize,
) -> Option<Result<ArrayRef>> {
    by_width!(field.data_type(), copy_values(field, chunks, table, slices, len))
}

fn copy_values<T: ArrowNativeType>(
    field: &Field,
    chunks: &[ArrayRef],
    table: &Table,
    slices: &[Range<u32>],
    len: usize,
) -> Result<ArrayRef> {
    let parts: Vec<_> = chunks.iter().map(values::<T>).collect();
    let mut out = Vec::with_capacity(len);
    let mut valid = validity(chunks, len);
    for (chunk, place) in stretches(table, slices) {
        out.extend_from_slice(&parts[chunk][place.clone()]);
        if let Some(valid) = &mut valid {
            match chunks[chunk].nulls() {
                Some(nulls) => valid.append_buffer(nulls.slice(place.start, place.len()).inner()),
                None => valid.append_n(place.len(), true),
            }
        }
    }
    finish(field, out, valid)
}

fn copy_growing(
    field: &Field,
    chunks: &[ArrayRef],
    table: &Table,
    slices: &[Range<u32>],
    len: usize,
) -> Result<ArrayRef> {
    let parts: Vec<ArrayData> = chunks.iter().map(|chunk| chunk.to_data()).collect();
    let mut out = MutableArrayData::new(parts.iter().collect(), false, len);
    for (chunk, place) in stretches(table, slices) {
        out.try_extend(chunk, place.start, place.end)
            .map_err(|error| dictionary_overflow(field, error))?;
    }
    Ok(make_array(out.freeze()))
}

/// `slices` cut where one batch ends and the next begins.
fn stretches<'a>(
    table: &'a Table,
    slices: &'a [Range<u32>],
) -> impl Iterator<Item = (usize, Range<usize>)> + 'a {
    slices.iter().filter(|slice| !slice.is_empty()).flat_map(move |slice| {
        let (mut chunk, mut place) = table.locate(slice.start);
        let mut rest = slice.len();
        std::iter::from_fn(move || {
            if rest == 0 {
                return None;
            }
            let end = table.batches()[chunk].num_rows().min(place + rest);
            let stretch = (chunk, place..end);
            rest -= end - place;
            (chunk, place) = (chunk + 1, 0);
            Some(stretch)
        })
    })
}

/// The values of a fixed-width array as integers of the same width.
fn values<T: ArrowNativeType>(array: &ArrayRef) -> ScalarBuffer<T> {
    let data = array.to_data();
    ScalarBuffer::new(data.buffers()[0].clone(), data.offset(), data.len())
}

fn validity(chunks: &[ArrayRef], len: usize) -> Option<BooleanBufferBuilder> {
    chunks.iter().any(|chunk| chunk.null_count() > 0).then(|| BooleanBufferBuilder::new(len))
}

fn finish<T: ArrowNativeType>(
    field: &Field,
    values: Vec<T>,
    valid: Option<BooleanBufferBuilder>,
) -> Result<ArrayRef> {
    let nulls = valid.map(|mut valid| NullBuffer::new(valid.finish()));
    let data = ArrayData::builder(field.data_type().clone())
        .len(values.len())
        .add_buffer(Buffer::from_vec(values))
        .nulls(nulls)
        .build()?;
    Ok(make_array(data))
}
