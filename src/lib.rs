//! The joins that Spark, pandas and SQL engines do badly, done right: Arrow in, Arrow out.

pub mod budget;
pub mod error;
pub mod predicate;
pub mod spill;

pub use error::{Error, Result};
