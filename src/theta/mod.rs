//! Theta joins: pairs of rows that satisfy a conjunction of comparisons and bands, within equality
//! groups.
//!
//! A [`ThetaPlan`] checks the request against the two schemas, before any data is read;
//! [binding](crate::operator::Plan::bind) it to the tables gives the operator.
//!
//! | algorithm | cost | output order |
//! |---|---|---|
//! | `auto` | sorting, then the matches | see `auto/mod.rs` |
//! | `nested_loop` | every pair is compared | left row, then right row |
//! | `prefap`, `ftj`, `cfs`, `obt`, `rbm` | pairs of partitions are compared | left partition, right partition, then rows |
//!
//! An [`AggregatePlan`] asks for aggregates over each left row\'s matches instead of pairs.
//!
//! [`WindowJoin`] joins streams window by window; a [`ChainPlan`] joins chains of inputs
//! (`r >= s < t`).

mod aggregate;
mod auto;
mod balance;
mod chain;
mod counted_bits;
mod key_order;
mod layered_bits;
mod nested_loop;
mod operands;
mod partitioned;
mod plan;
mod ranked;
mod ranks;
mod scan;
mod slices;
mod sorting;
mod sweep;
mod window;

pub use aggregate::AggregatePlan;
pub use chain::{ChainPlan, ChainSpec};
pub use partitioned::{PartitionedOptions, Repartition};
pub use plan::{Algorithm, ThetaPlan, ThetaSpec};
pub use window::{Input, WindowJoin};
