//! The joins that Spark, pandas and SQL engines do badly, done right: Arrow in, Arrow out.
//!
//! This crate is the core of the Python package `dovetail`; it runs in a process, inside Spark
//! tasks and inside streaming queries, and gives the same rows in all of them. Layers, imports
//! pointing down only:
//!
//! ```text
//! python/dovetail/spark   plans DataFrames, calls operators inside Spark tasks
//! python/dovetail         public API and command line: parses arguments, no algorithms
//! src/python              thin PyO3 bindings (feature "python")
//! ────────────────────────────────────────────────────────────────────────────────────
//! families      theta          what users ask for: a plan checks it, an operator runs it
//! frame         operator       what every operator offers: stream, count, explain
//!               output         matches -> record batches, lazily, capped; BatchStream
//!               ordered        tasks on threads, results in order, one per thread in memory
//!               once           made on first use, by one thread, while others wait and watch
//!               workers        thread pools of one call
//! data          table          an input in memory, rows numbered through
//!               aggregate      columns -> partial states that merge, and results made of them
//!               key            columns -> order-preserving keys and equality groups
//!               spill          sorted runs on disk, checksummed, gone whatever happens
//! plain values  predicate      comparisons and join kinds
//!               budget         memory that operators reserve before they use it
//!               control        cancellation and progress of a run
//!               metrics        counters of a run
//!               error          what can go wrong, by what the caller can do about it
//! ```
//!
//! Families never import each other: what two of them share moves down.
//!
//! **Theta** ([`theta`]): pairs of rows that satisfy inequalities (`a.price > b.price`, several at
//! once, with equality columns besides), of tables, chains of tables and windows of streams; by
//! partitions as the papers do it (Prefap and what it is compared with), or by a nested loop.
//!
//! Nulls, NaN, ties and mixed types are settled in [`key`] and nowhere else.

pub mod aggregate;
pub mod budget;
pub mod control;
pub mod error;
pub mod key;
pub mod metrics;
mod once;
pub mod operator;
pub mod ordered;
pub mod output;
pub mod predicate;
pub mod spill;
pub mod table;
pub mod theta;
mod workers;

#[cfg(feature = "python")]
mod python;

pub use error::{Error, Result};
