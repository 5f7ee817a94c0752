//! Chains joined pairwise, as the source's figure 4 runs them: `r >= s < t` joins r with s, then
//! that result with t. For the algorithms of the papers, whose products add up over the steps.
//!
//! Between steps a partial result is a row number per input and nothing else, so payload is never
//! built; the last step is counted, or handed out while it runs.
//!
//! ```text
//! inputs        r        s        t        u
//! step 0        └── θ₀ ──┘        │        │          pairs of rows of r, s
//! step 1            └──── θ₁ ─────┘        │          by the keys of s; triples
//! step 2                 └────── θ₂ ───────┘          by the keys of t; counted, or handed out
//! ```
//!
//! Order of the output: that of the last step, with the partial result for its left side; see
//! [`partitioned`](super::super::partitioned). Memory: all partial results but the last, four
//! bytes per input and tuple.
//!
//! **Metrics**: those of a join of two, added up over the steps (`results` too, as the source's
//! table 4 has it); `load_balance_in` and `load_balance_out` over all of them.

use std::sync::Arc;
use std::time::Instant;

use arrow_schema::SchemaRef;

use super::super::balance::Loads;
use super::super::partitioned::describe;
use super::super::partitioned::scheme::Partitioning;
use super::super::scan::{self, Tally};
use super::plan::ChainPlan;
use super::{report_count, report_inputs};
use crate::control::{Control, interruptible};
use crate::key::{KeyColumn, ordered_keys};
use crate::metrics::{Metric, Metrics};
use crate::operator::{Operator, Run};
use crate::output::{Assembler, BatchStream, MatchTask, Matches};
use crate::predicate::Comparison;
use crate::table::{NO_ROW, Table};
use crate::{Error, Result};

/// Matches that travel together.
const AT_ONCE: usize = 1 << 16;

/// A chain that is joined step by step.
pub(super) struct Pairwise {
    plan: ChainPlan,
    inputs: Vec<Arc<Table>>,
    links: Vec<Arc<Link>>,
    assembler: Arc<Assembler>,
}

/// The keys that neighbours are compared by.
struct Link {
    left: KeyColumn,
    comparison: Comparison,
    right: KeyColumn,
}

impl Pairwise {
    /// Encodes the key columns; `plan` has one term for each link.
    pub(super) fn new(plan: ChainPlan, inputs: Vec<Arc<Table>>) -> Result<Self> {
        let mut links = Vec::with_capacity(plan.links.len());
        for (number, link) in plan.links.iter().enumerate() {
            let [term] = link[..] else {
                return Err(Error::internal("one term was checked, not one found"));
            };
            let column = |input: usize, index: usize| {
                inputs[input].key_column(index, plan.label(&inputs, input, index))
            };
            let columns = [column(number, term.left), column(number + 1, term.right)];
            let [left, right] = <[KeyColumn; 2]>::try_from(ordered_keys(&columns)?)
                .map_err(|_| Error::internal("two columns in, not two out"))?;
            links.push(Arc::new(Link { left, comparison: term.comparison, right }));
        }
        let assembler = Arc::new(Assembler::of_many(plan.layout.clone(), inputs.clone()));
        Ok(Self { plan, inputs, links, assembler })
    }

    /// Runs all steps but the last.
    fn partial(&self, run: &Run, loads: &Arc<Loads>) -> Result<Partial> {
        let rows = self.inputs[0].num_rows() as u32;
        let mut partial = Partial { rows: vec![(0..rows).collect()] };
        for number in 1..self.links.len() {
            let control = Arc::new(Control::part_of(&run.control));
            let step = self.step(&partial, control, run, loads)?;
            let mut longer = Partial { rows: vec![Vec::new(); partial.rows.len() + 1] };
            for matches in step.matches()? {
                longer.extend(&partial, matches?);
                if longer.len() >= NO_ROW as usize {
                    return Err(Error::unsupported(format!(
                        "the first {} inputs of the chain have more than {} partial results, the \
                         most that can be joined pairwise: use the default algorithm",
                        number + 1,
                        NO_ROW - 1
                    )));
                }
            }
            partial = longer;
        }
        Ok(partial)
    }

