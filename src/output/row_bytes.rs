//! How many bytes a row of an input adds to an output batch, exactly, without looking twice.
//!
//! Fixed-width columns add a constant. Columns of varying width (strings, lists) share one array
//! of running totals, so that a range of rows costs two look-ups.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait};
use arrow_schema::DataType;

use crate::table::{NO_ROW, Table};

/// Sizes of the rows of one table, over the columns that come out.
pub(super) struct RowBytes {
    fixed: u64,
    /// Bytes of varying width before each row, and in all; empty when there are none.
    running: Vec<u64>,
}

impl RowBytes {
    pub(super) fn new(table: &Table, columns: impl Iterator<Item = usize>) -> Self {
        let mut fixed = 0;
        let mut running = Vec::new();
        for index in columns {
            if let Some(width) = fixed_width(table.schema().field(index).data_type()) {
                fixed += width;
                continue;
            }
            running.resize(table.num_rows() + 1, 0);
            let (mut row, mut total) = (0, 0);
            for chunk in table.chunks(index) {
                let ends = totals(&chunk);
                for end in &ends {
                    row += 1;
                    running[row] += total + end;
                }
                total += ends.last().copied().unwrap_or(0);
            }
        }
        Self { fixed, running }
    }

    /// Bytes of `row`; a padded row counts as a fixed-width one.
    pub(super) fn of(&self, row: u32) -> u64 {
        if row == NO_ROW { self.fixed } else { self.of_range(&(row..row + 1)) }
    }

    /// Bytes of consecutive rows.
    pub(super) fn of_range(&self, rows: &Range<u32>) -> u64 {
        let fixed = self.fixed * rows.len() as u64;
        if self.running.is_empty() {
            return fixed;
        }
        fixed + self.running[rows.end as usize] - self.running[rows.start as usize]
    }

    /// Bytes of every row, where all have the same.
    pub(super) fn fixed(&self) -> Option<u64> {
        self.running.is_empty().then_some(self.fixed)
    }

    /// Bytes of an average row.
    pub(super) fn average(&self) -> u64 {
        let rows = self.running.len().saturating_sub(1).max(1) as u64;
        self.fixed + self.running.last().map_or(0, |total| total.div_ceil(rows))
    }
}

/// Bytes of one value, where all values of the type have the same; bits count as bytes.
fn fixed_width(data_type: &DataType) -> Option<u64> {
    use DataType::*;
    match data_type {
        Null => Some(0),
        Boolean => Some(1),
        FixedSizeBinary(width) => Some(*width as u64),
        // Views and dictionaries share their values with the input.
        Utf8View | BinaryView => Some(16),
        Dictionary(keys, _) => keys.primitive_width().map(|width| width as u64),
        Struct(fields) => fields.iter().map(|field| fixed_width(field.data_type())).sum(),
        FixedSizeList(field, size) => Some(fixed_width(field.data_type())? * *size as u64),
        other => other.primitive_width().map(|width| width as u64),
    }
}

/// Bytes up to and including each value of `array`.
fn totals(array: &ArrayRef) -> Vec<u64> {
    use DataType::*;
    if let Some(width) = fixed_width(array.data_type()) {
        return (1..=array.len() as u64).map(|count| count * width).collect();
    }
    match array.data_type() {
        Utf8 => offset_totals(array.as_string::<i32>().offsets(), |byte| byte as u64),
        LargeUtf8 => offset_totals(array.as_string::<i64>().offsets(), |byte| byte as u64),
        Binary => offset_totals(array.as_binary::<i32>().offsets(), |byte| byte as u64),
        LargeBinary => offset_totals(array.as_binary::<i64>().offsets(), |byte| byte as u64),
        List(_) => list_totals(array.as_list::<i32>().offsets(), array.as_list::<i32>().values()),
        LargeList(_) => {
            list_totals(array.as_list::<i64>().offsets(), array.as_list::<i64>().values())
        }
        Map(_, _) => {
            let entries: ArrayRef = std::sync::Arc::new(array.as_map().entries().clone());
            list_totals(array.as_map().offsets(), &entries)
        }
        Struct(_) => {
            let mut sums = vec![0; array.len()];
            for column in array.as_struct().columns() {
                for (sum, total) in sums.iter_mut().zip(totals(column)) {
                    *sum += total;
                }
            }
            sums
        }
        FixedSizeList(_, size) => {
            let values = totals(array.as_fixed_size_list().values());
            let total = |end: usize| if end == 0 { 0 } else { values[end - 1] };
            (1..=array.len()).map(|row| total(row * *size as usize)).collect()
        }
        // Rare layouts (unions, list views, run ends): an equal share of their buffers.
        _ => {
            let width = array.get_buffer_memory_size() as u64 / (array.len() as u64).max(1);
            (1..=array.len() as u64).map(|count| count * width).collect()
        }
    }
}

fn offset_totals<O: OffsetSizeTrait>(offsets: &[O], bytes_at: impl Fn(usize) -> u64) -> Vec<u64> {
    let first = bytes_at(offsets[0].as_usize());
    let ends = offsets[1..].iter().enumerate();
    let width = size_of::<O>() as u64;
    ends.map(|(row, end)| bytes_at(end.as_usize()) - first + (row as u64 + 1) * width).collect()
}

fn list_totals<O: OffsetSizeTrait>(offsets: &[O], values: &ArrayRef) -> Vec<u64> {
    // Only what the lists hold: a slice of a long array shares all of its values.
    let (first, last) = (offsets[0].as_usize(), offsets[offsets.len() - 1].as_usize());
    let sizes = totals(&values.slice(first, last - first));
    offset_totals(offsets, |end| if end == first { 0 } else { sizes[end - first - 1] })
}
