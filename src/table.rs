//! One input held in memory: its batches as they arrived, rows numbered through.
//!
//! Nothing is copied: a [`Table`] keeps the caller's buffers and knows where each batch starts.
//! Rows are numbered by `u32`; [`NO_ROW`] stands for the missing partner of an unmatched row.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;

use crate::key::Column;
use crate::{Error, Result};

/// The partner of a row that has none.
pub const NO_ROW: u32 = u32::MAX;

/// Batches of one schema with rows numbered from 0.
#[derive(Debug)]
pub struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    /// Number of the first row of each batch, and behind them the number of rows.
    starts: Vec<u32>,
}

impl Table {
    /// A table over `batches`, which all have `schema`; `label` names the input in errors.
    pub fn new(label: &str, schema: SchemaRef, batches: Vec<RecordBatch>) -> Result<Self> {
        let batches: Vec<_> = batches.into_iter().filter(|batch| batch.num_rows() > 0).collect();
        let mut starts = vec![0];
        let mut rows = 0_u64;
        for batch in &batches {
            rows += batch.num_rows() as u64;
            if rows >= u64::from(NO_ROW) {
                return Err(Error::invalid(format!(
                    "{label} input has more than {} rows, the most one operator can number",
                    NO_ROW - 1
                )));
            }
            starts.push(rows as u32);
        }
        Ok(Self { schema, batches, starts })
    }

    /// The schema of every batch.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How many rows there are.
    pub fn num_rows(&self) -> usize {
        self.starts[self.batches.len()] as usize
    }

    /// The batches, none of them empty.
    pub fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    /// The parts of column `index`, one per batch.
    pub fn chunks(&self, index: usize) -> Vec<ArrayRef> {
        self.batches.iter().map(|batch| Arc::clone(batch.column(index))).collect()
    }

    /// Column `index` for the key encoder, called `label` in errors.
    pub fn key_column(&self, index: usize, label: String) -> Column {
        let data_type = self.schema.field(index).data_type().clone();
        Column::new(label, data_type, self.chunks(index))
    }

    /// Which batch holds `row`, and where in it.
    pub fn locate(&self, row: u32) -> (usize, usize) {
        let batch = self.starts.partition_point(|&start| start <= row) - 1;
        (batch, (row - self.starts[batch]) as usize)
    }

    /// Bytes of the buffers the table keeps alive.
    pub fn bytes(&self) -> usize {
        let arrays = self.batches.iter().flat_map(|batch| batch.columns());
        arrays.map(|array| array.get_buffer_memory_size()).sum()
    }
}
