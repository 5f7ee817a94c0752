//! Theta joins: pairs of rows that satisfy a conjunction of comparisons, within equality groups.
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
//! An [`AggregatePlan`] asks for aggregates over each left row's matches instead of pairs.
//!
//! [`WindowJoin`] joins streams window by window, [`chain_pairwise`] joins chains of inputs
//! (`r >= s < t`) step by step.

mod aggregate;
mod auto;
mod balance;
mod layered_bits;
mod nested_loop;
mod pairwise;
mod partitioned;
mod plan;
mod ranked;
mod ranks;
mod scan;
mod slices;
mod sweep;
mod window;

pub use aggregate::AggregatePlan;
pub use pairwise::{ChainInput, ChainStep, PairwiseChain, Tuples, chain_pairwise};
pub use partitioned::{PartitionedOptions, Repartition};
pub use plan::{Algorithm, ThetaPlan, ThetaSpec};
pub use window::{Input, Rest, WindowJoin};
