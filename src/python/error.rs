//! Errors of the kernels become the exception classes of `dovetail.errors`.

use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::Error;

/// The Python exception for `error`.
pub(super) fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    let class = match error {
        Error::Invalid(_) => "InvalidInputError",
        Error::Unsupported(_) => "UnsupportedError",
        Error::Budget { .. } => "BudgetError",
        Error::Spill { .. } => "SpillError",
        Error::Cancelled => return PyKeyboardInterrupt::new_err(()),
        Error::Internal(_) => "InternalError",
    };
    let found = py.import("dovetail.errors").and_then(|module| module.getattr(class));
    match found.and_then(|class| Ok(class.cast_into::<PyType>()?)) {
        Ok(class) => PyErr::from_type(class, error.to_string()),
        Err(missing) => PyRuntimeError::new_err(format!("{error} ({missing})")),
    }
}
