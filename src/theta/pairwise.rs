//! Chains joined pairwise, as the source's figure 4 runs them: `r >= s < t` joins r with s, then
//! that result with t. For the algorithms of the papers, whose products add up over the steps.
//!
//! Every input has one column, compared with its neighbours': input i with input i + 1. Between
//! steps a partial result is a row number per input and nothing else, so payload is never built;
//! the last step is counted, or handed out as row numbers while it runs.
//!
//! ```text
//! inputs        r        s        t        u          one key space for all columns
//! step 0        └── θ₀ ──┘        │        │          pairs of rows of r, s
//! step 1            └──── θ₁ ─────┘        │          by the keys of s; triples
//! step 2                 └────── θ₂ ───────┘          by the keys of t; counted, or handed out
//! ```
//!
//! Order of the tuples: that of the last step, with the partial result for its left side; see
//! `partitioned`. Memory: all partial results but the last, four bytes per input and tuple.

use std::sync::Arc;
use std::time::Instant;

use super::balance::Loads;
use super::partitioned::scheme::Partitioning;
use super::plan::Algorithm;
use super::scan::{self, Tally};
use crate::control::Control;
use crate::key::{KeyColumn, ordered_keys};
use crate::metrics::{Metric, Metrics};
use crate::operator::Run;
use crate::ordered::Ordered;
use crate::output::{MatchTask, Matches};
use crate::predicate::Comparison;
use crate::table::{NO_ROW, Table};
use crate::{Error, Result};

/// Matches that travel together.
const AT_ONCE: usize = 1 << 16;

/// An input of a chain and the column that it is compared by.
#[derive(Clone, Debug)]
pub struct ChainInput {
    /// The rows.
    pub table: Arc<Table>,
    /// Name of the column.
    pub column: String,
}

/// What one step of a chain took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChainStep {
    /// Pairs of a partial result and a row that were compared.
    pub cartesian_products: u64,
    /// Those that matched.
    pub results: u64,
    /// Greatest over average rows given to four workers.
    pub load_balance_in: f64,
    /// Greatest over average results of four workers.
    pub load_balance_out: f64,
}

/// A chain of inputs, ready to be joined step by step.
pub struct PairwiseChain {
    columns: Vec<KeyColumn>,
    comparisons: Vec<Comparison>,
    algorithm: Algorithm,
}

/// The chain `inputs[0] comparisons[0] inputs[1] comparisons[1] inputs[2] …`, joined pairwise by
/// `algorithm`.
pub fn chain_pairwise(
    inputs: &[ChainInput],
    comparisons: &[Comparison],
    algorithm: Algorithm,
) -> Result<PairwiseChain> {
    if inputs.len() < 2 || comparisons.len() != inputs.len() - 1 {
        return Err(Error::invalid(format!(
            "a chain of {} inputs and {} comparisons; expected two or more inputs and a \
             comparison between each two neighbours",
            inputs.len(),
            comparisons.len()
        )));
    }
    if algorithm == Algorithm::Auto {
        return Err(Error::unsupported(
            "algorithm=\"auto\" does not join chains pairwise; name one that does",
        ));
    }
    for &comparison in comparisons {
        algorithm.check(comparison)?;
    }
    let column = |(number, input): (usize, &ChainInput)| {
        let schema = input.table.schema();
        let index = schema.index_of(&input.column).map_err(|_| {
            let names: Vec<_> = schema.fields().iter().map(|field| field.name()).collect();
            Error::invalid(format!(
                "input {number} of the chain has no column {:?}; its columns are {names:?}",
                input.column
            ))
        })?;
        Ok(input.table.key_column(index, format!("column {:?} of input {number}", input.column)))
    };
    let columns = inputs.iter().enumerate().map(column).collect::<Result<Vec<_>>>()?;
    Ok(PairwiseChain {
        columns: ordered_keys(&columns)?,
        comparisons: comparisons.to_vec(),
        algorithm,
    })
}

impl PairwiseChain {
    /// The steps, the last of which has the chain's results; its tuples are not built.
    ///
    /// The run's metrics get the sums over all steps.
    pub fn count(&self, run: &Run) -> Result<Vec<ChainStep>> {
        let begun = Instant::now();
        let (mut steps, partial) = self.partial(run)?;
        let last = self.step(&partial, run)?;
        last.count()?;
        steps.push(last.finish(&run.metrics));
        run.metrics.set("seconds", Metric::Real(begun.elapsed().as_secs_f64()));
        Ok(steps)
    }

    /// The chain's tuples; all steps but the last have run when this returns.
    pub fn tuples(&self, run: &Run) -> Result<Tuples> {
        let (steps, partial) = self.partial(run)?;
        let last = self.step(&partial, run)?;
        let matches = Some(last.matches()?);
        Ok(Tuples { partial, last: Some(last), matches, steps, metrics: Arc::clone(&run.metrics) })
    }

