//! Threads for the parallel parts of one call.
//!
//! A pool lives as long as the call that made it and is never shared: nothing survives into a
//! forked process, and rayon's global pool is never touched.

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::{Error, Result};

/// A pool of `threads` threads.
pub(crate) fn pool(threads: usize) -> Result<ThreadPool> {
    ThreadPoolBuilder::new()
        .num_threads(threads.max(1))
        .thread_name(|index| format!("dovetail-{index}"))
        .build()
        .map_err(|error| Error::internal(format!("cannot start threads: {error}")))
}
