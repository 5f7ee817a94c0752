//! Arrow data comes in: any object with `__arrow_c_stream__` or `__arrow_c_array__`, zero copy.
//!
//! The C interface carries no promise that offsets, lengths or UTF-8 are right, and Arrow's import
//! does not check; every array is validated here before a kernel may rely on it.

use std::collections::HashSet;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, RecordBatch, RecordBatchOptions, make_array};
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
use crate::error::without_panic;
use crate::once::Once;
use crate::table::Table;
use crate::{Error, Result};

/// One input of a join: its schema at once, its rows when first needed, then held.
#[pyclass(frozen, module = "dovetail._native")]
pub(super) struct Input {
    label: String,
    pub(super) schema: SchemaRef,
    rows: Once<Arc<Table>>,
    source: Mutex<Source>,
}

enum Source {
    /// Still to be read, from where an interrupted call left off.
    Open(Box<dyn ArrayReader + Send>, Vec<RecordBatch>),
    /// Part of a one-shot stream is gone: a second try would silently miss it.
    Broken(String),
    Read,
}

#[pymethods]
impl Input {
    #[new]
    fn new(py: Python<'_>, data: AnyArray, label: String) -> PyResult<Self> {
        let reader = data.into_reader()?;
        let schema = Arc::new(table_schema(py, &label, reader.field().data_type())?);
        let source = Mutex::new(Source::Open(reader, Vec::new()));
        Ok(Self { label, schema, rows: Once::new(), source })
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
        self.rows.get(control, || {
            // Only the one who makes the rows comes here, so nobody waits for this lock.
            let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
            let mut seen = HashSet::new();
            loop {
                let (reader, batches) = match &mut *source {
                    Source::Open(reader, batches) => (reader, batches),
                    Source::Broken(what) => return Err(Error::invalid(what.clone())),
                    Source::Read => return Err(Error::internal("rows were read, but not held")),
                };
                // What was read so far stays: the next call goes on from there.
                control.tick()?;
                let next = without_panic(|| Ok(self.next_batch(reader.as_mut(), &mut seen)));
                let error = match next {
                    Ok(Ok(Some(batch))) => {
                        batches.push(batch);
                        continue;
                    }
                    Ok(Ok(None)) => break,
                    Ok(Err(what)) => self.failed(batches, &what),
                    // Import panics on some malformed arrays instead of returning an error.
                    Err(_) => self.failed(batches, "its buffers do not fit its schema"),
                };
                let what = error.to_string();
                // Of an exception in a Python generator only the traceback's text comes through.
                let last = what.trim_end().rsplit('\n').next().unwrap_or_default();
                let interrupted = last.split(':').next() == Some("KeyboardInterrupt");
                *source = Source::Broken(what);
                return Err(if interrupted { Error::Cancelled } else { error });
            }
            let Source::Open(_, batches) = mem::replace(&mut *source, Source::Read) else {
                return Err(Error::internal("an open input was read, and is not open"));
            };
            Table::new(&self.label, Arc::clone(&self.schema), batches).map(Arc::new)
        })
    }

    fn next_batch(
        &self,
        reader: &mut dyn ArrayReader,
        seen: &mut HashSet<Seen>,
    ) -> Result<Option<RecordBatch>, String> {
        let Some(array) = reader.next() else { return Ok(None) };
        self.checked(&array.map_err(|error| error.to_string())?, seen).map(Some)
    }

