//! Columns of one table by row number, for output that is put together of several tables' rows.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef};

use super::gather::{Picked, Selection, gather};
use super::row_bytes::RowBytes;
use crate::Result;
use crate::table::{NO_ROW, Table};

/// Some columns of a table.
pub(crate) struct Picker {
    table: Arc<Table>,
    /// By number, each in its chunks.
    columns: Vec<(usize, Vec<ArrayRef>)>,
    row_bytes: RowBytes,
}

impl Picker {
    /// The columns of `table` with these numbers.
    pub(crate) fn new(table: Arc<Table>, columns: impl Iterator<Item = usize> + Clone) -> Self {
        let row_bytes = RowBytes::new(&table, columns.clone());
        let columns = columns.map(|index| (index, table.chunks(index))).collect();
        Self { table, columns, row_bytes }
    }

    /// Bytes of `row` in these columns; [`NO_ROW`] is a row of nulls.
    pub(crate) fn bytes(&self, row: u32) -> u64 {
        self.row_bytes.of(row)
    }

    /// Bytes of an average row in these columns.
    pub(crate) fn average_bytes(&self) -> u64 {
        self.row_bytes.average()
    }

    /// The columns of `rows`; [`NO_ROW`] gives nulls. Consecutive rows of one batch are not copied.
    pub(crate) fn pick(&self, rows: &[u32]) -> Result<Vec<ArrayRef>> {
        let consecutive = rows.windows(2).all(|pair| pair[1].wrapping_sub(pair[0]) == 1);
        let first = rows.first().copied().filter(|&row| row != NO_ROW && consecutive);
        let Some(first) = first else {
            return self.gather(&Selection::Rows(Picked::new(rows)), rows.len());
        };
        let (chunk, begin) = self.table.locate(first);
        if begin + rows.len() <= self.table.batches()[chunk].num_rows() {
            let slice = |(_, chunks): &(_, Vec<ArrayRef>)| chunks[chunk].slice(begin, rows.len());
            return Ok(self.columns.iter().map(slice).collect());
        }
        let all = first..first + rows.len() as u32;
        let slices = [all];
        self.gather(&Selection::Slices(&slices), rows.len())
    }

    fn gather(&self, selection: &Selection, len: usize) -> Result<Vec<ArrayRef>> {
        let column = |(index, chunks): &(usize, Vec<ArrayRef>)| {
            gather(self.table.schema().field(*index), chunks, &self.table, selection, len)
        };
        self.columns.iter().map(column).collect()
    }
}
