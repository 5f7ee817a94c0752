//! Aggregates over the matches of a row, without building pairs.
//!
//! What a user asks for ([`Aggregate`]) is checked against the schema of the input whose rows are
//! aggregated (`Aggregates`). With the data come `Measures`: the typed columns that are folded,
//! each once however many aggregates need it, and how results are made of them. An operator brings
//! a `Kernel`: a loop, generic over the `Fold`, that finds the partial of every output row.
//!
//! ```text
//! n = count(), total = sum(v), average = mean(v), best = max(w)        aggregates
//!                └──────┬──────┘                     │
//!                 sum of v, values of v      greatest rank of w        measures, one fold each
//! ```
//!
//! - Nulls are ignored, as in SQL: `count("v")` counts values, and the others are null where there
//!   are none. `count()` counts rows.
//! - Counts are `Int64`. Sums of integers are `Int64`, sums of decimals `Decimal128(38, scale)`
//!   (`Decimal256(76, scale)` of 256-bit ones): exact, or an error that names aggregate and column.
//! - Sums of floats are `Float64`; NaN and infinity come out as plain addition has them. Every sum
//!   is made of its own rows alone, with twice the digits.
//! - Means are `Float64`, and so are `var` and `std`: of a sample (n - 1), null for less than two
//!   values, NaN where a value is not finite.
//! - `min` and `max` have the column's type: any that has an order, NaN being the greatest. Of
//!   values that compare equal (0.0 and -0.0) `min` gives the first row's, `max` the last one's.

mod finish;
mod fold;
mod measure;
mod request;
mod tree;

pub(crate) use finish::Finished;
pub(crate) use fold::{Fold, Rows};
pub(crate) use measure::{Kernel, Measures, Partials};
pub(crate) use request::Aggregates;
pub use request::{Aggregate, Function};
pub(crate) use tree::BlockTree;
