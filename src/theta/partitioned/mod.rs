//! Theta joins by partitions: Prefap and the algorithms it is measured against.
//!
//! Source: Wu, Wang, Fan, Ye, Xu, "Toward fast theta-join: A prefiltering and amalgamated
//! partitioning approach" (2022); FTJ is Hu et al. (2020), CFS Liu et al. (2017), OBT Okcan and
//! Riedewald (2011), RBM DeWitt et al. (1992), all as that source describes them.
//!
//! Both sides are cut into partitions, pairs of partitions that cannot match are dropped, and every
//! row of a partition is compared with every row of the partitions it was kept with. `scheme` says
//! what each algorithm does, the other files hold the parts they share:
//!
//! ```text
//! prefilter ── boundaries ── partition ── repartition ── filter pairs ── deal ── compare
//! filter.rs    boundaries.rs partition.rs repartition.rs filter.rs       ../balance.rs ../scan.rs
//! ```
//!
//! **Scope**: inner joins with one of `<`, `<=`, `>`, `>=`, no equality columns, any ordered type.
//!
//! **Order of the output**: left partition, then right partition, both ascending; within a pair of
//! partitions left row, then right row (RBM and OBT: in key order, ties by row). It follows from
//! the data and the options, whatever the threads.
//!
//! **Nulls** are set aside first and count as unmatched; rows that a prefilter or CFS's filter
//! removes count as `filtered`. NaN is a value like any other, above infinity.
//!
//! **Metrics**: `cartesian_products` (pairs of rows compared), `results`, `seconds` (of the run) and
//! `partition_seconds` (before it, once per operator), `load_balance_in` and `load_balance_out`
//! over four workers, `partitions_left`, `partitions_right`, `pairs_kept`, `pairs_dropped`.

mod boundaries;
mod filter;
mod options;
mod partition;
mod repartition;
pub(super) mod scheme;

use std::fmt::Write;
use std::sync::Arc;

use arrow_schema::SchemaRef;

pub use options::{PartitionedOptions, Repartition};

use super::balance::Loads;
use super::plan::{Algorithm, ThetaPlan, label};
use super::scan::{self, Tally};
use crate::key::{KeyColumn, ordered_keys};
use crate::operator::{Operator, Run};
use crate::output::{Assembler, BatchStream};
use crate::table::Table;
use crate::{Error, Result};
use scheme::{Partition, Partitioning};

/// How many partitions of a side `explain` lists.
const LISTED: usize = 12;

/// A join of two tables by partitions.
pub(super) struct Partitioned {
    plan: ThetaPlan,
    partitioning: Arc<Partitioning>,
    assembler: Arc<Assembler>,
    /// Whether positions are values that people can read.
    has_values: bool,
}

impl Partitioned {
    /// Encodes and partitions the key columns; `plan` has one term that is in scope.
    pub(super) fn new(plan: ThetaPlan, left: Arc<Table>, right: Arc<Table>) -> Result<Self> {
        let [term] = plan.terms[..] else {
            return Err(Error::internal("one term was checked, not one found"));
        };
        let columns = [
            left.key_column(term.left, label("left", left.schema(), term.left)),
            right.key_column(term.right, label("right", right.schema(), term.right)),
        ];
        let [l, r] = <[KeyColumn; 2]>::try_from(ordered_keys(&columns)?)
            .map_err(|_| Error::internal("two columns in, not two out"))?;
        let partitioning = Partitioning::new(&l, term.comparison, &r, plan.spec.algorithm)?;
        let (partitioning, has_values) = (Arc::new(partitioning), l.has_values());
        let layout = plan.layout.clone();
        let assembler = Arc::new(Assembler::new(layout, left, right));
        Ok(Self { plan, partitioning, assembler, has_values })
    }

