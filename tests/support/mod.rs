//! What tests of several families share. Nothing here uses the crate's own kernels.
#![allow(dead_code, missing_docs, reason = "each test binary uses a part of it")]

pub mod arrays;
pub mod columns;
pub mod exact;
pub mod oracle;
pub mod property;
pub mod rows;
pub mod stocks;
