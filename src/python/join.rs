//! A described join, and a running one: the same two classes for every family.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use super::convert::{batch_to_python, schema_to_python, stream_capsule};
use super::error::to_python;
use super::input::Input;
use super::watch::{Raised, detached, run, watched};
use crate::control::{Control, interruptible};
use crate::metrics::{Metric, Metrics};
use crate::once::Once;
use crate::operator::{Operator, Plan, Run};
use crate::output::BatchStream;
use crate::table::Table;
use crate::{Error, Result};

/// A join that was described and checked; inputs are read when it first runs.
#[pyclass(frozen, module = "dovetail._native")]
pub(super) struct Join {
    plan: Arc<dyn Plan>,
    inputs: Vec<Py<Input>>,
    operator: Once<Arc<dyn Operator>>,
}

impl Join {
    pub(super) fn new(plan: Arc<dyn Plan>, inputs: Vec<Py<Input>>) -> Self {
        Self { plan, inputs, operator: Once::new() }
    }

    /// The operator over the inputs, made on first use.
    fn operator(&self, control: &Control) -> Result<Arc<dyn Operator>> {
        self.operator.get(control, || {
            let tables = self.inputs.iter().map(|input| input.get().table(control));
            let tables = tables.collect::<Result<Vec<Arc<Table>>>>()?;
            let plan = Arc::clone(&self.plan);
            interruptible(control, move || plan.bind(&tables))
        })
    }
}

fn run_with(control: Arc<Control>, threads: usize, limit: Option<u64>) -> Run {
    Run { control, limit, ..Run::on(threads) }
}

#[pymethods]
impl Join {
    /// The output schema, as a pyarrow.Schema.
    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        schema_to_python(py, self.plan.schema())
    }

    /// Begins a run that stops after `limit` rows.
    #[pyo3(signature = (*, threads, limit=None, progress=None))]
    fn stream(
        &self,
        py: Python<'_>,
        threads: usize,
        limit: Option<u64>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Stream> {
        let (control, raised) = watched(progress);
        let run = run_with(control, threads, limit);
        let batches = detached(py, || self.operator(&run.control)?.stream(&run))?
            .map_err(|error| raised.or(py, &error))?;
        let schema = Arc::clone(batches.schema());
        Ok(Stream { schema, batches: Mutex::new(Some(batches)), metrics: run.metrics, raised })
    }

    /// The number of output rows and the metrics of counting them.
    #[pyo3(signature = (*, threads, progress=None))]
    fn count<'py>(
        &self,
        py: Python<'py>,
        threads: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(u128, Bound<'py, PyDict>)> {
        let (rows, metrics) = run(py, progress, |control| {
            let run = run_with(control, threads, None);
            let rows = self.operator(&run.control)?.count(&run)?;
            Ok((rows, run.metrics))
        })?;
        Ok((rows, metrics_to_python(py, &metrics)?))
    }

    /// What a run would do.
    #[pyo3(signature = (*, threads))]
    fn explain(&self, py: Python<'_>, threads: usize) -> PyResult<String> {
        run(py, None, |control| {
            let run = run_with(control, threads, None);
            self.operator(&run.control)?.explain(&run)
        })
    }
}

/// A run under way.
#[pyclass(frozen, module = "dovetail._native")]
pub(super) struct Stream {
    schema: SchemaRef,
    batches: Mutex<Option<BatchStream>>,
    metrics: Arc<Metrics>,
    raised: Raised,
}

// The lock is only ever waited for without the GIL: who holds it may want that.
impl Stream {
    fn take(&self) -> Option<BatchStream> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn next(&self) -> Result<Option<arrow_array::RecordBatch>> {
        let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        batches.as_mut().and_then(Iterator::next).transpose()
    }
}

#[pymethods]
impl Stream {
    /// The next batch as a pyarrow.RecordBatch, `None` at the end.
    fn next_batch<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let next = detached(py, || self.next())?.map_err(|error| self.raised.or(py, &error))?;
        next.map(|batch| batch_to_python(py, batch)).transpose()
    }

    /// All batches that are left, as a list of pyarrow.RecordBatch.
    fn read_all<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let rest = || std::iter::from_fn(|| self.next().transpose()).collect::<Result<Vec<_>>>();
        let batches = detached(py, rest)?.map_err(|error| self.raised.or(py, &error))?;
        batches.into_iter().map(|batch| batch_to_python(py, batch)).collect()
    }

    /// Stops the run.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || drop(self.take()))
    }

    /// What was counted so far.
    #[getter]
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        metrics_to_python(py, &self.metrics)
    }

    /// Hands the run over to another library.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = detached(py, || self.take())?.ok_or_else(|| {
            to_python(py, &Error::invalid("this stream was handed over already; ask for another"))
        })?;
        let raised = self.raised.clone();
        let watched = batches.inspect(move |batch| {
            if matches!(batch, Err(Error::Cancelled)) {
                // The reader raises an error of its own; what stopped us comes right behind it.
                raised.raise_later();
            }
        });
        stream_capsule(py, &self.schema, watched, requested_schema)
    }
}

/// As a dict.
pub(super) fn metrics_to_python<'py>(
    py: Python<'py>,
    metrics: &Metrics,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in metrics.snapshot() {
        match value {
            Metric::Count(count) => dict.set_item(name, count)?,
            Metric::Real(real) => dict.set_item(name, real)?,
        }
    }
    Ok(dict)
}
