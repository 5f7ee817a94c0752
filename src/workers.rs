//! The threads of one run: a pool made on first use, owned by the run, never shared.
//!
//! A pool does not survive a fork: in the child it is left alone, neither used nor shut down.

use std::mem::ManuallyDrop;
use std::sync::{Arc, OnceLock};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::{Error, Result};

/// How many threads a run has, and the threads themselves once they are needed.
#[derive(Clone)]
pub struct Workers {
    threads: usize,
    pool: Arc<OnceLock<OwnPool>>,
}

struct OwnPool {
    pool: ManuallyDrop<ThreadPool>,
    process: u32,
}

impl Drop for OwnPool {
    fn drop(&mut self) {
        // Shutting down talks to the pool's threads, and those stayed in the parent process.
        if self.process == std::process::id() {
            // SAFETY: dropped once, here, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.pool) }
        }
    }
}

impl Workers {
    /// `threads` of them, at least one.
    pub fn new(threads: usize) -> Self {
        Self { threads: threads.max(1), pool: Arc::default() }
    }

    /// How many there are.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Runs `work`, which may use rayon, on these threads (and never on rayon's global ones).
    pub fn install<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        Ok(self.pool()?.install(work))
    }

    /// The pool, made on first use.
    pub(crate) fn pool(&self) -> Result<&ThreadPool> {
        if self.pool.get().is_none() {
            let pool = ThreadPoolBuilder::new()
                .num_threads(self.threads)
                .thread_name(|index| format!("dovetail-{index}"))
                .build()
                .map_err(|error| Error::internal(format!("cannot start threads: {error}")))?;
            let own = OwnPool { pool: ManuallyDrop::new(pool), process: std::process::id() };
            // Another thread may have been first; then this pool ends at once.
            drop(self.pool.set(own));
        }
        let own = self.pool.get().filter(|own| own.process == std::process::id());
        // The pool's threads did not survive the fork: waiting for them would hang.
        own.map(|own| &*own.pool).ok_or_else(|| {
            Error::invalid(
                "this result was begun in another process; ask the operator for it again here",
            )
        })
    }
}
