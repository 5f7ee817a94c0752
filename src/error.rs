//! What can go wrong, sorted by what the caller can do about it.
//!
//! Messages name the column or input, what was found and what was expected; callers (the Python
//! layer above all) choose an exception class by variant and never parse a message.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Every failure of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The input, a predicate or an option is wrong: change the call.
    #[error("{0}")]
    Invalid(String),

    /// The request makes sense, but this combination is not offered: ask for another one.
    #[error("{0}")]
    Unsupported(String),

    /// A memory budget or disk quota is too small: give more, or ask for less.
    #[error("{what} needs {requested} bytes, but only {available} of {limit} bytes are free")]
    Budget {
        /// What the memory or disk space was wanted for.
        what: String,
        /// Bytes asked for.
        requested: u64,
        /// Bytes that were free.
        available: u64,
        /// The whole budget or quota.
        limit: u64,
    },

    /// Reading or writing spilled data failed: look at the disk.
    #[error("{doing}: {source}")]
    Spill {
        /// What was being done, with the folder it was done in.
        doing: String,
        /// The system's own answer.
        source: io::Error,
    },

    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,

    /// A broken invariant: a bug in this crate.
    #[error("internal error, please report it: {0}")]
    Internal(String),
}

impl Error {
    /// An [`Error::Invalid`] with this message.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }

    /// An [`Error::Unsupported`] with this message.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::Unsupported(message.into())
    }

    /// An [`Error::Internal`] with this message.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::Internal(message.into())
    }
}

/// Arrow kernels are called on validated data only, so their failures are ours.
impl From<arrow_schema::ArrowError> for Error {
    fn from(error: arrow_schema::ArrowError) -> Self {
        Self::Internal(error.to_string())
    }
}

/// Runs `work`; a panic in it becomes an error. On a pool's thread it would end the process, and
/// on the caller's it would reach the user as something that is no ordinary exception.
pub(crate) fn without_panic<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("a thread panicked");
        Err(Error::internal(text))
    })
}
