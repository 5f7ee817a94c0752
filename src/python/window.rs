//! Binding of theta joins over streams of windows.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};

use arrow_array::RecordBatch;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::convert::{batch_to_python, schema_to_python};
use super::error::to_python;
use super::input::Input;
use super::join::metrics_to_python;
use super::theta::{Partitioning, TermText, to_algorithm, to_terms, unknown};
use super::watch::{Raised, detached, run, signalled};
use crate::budget::Budget;
use crate::error::without_panic;
use crate::metrics::Metrics;
use crate::operator::Run;
use crate::predicate::JoinKind;
use crate::theta::{self, ThetaPlan, ThetaSpec};
use crate::{Error, Result};

/// A join of two streams, window by window.
#[pyclass(frozen, module = "dovetail._native")]
pub(super) struct WindowJoin {
    join: Mutex<theta::WindowJoin>,
    /// The thread that is at work on it.
    holder: Mutex<Option<ThreadId>>,
    metrics: Arc<Metrics>,
    raised: Raised,
}

impl WindowJoin {
    /// Works on the join without the GIL; other threads wait for their turn.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut theta::WindowJoin) -> Result<T> + Send,
    ) -> PyResult<T> {
        let me = Some(thread::current().id());
        let holder = || self.holder.lock().unwrap_or_else(PoisonError::into_inner);
        let done = detached(py, || {
            if *holder() == me {
                return Err(Error::invalid(
                    "this join is at work in a call that is still running, and which this call \
                     was made from",
                ));
            }
            let mut join = self.join.lock().unwrap_or_else(PoisonError::into_inner);
            *holder() = me;
            let done = without_panic(|| work(&mut join));
            if matches!(done, Err(Error::Cancelled)) {
                join.watch(signalled(&self.raised));
            }
            *holder() = None;
            done
        })?;
        done.map_err(|error| self.raised.or(py, &error))
    }
}

#[pymethods]
impl WindowJoin {
    #[new]
    #[pyo3(signature = (*, window, memory, threads))]
    fn new(py: Python<'_>, window: usize, memory: Option<u64>, threads: usize) -> PyResult<Self> {
        let raised = Raised::default();
        let run = Run { control: signalled(&raised), ..Run::on(threads) };
        let metrics = Arc::clone(&run.metrics);
        let budget = memory.map_or_else(Budget::unlimited, Budget::bytes);
        let join = theta::WindowJoin::new(window, run, budget);
        let join = Mutex::new(join.map_err(|error| to_python(py, &error))?);
        Ok(Self { join, holder: Mutex::new(None), metrics, raised })
    }

    /// Says how windows of streams with the schemas of `left` and `right` are joined.
    #[pyo3(signature = (left, right, *, terms, by, suffix, algorithm, options=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of one Python call")]
    fn describe(
        &self,
        py: Python<'_>,
        left: Py<Input>,
        right: Py<Input>,
        terms: Vec<TermText>,
        by: Vec<(String, String)>,
        suffix: String,
        algorithm: &str,
        options: Option<Partitioning>,
    ) -> PyResult<()> {
        self.with(py, |join| {
            let (terms, algorithm) = (to_terms(terms)?, to_algorithm(algorithm, options)?);
            let spec = ThetaSpec { terms, by, kind: JoinKind::Inner, suffix, algorithm };
            let schemas = [&left, &right].map(|input| Arc::clone(&input.get().schema));
            join.describe(ThetaPlan::new(&schemas[0], &schemas[1], spec)?, schemas)
        })
    }

    /// Takes the next rows of the stream called `input`.
    fn push(&self, py: Python<'_>, input: &str, rows: Py<Input>) -> PyResult<()> {
        let side = theta::Input::from_name(input)
            .ok_or_else(|| to_python(py, &unknown("input", input, &["left", "right"])))?;
        let table = run(py, None, |control| rows.get().table(&control))?;
        self.with(py, |join| match table.batches() {
            // No rows, but their schema.
            [] => join.push(side, &[RecordBatch::new_empty(Arc::clone(table.schema()))]),
            batches => join.push(side, batches),
        })
    }

    /// The next batch that is ready, as a pyarrow.RecordBatch; `None` if there is none.
    fn poll<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let batch = self.with(py, theta::WindowJoin::poll)?;
        batch.map(|batch| batch_to_python(py, batch)).transpose()
    }

    /// Ends both streams.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |join| {
            join.finish();
            Ok(())
        })
    }

    /// The output schema, as a pyarrow.Schema, once it is known.
    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let schema = self.with(py, |join| Ok(join.schema().cloned()))?;
        schema.map(|schema| schema_to_python(py, &schema)).transpose()
    }

    /// What was counted so far.
    #[getter]
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        metrics_to_python(py, &self.metrics)
    }
}