    /// The batch that `array` holds, once everything in it is known to be well formed.
    fn checked(&self, array: &ArrayRef, seen: &mut HashSet<Seen>) -> Result<RecordBatch, String> {
        let rows = array.len();
        if rows > 0 && array.null_count() > 0 {
            return Err(format!("{} of its rows are null as a whole", array.null_count()));
        }
        let columns = self.schema.fields().iter().zip(array.as_struct().columns());
        let columns = columns.map(|(field, column)| {
            let data = well_formed(column.to_data(), seen);
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

/// The values of a dictionary that were checked: where they lie and how many.
type Seen = (*const u8, usize, usize);

/// `data` if its offsets, lengths and text are what its type promises.
///
/// Only what `data` itself refers to is looked at: many slices of one array cost as much as the
/// array. Arrays without values may point into buffers that are not there any more (an empty slice
/// of strings does): allowed, but Arrow's own check refuses them, so they are made anew first.
fn well_formed(data: ArrayData, seen: &mut HashSet<Seen>) -> Result<ArrayData, ArrowError> {
    if data.is_empty() {
        return Ok(ArrayData::new_empty(data.data_type()));
    }
    let data = if data.child_data().iter().any(ArrayData::is_empty) {
        let whole = |child: &ArrayData| match child.is_empty() {
            true => ArrayData::new_empty(child.data_type()),
            false => child.clone(),
        };
        let children = data.child_data().iter().map(whole).collect();
        // SAFETY: checked below, before anything is read from it.
        unsafe { data.into_builder().child_data(children).build_unchecked() }
    } else {
        data
    };
    data.validate()?;
    data.validate_nulls()?;
    match data.data_type() {
        DataType::Utf8 => check_text::<i32>(&data)?,
        DataType::LargeUtf8 => check_text::<i64>(&data)?,
        _ => data.validate_values()?,
    }
    let (rows, begin) = (data.len(), data.offset());
    match data.data_type() {
        DataType::List(_) | DataType::Map(_, _) => {
            let ends = &data.buffer::<i32>(0)[..=rows];
            check_slice(&data, ends[0] as usize, ends[rows] as usize, seen)?;
        }
        DataType::LargeList(_) => {
            let ends = &data.buffer::<i64>(0)[..=rows];
            check_slice(&data, ends[0] as usize, ends[rows] as usize, seen)?;
        }
        DataType::Struct(_) => {
            for child in data.child_data() {
                // Slicing a struct slices its children, and keeps its offset all the same.
                let is_cut = child.len() == rows;
                let child = if is_cut { child.clone() } else { child.slice(begin, rows) };
                well_formed(child, seen)?;
            }
        }
        DataType::Dictionary(_, _) => {
            let values = &data.child_data()[0];
            let start = values.buffers().first().map_or(std::ptr::null(), |b| b.as_ptr());
            if seen.insert((start, values.offset(), values.len())) {
                values.validate_full()?;
            }
        }
        _ => data.child_data().iter().try_for_each(ArrayData::validate_full)?,
    }
    Ok(data)
}

/// Checks the values of a list array from `begin` to `end`.
fn check_slice(
    data: &ArrayData,
    begin: usize,
    end: usize,
    seen: &mut HashSet<Seen>,
) -> Result<(), ArrowError> {
    well_formed(data.child_data()[0].slice(begin, end - begin), seen).map(drop)
}

/// Offsets that rise and stay inside, text between them that is UTF-8, cut between characters.
fn check_text<O: OffsetSizeTrait>(data: &ArrayData) -> Result<(), ArrowError> {
    let ends = &data.buffer::<O>(0)[..=data.len()];
    let bytes = data.buffers()[1].as_slice();
    let invalid = |what: &str| ArrowError::InvalidArgumentError(what.to_owned());
    let rise = ends.windows(2).all(|pair| pair[0] <= pair[1]);
    let (first, last) = (ends[0].to_usize(), ends[data.len()].to_usize());
    let text = match (rise, first, last) {
        (true, Some(first), Some(last)) => bytes.get(first..last),
        _ => None,
    };
    let text = text.ok_or_else(|| invalid("offsets do not rise or lie outside of the values"))?;
    let text = std::str::from_utf8(text).map_err(|error| invalid(&error.to_string()))?;
    let whole = |end: &O| text.is_char_boundary(end.as_usize() - ends[0].as_usize());
    if ends.iter().all(whole) { Ok(()) } else { Err(invalid("a value begins inside a character")) }
}
