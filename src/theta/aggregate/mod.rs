//! Aggregates over the matches of each left row, without building pairs.
//!
//! Where a left row's matches are ranges of the right side in key order, or ranges of what a sweep
//! has activated so far, they are [folded](kernels) in logarithmic time, however many they are;
//! [`shape`] says when. Other matches, and those of the nested loop, are [`listed`] and folded
//! one by one. What an aggregate is, and how it treats nulls, NaN and overflow, is settled in
//! [`crate::aggregate`].
//!
//! Output: the left columns and one column per aggregate; left rows in their order, all of them
//! (`how="left"`: a row that matches nothing counts 0, its other aggregates are null) or those that
//! have a match (`how="inner"`).

mod emit;
mod kernels;
mod listed;
mod plan;
mod shape;

use std::iter;
use std::sync::Arc;
use std::time::Instant;

use arrow_schema::SchemaRef;

use super::auto::Pairs;
use super::nested_loop::pair_keys;
use super::plan::Algorithm;
use super::ranked::Ranked;
use super::scan::{self, Given, PairKeys, Product, Tally};
use crate::aggregate::{Kernel, Measures, Partials, Rows};
use crate::control::{Control, interruptible};
use crate::metrics::Metric;
use crate::once::Once;
use crate::operator::{Operator, Plan, Run};
use crate::output::BatchStream;
use crate::predicate::JoinKind;
use crate::table::Table;
use crate::workers::pool;
use crate::{Error, Result};
use emit::Output;
use kernels::FoldShape;
use listed::{AT_ONCE, fold_pairs};
use shape::Shape;

pub use plan::AggregatePlan;

/// A theta join that aggregates, over two tables.
struct Aggregated {
    plan: Arc<AggregatePlan>,
    left: Arc<Table>,
    right: Arc<Table>,
    found: Once<Arc<Found>>,
    measures: Once<Arc<Measures>>,
    results: Once<Arc<Results>>,
}

/// How matches are found, after sorting.
enum Found {
    /// As ranges: the left row of each place, and how many matches it has.
    Shape { rows: Arc<Vec<u32>>, matches: Arc<Vec<u32>>, shape: Shape },
    /// By listing candidates.
    Pairs(Pairs),
    /// By comparing all pairs.
    Product(Arc<PairKeys>),
}

/// Matches and partials of some left rows; the others match nothing.
struct Results {
    /// Ascending.
    rows: Arc<Vec<u32>>,
    matches: Arc<Vec<u32>>,
    partials: Vec<Partials>,
}

impl Results {
    /// Rows that have a match, and where in here they are.
    fn matched(&self) -> impl Iterator<Item = (u32, u32)> {
        let all = self.rows.iter().zip(&*self.matches).zip(0..);
        all.filter(|((_, matches), _)| **matches > 0).map(|((row, _), slot)| (*row, slot))
    }
}

impl Aggregated {
    fn new(plan: AggregatePlan, left: Arc<Table>, right: Arc<Table>) -> Self {
        let plan = Arc::new(plan);
        Self { plan, left, right, found: Once::new(), measures: Once::new(), results: Once::new() }
    }

