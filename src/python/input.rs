//! Arrow data comes in: any object with `__arrow_c_stream__` or `__arrow_c_array__`, zero copy.
//!
//! The C interface carries no promise that offsets, lengths or UTF-8 are right, and Arrow's import
//! does not check; every array is validated here before a kernel may rely on it.

use std::collections::HashSet;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3_arrow::ffi::ArrayReader;
use pyo3_arrow::input::AnyArray;

use super::convert::schema_to_python;
use super::error::to_python;
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
    /// Still to be read, from where an interrupted call left off.
    Unread(Box<dyn ArrayReader + Send>, Vec<RecordBatch>),
    Held(Arc<Table>),
    Failed(String),
}

#[pymethods]
impl Input {
    #[new]
    fn new(py: Python<'_>, data: AnyArray, label: String) -> PyResult<Self> {
        let reader = data.into_reader()?;
        let schema = Arc::new(table_schema(py, &label, reader.field().data_type())?);
        Ok(Self { label, schema, rows: Mutex::new(Rows::Unread(reader, Vec::new())) })
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
        let read = match &mut *rows {
            Rows::Unread(reader, batches) => self.read_all(reader.as_mut(), batches, control),
            Rows::Held(table) => return Ok(Arc::clone(table)),
            Rows::Failed(message) => return Err(Error::invalid(message.clone())),
        };
        match &read {
            Ok(table) => *rows = Rows::Held(Arc::clone(table)),
            // What was read is kept: the next call goes on from there.
            Err(Error::Cancelled) => {}
            // Part of a one-shot stream is gone: a second try would silently miss it.
            Err(error) => *rows = Rows::Failed(error.to_string()),
        }
        read
    }

    fn read_all(
        &self,
        reader: &mut dyn ArrayReader,
        batches: &mut Vec<RecordBatch>,
        control: &Control,
    ) -> Result<Arc<Table>> {
        loop {
            control.tick()?;
            // Import panics on some malformed arrays instead of returning an error.
            let next = catch_unwind(AssertUnwindSafe(|| reader.next()))
                .map_err(|_| self.failed(batches, "its buffers do not fit its schema"))?;
            match next {
                Some(Ok(array)) => {
                    let batch = self.checked(&array).map_err(|what| self.failed(batches, &what))?;
                    batches.push(batch);
                }
                // A Python generator was interrupted; only the text of that comes through.
                Some(Err(error)) if error.to_string().trim_end().ends_with("KeyboardInterrupt") => {
                    return Err(Error::Cancelled);
                }
                Some(Err(error)) => return Err(self.failed(batches, &error.to_string())),
                None => break,
            }
        }
        let schema = Arc::clone(&self.schema);
        Table::new(&self.label, schema, mem::take(batches)).map(Arc::new)
    }

    /// The batch that `array` holds, once everything in it is known to be well formed.
    fn checked(&self, array: &ArrayRef) -> Result<RecordBatch, String> {
        let rows = array.len();
        if rows > 0 && array.null_count() > 0 {
            return Err(format!("{} of its rows are null as a whole", array.null_count()));
        }
        let columns = self.schema.fields().iter().zip(array.as_struct().columns());
        let columns = columns.map(|(field, column)| {
            let data = well_formed(column.to_data());
            data.map(make_array)
                .map_err(|error| format!("column {:?} is malformed: {error}", field.name()))
        });
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .map_err(|error| error.to_string())
    }

    fn failed(&self, before: &[RecordBatch], what: &str) -> Error {
        let rows: usize = before.iter().map(RecordBatch::num_rows).sum();
        Error::invalid(format!("{} input failed after {rows} rows: {what}", self.label))
    }
}

/// The columns of a table that comes as an array of this type.
fn table_schema(py: Python<'_>, label: &str, data_type: &DataType) -> PyResult<Schema> {
    let DataType::Struct(fields) = data_type else {
        return Err(PyTypeError::new_err(format!("it is a single column of type {data_type}")));
    };
    let mut seen = HashSet::new();
    if let Some(field) = fields.iter().find(|field| !seen.insert(field.name())) {
        let what = format!("{label} input has two columns called {:?}", field.name());
        return Err(to_python(py, &Error::invalid(what)));
    }
    Ok(Schema::new(fields.clone()))
}

/// `data` if its offsets, lengths and text are what its type promises.
///
/// Arrays without values may still point into buffers that are not there any more (an empty slice
/// of strings does): allowed, but Arrow's own check refuses them, so they are made anew first.
fn well_formed(data: ArrayData) -> Result<ArrayData, ArrowError> {
    if data.is_empty() {
        return Ok(ArrayData::new_empty(data.data_type()));
    }
    if !data.child_data().iter().any(has_empty) {
        data.validate_full()?;
        return Ok(data);
    }
    let children = data.child_data().iter().cloned().map(well_formed).collect::<Result<_, _>>()?;
    data.into_builder().child_data(children).build()
}

fn has_empty(data: &ArrayData) -> bool {
    data.is_empty() || data.child_data().iter().any(has_empty)
}
