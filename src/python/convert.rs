//! Arrow data goes out: schemas, batches and streams as pyarrow objects or PyCapsules.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StructArray};
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::ffi::{ArrayIterator, to_stream_pycapsule};
use pyo3_arrow::{PyRecordBatch, PySchema};

use crate::{Error, Result};

/// As a pyarrow.Schema.
pub(super) fn schema_to_python<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
) -> PyResult<Bound<'py, PyAny>> {
    PySchema::new(Arc::clone(schema)).into_pyarrow(py)
}

/// As a pyarrow.RecordBatch.
pub(super) fn batch_to_python(py: Python<'_>, batch: RecordBatch) -> PyResult<Bound<'_, PyAny>> {
    PyRecordBatch::new(batch).into_pyarrow(py)
}

/// As an `arrow_array_stream` capsule. The stream runs on whichever thread pulls it, with no GIL.
pub(super) fn stream_capsule<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch>> + Send + 'static,
    requested_schema: Option<Bound<'py, PyCapsule>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let field = Field::new_struct("", schema.fields().clone(), false);
    debug_assert!(matches!(field.data_type(), DataType::Struct(_)));
    let arrays = batches.map(|batch| match batch {
        Ok(batch) => Ok(Arc::new(StructArray::from(batch)) as ArrayRef),
        Err(error) => Err(to_arrow(&error)),
    });
    let reader = Box::new(ArrayIterator::new(arrays, Arc::new(field)));
    Ok(to_stream_pycapsule(py, reader, requested_schema)?)
}

/// The C interface carries an error number and a C string, nothing else.
fn to_arrow(error: &Error) -> ArrowError {
    let text = error.to_string().replace('\0', "\\0");
    match error {
        Error::Unsupported(_) => ArrowError::NotYetImplemented(text),
        Error::Budget { .. } => ArrowError::MemoryError(text),
        Error::Spill { .. } => ArrowError::IoError(text, std::io::Error::other("spill")),
        _ => ArrowError::ComputeError(text),
    }
}