    /// Runs `work` on the run's threads, while this one watches.
    fn prepare<T: Send + 'static>(
        &self,
        run: &Run,
        control: &Control,
        work: impl FnOnce(&AggregatePlan, &Table, &Table) -> Result<T> + Send + 'static,
    ) -> Result<Arc<T>> {
        let (plan, left, right) =
            (Arc::clone(&self.plan), Arc::clone(&self.left), Arc::clone(&self.right));
        let threads = run.threads;
        let work = move || pool(threads)?.install(|| work(&plan, &left, &right));
        interruptible(control, work).map(Arc::new)
    }

    fn found(&self, run: &Run) -> Result<Arc<Found>> {
        self.found.get(&run.control, || {
            let control = Arc::new(Control::part_of(&run.control));
            let watched = Arc::clone(&control);
            let found = self.prepare(run, &control, move |plan, left, right| {
                if plan.theta.spec.algorithm == Algorithm::NestedLoop {
                    return Ok(Found::Product(Arc::new(pair_keys(&plan.theta, left, right)?)));
                }
                let ranked = Ranked::new(&plan.theta, left, right)?;
                let Some(shape) = Shape::of(&ranked) else {
                    return Ok(Found::Pairs(Pairs::new(ranked)));
                };
                watched.expect(ranked.left.len() as u64);
                let matches = FoldShape { shape: &shape, control: &watched }.run(&Rows)?;
                let (rows, matches) = (ranked.left.rows, Arc::new(matches));
                Ok(Found::Shape { rows, matches, shape })
            })?;
            log::debug!("{}: {}", self.plan.theta, found.explain());
            Ok(found)
        })
    }

    fn measures(&self, run: &Run) -> Result<Arc<Measures>> {
        self.measures.get(&run.control, || {
            let work =
                |plan: &AggregatePlan, _: &_, right: &_| Measures::new(&plan.aggregates, right);
            self.prepare(run, &run.control, work)
        })
    }

    fn results(&self, run: &Run) -> Result<Arc<Results>> {
        let (found, measures) = (self.found(run)?, self.measures(run)?);
        self.results.get(&run.control, || {
            let control = Arc::new(Control::part_of(&run.control));
            let left_rows = self.left.num_rows();
            let tasks: Box<dyn Iterator<Item = _> + Send> = match &*found {
                Found::Shape { rows, .. } => {
                    let watched = Arc::clone(&control);
                    watched.expect((rows.len() * measures.list.len()) as u64);
                    let (found, measures) = (Arc::clone(&found), Arc::clone(&measures));
                    return self.prepare(run, &control, move |_, _, _| {
                        let Found::Shape { rows, matches, shape } = &*found else {
                            return Err(Error::internal("the shape of matches changed"));
                        };
                        let partials = measures.run(&FoldShape { shape, control: &watched })?;
                        let (rows, matches) = (Arc::clone(rows), Arc::clone(matches));
                        Ok(Results { rows, matches, partials })
                    });
                }
                Found::Pairs(pairs) => Box::new(pairs.tasks(AT_ONCE, &control).into_iter()),
                Found::Product(keys) => {
                    let (left, right) = (keys.left.rows.len(), keys.right.rows.len());
                    let product = Product { left: 0..left, right: 0..right, worker: 0 };
                    let run = Run { control: Arc::clone(&control), ..Run::on(run.threads) };
                    let given = [&self.left, &self.right]
                        .map(|table| Given { rows: table.num_rows(), filtered: None });
                    let tally = Tally::new(&run, keys, given, product.pairs(), None);
                    Box::new(scan::match_tasks(Arc::clone(keys), iter::once(product), tally))
                }
            };
            fold_pairs(&measures, left_rows, tasks, run.threads, control).map(Arc::new)
        })
    }

    /// How many matches left rows have, those without a match left out or not.
    fn report(&self, matches: &[u32], run: &Run) -> u64 {
        let matched = matches.iter().filter(|&&count| count > 0).count() as u64;
        let (left, metrics) = (self.left.num_rows() as u64, &run.metrics);
        metrics.add("rows_left", left);
        metrics.add("rows_right", self.right.num_rows() as u64);
        metrics.add("matched_left", matched);
        metrics.add("unmatched_left", left - matched);
        metrics.add("matches", matches.iter().map(|&count| u64::from(count)).sum());
        matched
    }
}

impl Found {
    /// For people to read.
    fn explain(&self) -> String {
        match self {
            Self::Shape { matches, shape, .. } => {
                let matches: u64 = matches.iter().map(|&count| u64::from(count)).sum();
                format!("auto: {}; {matches} matches are folded, none is listed", shape.name())
            }
            Self::Pairs(pairs) => format!("auto: {}", pairs.explain()),
            Self::Product(keys) => {
                let pairs = keys.left.rows.len() as u64 * keys.right.rows.len() as u64;
                format!("nested_loop: {pairs} comparisons")
            }
        }
    }
}

impl Operator for Aggregated {
    fn schema(&self) -> &SchemaRef {
        self.plan.schema()
    }

    fn stream(&self, run: &Run) -> Result<BatchStream> {
        let (measures, results) = (self.measures(run)?, self.results(run)?);
        self.report(&results.matches, run);
        let plan = Arc::clone(&self.plan);
        let output = Arc::new(Output::new(plan, measures, results, [&self.left, &self.right]));
        run.control.expect(run.control.total() + output.len() as u64);
        BatchStream::of_batches(Arc::clone(self.schema()), output.tasks(run).into_iter(), run)
    }

    fn count(&self, run: &Run) -> Result<u128> {
        let begun = Instant::now();
        let matched = match &*self.found(run)? {
            Found::Shape { matches, .. } => self.report(matches, run),
            _ => self.report(&self.results(run)?.matches, run),
        };
        let rows = match self.plan.theta.spec.kind {
            JoinKind::Inner => matched,
            _ => self.left.num_rows() as u64,
        };
        run.control.look()?;
        run.metrics.add("rows_out", rows);
        run.metrics.set("seconds", Metric::Real(begun.elapsed().as_secs_f64()));
        Ok(rows.into())
    }

    fn explain(&self, run: &Run) -> Result<String> {
        let side = |name: &str, table: &Table| format!("  {name:<10} {} rows\n", table.num_rows());
        Ok(format!(
            "{}\n  algorithm  {}\n{}{}  threads    {}\n  order      left row\n",
            self.plan,
            self.found(run)?.explain(),
            side("left", &self.left),
            side("right", &self.right),
            run.threads,
        ))
    }
}
