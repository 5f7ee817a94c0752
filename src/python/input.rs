//! Arrow data comes in: any object with `__arrow_c_stream__` or `__arrow_c_array__`, zero copy.
//!
//! The C interface carries no promise that offsets, lengths or UTF-8 are right, and Arrow's import
//! does not check; every array is validated here before a kernel may rely on it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{Array, RecordBatch, RecordBatchReader};
use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use pyo3_arrow::input::AnyRecordBatch;

use super::convert::schema_to_python;
use super::watch::run;
use crate::control::Control;
use crate::table::Table;
use crate::{Error, Result};

/// One input of a join: its schema at once, its rows when first needed, then held.
#[pyclass(frozen, module = "dovetail._native")]
pub(super) struct Input {
    label: String,
    pub(super) schema: SchemaRef,
    rows: Mutex<Rows>,
}

enum Rows {
    Unread(Box<dyn RecordBatchReader + Send>),
    Held(Arc<Table>),
    Failed(String),
}

#[pymethods]
impl Input {
    #[new]
    fn new(py: Python<'_>, data: AnyRecordBatch, label: String) -> PyResult<Self> {
        let reader = data.into_reader()?;
        let schema = reader.schema();
        let named = schema.fields().iter().map(|field| field.name());
        if let Some(name) = first_repeated(named) {
            let error = Error::invalid(format!("{label} input has two columns called {name:?}"));
            return Err(super::error::to_python(py, &error));
        }
        Ok(Self { label, schema, rows: Mutex::new(Rows::Unread(reader)) })
    }

    /// The column names, in order.
    #[getter]
    fn names(&self) -> Vec<&str> {
        self.schema.fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// The schema, as a pyarrow.Schema.
    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        schema_to_python(py, &self.schema)
    }

    /// Reads the rows now, so that the source is free again.
    fn read(&self, py: Python<'_>) -> PyResult<()> {
        run(py, None, |control| self.table(&control).map(drop))
    }
}

impl Input {
    /// The rows, read on first use.
    pub(super) fn table(&self, control: &Control) -> Result<Arc<Table>> {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let reader = match &mut *rows {
            Rows::Unread(reader) => reader,
            Rows::Held(table) => return Ok(Arc::clone(table)),
            Rows::Failed(message) => return Err(Error::invalid(message.clone())),
        };
        match self.read_all(reader.as_mut(), control) {
            Ok(table) => {
                let table = Arc::new(table);
                *rows = Rows::Held(Arc::clone(&table));
                Ok(table)
            }
            Err(error) => {
                // Part of a one-shot stream is gone: a second try would silently miss it.
                *rows = Rows::Failed(match &error {
                    Error::Cancelled => format!("reading the {} input was interrupted", self.label),
                    other => other.to_string(),
                });
                Err(error)
            }
        }
    }

    fn read_all(&self, reader: &mut dyn RecordBatchReader, control: &Control) -> Result<Table> {
        let mut batches = Vec::new();
        // Import panics on some malformed arrays instead of returning an error.
        while let Some(next) = catch_unwind(AssertUnwindSafe(|| reader.next()))
            .map_err(|_| self.malformed(&batches, "its buffers do not fit its schema"))?
        {
            control.tick()?;
            let batch = next.map_err(|error| self.malformed(&batches, &error.to_string()))?;
            for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
                column.to_data().validate_full().map_err(|error| {
                    let what = format!("column {:?} is malformed: {error}", field.name());
                    self.malformed(&batches, &what)
                })?;
            }
            batches.push(batch);
        }
        Table::new(&self.label, Arc::clone(&self.schema), batches)
    }

    fn malformed(&self, before: &[RecordBatch], what: &str) -> Error {
        let rows: usize = before.iter().map(RecordBatch::num_rows).sum();
        Error::invalid(format!("{} input failed after {rows} rows: {what}", self.label))
    }
}

fn first_repeated<'a>(names: impl Iterator<Item = &'a String>) -> Option<&'a String> {
    let mut seen = std::collections::HashSet::new();
    names.into_iter().find(|name| !seen.insert(*name))
}