    /// Runs all steps but the last.
    fn partial(&self, run: &Run) -> Result<(Vec<ChainStep>, Partial)> {
        let rows = self.columns[0].len();
        let mut partial = Partial { rows: vec![(0..rows as u32).collect()] };
        let mut steps = Vec::new();
        for number in 1..self.comparisons.len() {
            let step = self.step(&partial, run)?;
            let mut longer = Partial { rows: vec![Vec::new(); partial.rows.len() + 1] };
            for matches in step.matches()? {
                longer.extend(&partial, matches?);
                if longer.len() >= NO_ROW as usize {
                    return Err(Error::unsupported(format!(
                        "the first {} inputs of the chain have more than {} partial results, the \
                         most that can be joined pairwise",
                        number + 1,
                        NO_ROW - 1
                    )));
                }
            }
            steps.push(step.finish(&run.metrics));
            partial = longer;
        }
        Ok((steps, partial))
    }

    /// The step that joins `partial` with the next input.
    fn step(&self, partial: &Partial, run: &Run) -> Result<Step> {
        let next = partial.rows.len();
        let left = self.columns[next - 1].take(&partial.rows[next - 1]);
        let (comparison, right) = (self.comparisons[next - 1], &self.columns[next]);
        let partitioning = Arc::new(Partitioning::new(&left, comparison, right, self.algorithm)?);
        let run = Run {
            control: Arc::new(Control::part_of(&run.control)),
            metrics: Arc::default(),
            limit: None,
            ..run.clone()
        };
        Ok(Step { partitioning, loads: Arc::default(), run })
    }
}

/// A row number per input so far, column by column.
struct Partial {
    rows: Vec<Vec<u32>>,
}

impl Partial {
    fn len(&self) -> usize {
        self.rows[0].len()
    }

    /// Appends what `matches` pair: tuples of `shorter` and rows of the next input.
    fn extend(&mut self, shorter: &Self, matches: Matches) {
        let Matches::Pairs { left, right } = matches else {
            unreachable!("scans report pairs");
        };
        for (column, rows) in self.rows.iter_mut().zip(&shorter.rows) {
            column.extend(left.iter().map(|&tuple| rows[tuple as usize]));
        }
        if let Some(last) = self.rows.last_mut() {
            last.extend(right);
        }
    }
}

/// One step under way, with metrics of its own.
struct Step {
    partitioning: Arc<Partitioning>,
    loads: Arc<Loads>,
    run: Run,
}

impl Step {
    fn begin(&self) -> Arc<Tally> {
        let partitioning = &*self.partitioning;
        partitioning.report(&self.run.metrics, &self.loads);
        let (pairs, loads) = (partitioning.comparisons, Arc::clone(&self.loads));
        Tally::new(&self.run, &partitioning.keys, partitioning.given, pairs, Some(loads))
    }

    fn count(&self) -> Result<u128> {
        let (keys, products) = (Arc::clone(&self.partitioning.keys), self.partitioning.products());
        scan::count(keys, products, self.begin(), &self.run)
    }

    fn matches(&self) -> Result<Ordered<Box<dyn MatchTask>, Matches>> {
        let (keys, products) = (Arc::clone(&self.partitioning.keys), self.partitioning.products());
        scan::matches(keys, products, self.begin(), AT_ONCE, &self.run)
    }

    /// Adds to the metrics of the whole chain what adds up over steps.
    fn finish(&self, metrics: &Metrics) -> ChainStep {
        let own = &self.run.metrics;
        for name in ["comparisons", "cartesian_products", "results", "pairs_kept", "pairs_dropped"]
        {
            metrics.add(name, own.count(name));
        }
        metrics.add_real("partition_seconds", self.partitioning.seconds);
        ChainStep {
            cartesian_products: own.count("cartesian_products"),
            results: own.count("results"),
            load_balance_in: self.loads.balance_in(),
            load_balance_out: self.loads.balance_out(),
        }
    }
}

/// The tuples of a chain, some at a time: a vector of row numbers per input.
pub struct Tuples {
    partial: Partial,
    last: Option<Step>,
    matches: Option<Ordered<Box<dyn MatchTask>, Matches>>,
    steps: Vec<ChainStep>,
    metrics: Arc<Metrics>,
}

impl Tuples {
    /// The steps that have ended: all of them once there are no more tuples.
    pub fn steps(&self) -> &[ChainStep] {
        &self.steps
    }
}

impl Iterator for Tuples {
    type Item = Result<Vec<Vec<u32>>>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.matches.as_mut()?.next() {
            Some(Ok(matches)) => {
                let mut tuples = Partial { rows: vec![Vec::new(); self.partial.rows.len() + 1] };
                tuples.extend(&self.partial, matches);
                Some(Ok(tuples.rows))
            }
            ended => {
                self.matches = None;
                if let Some(last) = self.last.take() {
                    self.steps.push(last.finish(&self.metrics));
                }
                ended.and_then(Result::err).map(Err)
            }
        }
    }
}
