//! Ctrl-C and progress: what happens on the caller's thread while a kernel runs.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};

use pyo3::prelude::*;

use super::error::to_python;
use crate::control::Control;
use crate::{Error, Result};

/// Where an exception raised while watching waits to be raised by the call.
#[derive(Clone, Default)]
pub(super) struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    fn put(&self, error: PyErr) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    /// The exception raised while watching, if any.
    pub(super) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Has the interpreter raise the exception when it next runs Python code on the main thread.
    pub(super) fn raise_later(&self) {
        let Some(error) = self.take() else { return };
        let error = Box::into_raw(Box::new(error));
        // SAFETY: may be called from any thread; the callback takes the box over.
        let queued = unsafe { pyo3::ffi::Py_AddPendingCall(Some(raise), error.cast()) };
        if queued != 0 {
            // SAFETY: not queued, so the box is still ours.
            drop(unsafe { Box::from_raw(error) });
        }
    }

    /// What the call is to raise for `error`.
    pub(super) fn or(&self, py: Python<'_>, error: &Error) -> PyErr {
        match self.take() {
            Some(raised) if matches!(error, Error::Cancelled) => raised,
            _ => to_python(py, error),
        }
    }
}

/// Raises the exception that `error` points to.
extern "C" fn raise(error: *mut c_void) -> c_int {
    // SAFETY: made from a box by `raise_later`, and called once.
    let error = unsafe { Box::from_raw(error.cast::<PyErr>()) };
    Python::attach(|py| error.restore(py));
    -1
}

/// A control that checks for signals and calls `progress(done, total)`, on this thread only.
///
/// Other threads (an engine that reads an exported stream on its own) never wait for the GIL
/// here: the thread that holds it may be waiting for them.
pub(super) fn watched(progress: Option<Py<PyAny>>) -> (Arc<Control>, Raised) {
    let raised = Raised::default();
    let stash = raised.clone();
    let owner: ThreadId = thread::current().id();
    let watcher = move |done: u64, total: u64| {
        if thread::current().id() != owner {
            return true;
        }
        Python::attach(|py| {
            let seen = py.check_signals().and_then(|()| match &progress {
                Some(progress) => progress.call1(py, (done, total)).map(drop),
                None => Ok(()),
            });
            seen.map_err(|error| stash.put(error)).is_ok()
        })
    };
    (Arc::new(Control::watched_by(Box::new(watcher))), raised)
}

/// A control that checks for signals on whichever thread waits. For calls from Python only, whose
/// threads all had the GIL and gave it up.
pub(super) fn signalled(raised: &Raised) -> Arc<Control> {
    let stash = raised.clone();
    let watcher = move |_, _| {
        Python::attach(|py| py.check_signals().map_err(|error| stash.put(error)).is_ok())
    };
    Arc::new(Control::watched_by(Box::new(watcher)))
}

/// Runs `work` without the GIL under a watched control and raises what it fails with.
pub(super) fn run<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(Arc<Control>) -> Result<T> + Send,
) -> PyResult<T> {
    let (control, raised) = watched(progress);
    detached(py, || work(control))?.map_err(|error| raised.or(py, &error))
}

/// Runs `work` without the GIL. A log record it writes may run Python code that raises, a signal
/// handler for one: that is raised here.
pub(super) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let done = py.detach(work);
    match PyErr::take(py) {
        Some(raised) => Err(raised),
        None => Ok(done),
    }
}