    fn begin(&self, run: &Run, loads: Arc<Loads>) -> Arc<Tally> {
        let partitioning = &*self.partitioning;
        log::debug!(
            "{}: {}, {} comparisons on {} threads",
            self.plan,
            self.plan.spec.algorithm.name(),
            partitioning.comparisons,
            run.threads
        );
        partitioning.report(&run.metrics, &loads);
        let (keys, pairs) = (&partitioning.keys, partitioning.comparisons);
        Tally::new(run, keys, partitioning.given, pairs, Some(loads))
    }

    /// The output of a run that goes on the account of `loads`.
    pub(super) fn stream_with(&self, run: &Run, loads: Arc<Loads>) -> Result<BatchStream> {
        let assembler = Arc::clone(&self.assembler);
        let tally = self.begin(run, loads);
        let (keys, products) = (Arc::clone(&self.partitioning.keys), self.partitioning.products());
        scan::stream(keys, products, tally, assembler, run)
    }
}

impl Operator for Partitioned {
    fn schema(&self) -> &SchemaRef {
        self.plan.layout.schema()
    }

    fn stream(&self, run: &Run) -> Result<BatchStream> {
        self.stream_with(run, Arc::default())
    }

    fn count(&self, run: &Run) -> Result<u128> {
        let tally = self.begin(run, Arc::default());
        let (keys, products) = (Arc::clone(&self.partitioning.keys), self.partitioning.products());
        scan::count(keys, products, tally, run)
    }

    fn explain(&self, run: &Run) -> Result<String> {
        let partitioning = &*self.partitioning;
        let mut text =
            format!("{}\n  algorithm  {}\n", self.plan, describe(self.plan.spec.algorithm));
        for (side, name) in ["left", "right"].into_iter().enumerate() {
            let given = partitioning.given[side];
            let filtered = given.filtered.unwrap_or(0);
            let partitions = &partitioning.partitions[side];
            let live: usize = partitions.iter().map(|partition| partition.places.len()).sum();
            let null = given.rows - live - filtered;
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "  {name:<10} {} rows: {null} with a null key, {filtered} filtered, {live} in {}",
                given.rows,
                table(partitions, self.has_values),
            );
        }
        let _ = write!(
            text,
            "  pairs      {} of {} pairs of partitions: {} comparisons\n  threads    {}\n  \
             order      left partition, right partition, then rows\n",
            partitioning.pairs_kept,
            partitioning.pairs(),
            partitioning.comparisons,
            run.threads,
        );
        Ok(text)
    }
}

/// An algorithm and its options, for people to read.
pub(super) fn describe(algorithm: Algorithm) -> String {
    let name = algorithm.name();
    let Some(options) = algorithm.options() else { return name.into() };
    let mut text = format!("{name}: {} partitions a side", options.partitions);
    let mut add = |said: bool, what: &str| {
        if said {
            text.push_str(what);
        }
    };
    if let Algorithm::Prefap(_) = algorithm {
        add(options.prefilter, ", prefiltered");
        add(options.amalgamation, ", amalgamated");
    }
    if let Algorithm::Prefap(_) | Algorithm::Ftj(_) = algorithm {
        add(options.repartition == Repartition::Once, ", oversized ones split once");
        add(options.repartition == Repartition::UntilBalanced, ", oversized ones split");
        add(options.ceiling, " into whole spans");
    }
    text
}

/// The partitions of one side in a line: where they lie and how many rows they have.
fn table(partitions: &[Partition], has_values: bool) -> String {
    let mut text = format!("{} partitions", partitions.len());
    for (number, partition) in partitions.iter().take(LISTED).enumerate() {
        text.push_str(if number == 0 { ": " } else { ", " });
        let ((least, greatest), rows) = (partition.span, partition.places.len());
        let _ = match has_values {
            true => write!(text, "[{least}, {greatest}] {rows}"),
            false => write!(text, "{rows}"),
        };
    }
    if partitions.len() > LISTED {
        let _ = write!(text, ", and {} more", partitions.len() - LISTED);
    }
    text
}
