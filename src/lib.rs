//! The joins that Spark, pandas and SQL engines do badly, done right: Arrow in, Arrow out.

pub mod error;
pub mod key;
pub mod predicate;

pub use error::{Error, Result};
