//! Theta joins: pairs of rows that satisfy a conjunction of comparisons, within equality groups.
//!
//! A [`ThetaPlan`] checks the request against the two schemas, before any data is read;
//! [binding](crate::operator::Plan::bind) it to the tables gives the operator.
//!
//! | algorithm | cost | output order |
//! |---|---|---|
//! | `nested_loop` | every pair is compared | left row, then right row |

mod balance;
mod nested_loop;
mod plan;
mod scan;

pub use plan::{Algorithm, ThetaPlan, ThetaSpec};
