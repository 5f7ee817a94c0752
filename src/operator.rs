//! What every join offers once its inputs are in memory, whatever its family.

use std::sync::Arc;

use arrow_schema::SchemaRef;

use crate::Result;
use crate::control::Control;
use crate::metrics::Metrics;
use crate::output::{BatchStream, Caps};
use crate::table::Table;

/// How one run of an operator is carried out.
#[derive(Clone)]
pub struct Run {
    /// Stops and watches the run.
    pub control: Arc<Control>,
    /// Where the run counts.
    pub metrics: Arc<Metrics>,
    /// Worker threads; with one, work is done on the caller's thread.
    pub threads: usize,
    /// How large a batch may be.
    pub caps: Caps,
    /// Stop after this many rows.
    pub limit: Option<u64>,
}

impl Run {
    /// An unwatched, unlimited run on `threads` threads.
    pub fn on(threads: usize) -> Self {
        Self {
            control: Arc::default(),
            metrics: Arc::default(),
            threads,
            caps: Caps::default(),
            limit: None,
        }
    }
}

/// A join over inputs in memory. It can be run any number of times, and gives the same batches.
pub trait Operator: Send + Sync {
    /// The output schema.
    fn schema(&self) -> &SchemaRef;

    /// The output rows, computed as they are asked for.
    fn stream(&self, run: &Run) -> Result<BatchStream>;

    /// The number of output rows, without building them.
    fn count(&self, run: &Run) -> Result<u128>;

    /// What will be done, for people to read.
    fn explain(&self, run: &Run) -> Result<String>;
}

/// A request that fits the schemas of its inputs, before any of them is read.
pub trait Plan: Send + Sync {
    /// The output schema.
    fn schema(&self) -> &SchemaRef;

    /// The operator over `inputs`, given in the order of the request.
    fn bind(&self, inputs: &[Arc<Table>]) -> Result<Arc<dyn Operator>>;
}