    /// The step that joins `partial` with the next input.
    fn step(
        &self,
        partial: &Partial,
        control: Arc<Control>,
        run: &Run,
        loads: &Arc<Loads>,
    ) -> Result<Step> {
        let number = partial.rows.len() - 1;
        let (link, algorithm) = (Arc::clone(&self.links[number]), self.plan.spec.algorithm);
        let left = link.left.take(&partial.rows[number]);
        let work = move || Partitioning::new(&left, link.comparison, &link.right, algorithm);
        let partitioning = Arc::new(interruptible(&run.control, work)?);
        let own = Run { control, metrics: Arc::default(), limit: None, ..run.clone() };
        let (loads, sums) = (Arc::clone(loads), Arc::clone(&run.metrics));
        Ok(Step { partitioning, loads, run: own, sums })
    }
}

impl Operator for Pairwise {
    fn schema(&self) -> &SchemaRef {
        self.plan.layout.schema()
    }

    fn stream(&self, run: &Run) -> Result<BatchStream> {
        let begun = Instant::now();
        report_inputs(&self.inputs, &run.metrics);
        let loads = Arc::default();
        let partial = Arc::new(self.partial(run, &loads)?);
        let step = Arc::new(self.step(&partial, Arc::clone(&run.control), run, &loads)?);
        let tasks = step.tasks().map(move |pairs| {
            let (step, partial) = (Arc::clone(&step), Arc::clone(&partial));
            Box::new(TupleTask { pairs, partial, _step: step }) as Box<dyn MatchTask>
        });
        Ok(BatchStream::new(Arc::clone(&self.assembler), tasks, run)?.begun_at(begun))
    }

    fn count(&self, run: &Run) -> Result<u128> {
        let begun = Instant::now();
        report_inputs(&self.inputs, &run.metrics);
        let loads = Arc::default();
        let partial = self.partial(run, &loads)?;
        let rows = self.step(&partial, Arc::clone(&run.control), run, &loads)?.count()?;
        report_count(rows, begun, &run.metrics);
        Ok(rows)
    }

    fn explain(&self, run: &Run) -> Result<String> {
        let names = &self.plan.spec.names;
        let rows = |(name, table): (&String, &Arc<Table>)| {
            format!("  {name:<10} {} rows\n", table.num_rows())
        };
        let rest: Vec<&str> = names[1..].iter().map(String::as_str).collect();
        Ok(format!(
            "{}\n  algorithm  {}\n{}  steps      {}: {} with {}\n  threads    {}\n  \
             order      that of the last step\n",
            self.plan,
            describe(self.plan.spec.algorithm),
            names.iter().zip(&self.inputs).map(rows).collect::<String>(),
            self.links.len(),
            names[0],
            rest.join(", that with "),
            run.threads,
        ))
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

/// One step under way, with metrics of its own; when it has gone, they are in the chain's sums.
struct Step {
    partitioning: Arc<Partitioning>,
    loads: Arc<Loads>,
    run: Run,
    sums: Arc<Metrics>,
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

    fn tasks(&self) -> impl Iterator<Item = Box<dyn MatchTask>> + Send + 'static {
        let (keys, products) = (Arc::clone(&self.partitioning.keys), self.partitioning.products());
        scan::match_tasks(keys, products, self.begin())
    }

    fn matches(&self) -> Result<crate::ordered::Ordered<Box<dyn MatchTask>, Matches>> {
        let (keys, products) = (Arc::clone(&self.partitioning.keys), self.partitioning.products());
        scan::matches(keys, products, self.begin(), AT_ONCE, &self.run)
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        let own = &self.run.metrics;
        for name in ["comparisons", "cartesian_products", "results", "pairs_kept", "pairs_dropped"]
        {
            self.sums.add(name, own.count(name));
        }
        self.sums.add_real("partition_seconds", self.partitioning.seconds);
        self.sums.set("load_balance_in", Metric::Real(self.loads.balance_in()));
        self.sums.set("load_balance_out", Metric::Real(self.loads.balance_out()));
    }
}

/// A task of the last step, whose left rows are tuples.
struct TupleTask {
    pairs: Box<dyn MatchTask>,
    partial: Arc<Partial>,
    _step: Arc<Step>,
}

impl MatchTask for TupleTask {
    fn next(&mut self, limit: usize) -> Result<Option<Matches>> {
        Ok(self.pairs.next(limit)?.map(|matches| {
            let mut tuples = Partial { rows: vec![Vec::new(); self.partial.rows.len() + 1] };
            tuples.extend(&self.partial, matches);
            Matches::Tuples { rows: tuples.rows }
        }))
    }
}
