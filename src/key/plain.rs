//! Looks through dictionaries and run-end encoding.
//!
//! A chunk becomes plain values and, where it was encoded, the position of each row's value. So
//! encoders see plain arrays only, and work once per dictionary entry or run instead of per row.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type, RunEndIndexType};
use arrow_array::{
    Array, ArrayRef, BinaryArray, LargeBinaryArray, LargeStringArray, RunArray, StringArray,
};
use arrow_buffer::{ArrowNativeType, NullBuffer, NullBufferBuilder};
use arrow_schema::DataType;
use arrow_select::take::take;

use super::{Column, unexpected};
use crate::error::{Error, Result};

/// A column whose chunks are plain.
pub(super) struct PlainColumn {
    chunks: Vec<Chunk>,
}

struct Chunk {
    /// Never a dictionary or run-end encoded; strings as their bytes.
    values: ArrayRef,
    /// Where in `values` each row is; `None` if row i is value i. Arbitrary for null rows.
    rows: Option<Vec<usize>>,
    /// Nulls of the rows, whether of a dictionary's keys or of its values.
    nulls: Option<NullBuffer>,
}

impl PlainColumn {
    pub fn new(column: &Column) -> Result<Self> {
        let chunks = column.chunks.iter().map(|chunk| {
            if !chunk.data_type().equals_datatype(&column.data_type) {
                return Err(Error::invalid(format!(
                    "{} has a chunk of type {}; expected {}",
                    column.label,
                    chunk.data_type(),
                    column.data_type
                )));
            }
            Chunk::new(chunk)
        });
        Ok(Self { chunks: chunks.collect::<Result<_>>()? })
    }

    pub fn len(&self) -> usize {
        self.chunks.iter().map(Chunk::len).sum()
    }

    /// Nulls of all rows; `None` if there are none.
    pub fn nulls(&self) -> Option<NullBuffer> {
        let mut builder = NullBufferBuilder::new(self.len());
        for chunk in &self.chunks {
            match &chunk.nulls {
                Some(nulls) => builder.append_buffer(nulls),
                None => builder.append_n_non_nulls(chunk.len()),
            }
        }
        builder.finish().filter(|nulls| nulls.null_count() > 0)
    }

    /// Whether rows share values, so that there may be values which no row refers to.
    pub fn is_indirect(&self) -> bool {
        self.chunks.iter().any(|chunk| chunk.rows.is_some())
    }

    /// The same rows with other values, as `convert` makes them.
    pub fn map_values(&self, convert: impl Fn(&dyn Array) -> Result<ArrayRef>) -> Result<Self> {
        let chunks = self.chunks.iter().map(|chunk| {
            let values = match chunk.values.data_type() {
                DataType::Null => chunk.values.clone(),
                _ => convert(&chunk.values)?,
            };
            Ok(Chunk { values, rows: chunk.rows.clone(), nulls: chunk.nulls.clone() })
        });
        Ok(Self { chunks: chunks.collect::<Result<_>>()? })
    }

    fn leaves(&self) -> impl Iterator<Item = &dyn Array> {
        let leaves = self.chunks.iter().map(|chunk| chunk.values.as_ref());
        leaves.filter(|values| *values.data_type() != DataType::Null)
    }
}

/// The plain arrays of all columns, those of the `Null` type left out.
pub(super) fn leaves(columns: &[PlainColumn]) -> impl Iterator<Item = &dyn Array> {
    columns.iter().flat_map(PlainColumn::leaves)
}

/// One result per row and column. `append` adds one result per value of a plain array, which is
/// never of the `Null` type.
pub(super) fn gather<'a, K: Copy + Default>(
    columns: &'a [PlainColumn],
    mut append: impl FnMut(&'a dyn Array, &mut Vec<K>) -> Result<()>,
) -> Result<Vec<Vec<K>>> {
    let mut scratch = Vec::new();
    let mut gather_column = |column: &'a PlainColumn| {
        let mut out = Vec::with_capacity(column.len());
        for chunk in &column.chunks {
            if *chunk.values.data_type() == DataType::Null {
                out.resize(out.len() + chunk.len(), K::default());
                continue;
            }
            match &chunk.rows {
                None => append(&chunk.values, &mut out)?,
                Some(rows) => {
                    scratch.clear();
                    append(&chunk.values, &mut scratch)?;
                    // Null rows may point nowhere, above all into an empty dictionary.
                    out.extend(rows.iter().map(|&at| scratch.get(at).copied().unwrap_or_default()));
                }
            }
        }
        Ok(out)
    };
    columns.iter().map(&mut gather_column).collect()
}

impl Chunk {
    fn new(array: &ArrayRef) -> Result<Self> {
        let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        let (values, rows) = look_through(array)?;
        Ok(Self { values: string_bytes(values), rows, nulls })
    }

    fn len(&self) -> usize {
        self.rows.as_ref().map_or(self.values.len(), Vec::len)
    }
}

fn look_through(array: &ArrayRef) -> Result<(ArrayRef, Option<Vec<usize>>)> {
    let (values, rows) = match array.data_type() {
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let values = dictionary.values();
            // Small batches often share one large dictionary: work must not grow beyond the rows.
            if values.len() > array.len() && takes_well(values.data_type()) {
                return look_through(&take(values, dictionary.keys(), None)?);
            }
            let rows = match values.is_empty() {
                true => vec![0; array.len()],
                false => dictionary.normalized_keys(),
            };
            (values.clone(), rows)
        }
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => runs(array.as_run::<Int16Type>()),
            DataType::Int32 => runs(array.as_run::<Int32Type>()),
            DataType::Int64 => runs(array.as_run::<Int64Type>()),
            _ => return Err(unexpected(array.data_type())),
        },
        _ => return Ok((array.clone(), None)),
    };
    // Dictionaries and runs may be nested.
    let (values, inner) = look_through(&values)?;
    let rows = match inner {
        None => rows,
        Some(inner) => rows.iter().map(|&at| inner.get(at).copied().unwrap_or_default()).collect(),
    };
    Ok((values, Some(rows)))
}

/// Arrow's `take` does not look at nulls among the indices of runs, and loses the number of rows
/// of binaries without width.
fn takes_well(data_type: &DataType) -> bool {
    !matches!(data_type, DataType::RunEndEncoded(..) | DataType::FixedSizeBinary(0))
}

fn runs<R: RunEndIndexType>(array: &RunArray<R>) -> (ArrayRef, Vec<usize>) {
    let mut rows = Vec::with_capacity(array.len());
    for (run, end) in array.run_ends().sliced_values().enumerate() {
        rows.resize(end.as_usize(), run);
    }
    (array.values_slice(), rows)
}

/// Strings compare by their bytes, so they are taken as such; this copies nothing.
fn string_bytes(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8 => {
            let strings: &StringArray = array.as_string();
            Arc::new(BinaryArray::from(strings.clone()))
        }
        DataType::LargeUtf8 => {
            let strings: &LargeStringArray = array.as_string();
            Arc::new(LargeBinaryArray::from(strings.clone()))
        }
        DataType::Utf8View => Arc::new(array.as_string_view().clone().to_binary_view()),
        _ => array,
    }
}
