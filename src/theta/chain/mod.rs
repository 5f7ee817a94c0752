//! Chains: each input is compared with the next, `r >= s < t`. Inner, of any length.
//!
//! The default algorithm knows no intermediate results:
//!
//! ```text
//! keys.rs      columns become keys, link by link; rows with a null are set aside
//! bounds.rs    least and greatest keys travel along the chain and rule out rows
//! stages.rs    every input but the first is sorted once; ways to go on from each row are counted
//! listing.rs   any stretch of the tuples, by number: rows of each input, and runs of the last
//! ```
//!
//! Between neighbours there may be several comparisons, as long as all are with one column of the
//! later input (or, everywhere in the chain, with one of the earlier: then it is walked from its
//! end). Equality columns that all inputs have split everything into groups.
//!
//! Output order: by row of the first input, then by key of the second among its partners, then by
//! key of the third, and so on; ties by row. A chain that is walked from its end: by row of the
//! last input, then by key of the one before it, and so on.
//!
//! Cost: sorting every input, then the output; counting needs no output. Counts have 128 bits.
//!
//! Under the algorithms of the papers chains are joined pairwise, see [`pairwise`].

mod bounds;
mod keys;
mod listing;
mod pairwise;
mod plan;
mod stages;

use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

use arrow_schema::SchemaRef;

pub use plan::{ChainPlan, ChainSpec};

use crate::Result;
use crate::control::interruptible;
use crate::metrics::{Metric, Metrics};
use crate::once::Once;
use crate::operator::{Operator, Run};
use crate::output::{Assembler, BatchStream, MatchTask};
use crate::table::Table;
use crate::workers::pool;
use keys::ChainKeys;
use listing::{ChainTask, assembler};
use stages::{Stage, arrange};

/// The default chain join.
struct Chain {
    plan: Arc<ChainPlan>,
    inputs: Vec<Arc<Table>>,
    stages: Once<Arc<Vec<Stage>>>,
    assembler: Once<Arc<Assembler>>,
}

impl Chain {
    fn new(plan: ChainPlan, inputs: Vec<Arc<Table>>) -> Self {
        Self { plan: Arc::new(plan), inputs, stages: Once::new(), assembler: Once::new() }
    }

    fn stages(&self, run: &Run) -> Result<Arc<Vec<Stage>>> {
        self.stages.get(&run.control, || {
            let (plan, inputs, threads) =
                (Arc::clone(&self.plan), self.inputs.clone(), run.threads);
            let work =
                move || pool(threads)?.install(|| ChainKeys::new(&plan, &inputs).and_then(arrange));
            let stages = interruptible(&run.control, work)?;
            log::debug!("{}: {} rows", self.plan, stages[0].total());
            Ok(Arc::new(stages))
        })
    }

    fn assembler(&self, stages: &Arc<Vec<Stage>>, run: &Run) -> Result<Arc<Assembler>> {
        self.assembler.get(&run.control, || {
            let (layout, inputs) = (self.plan.layout.clone(), self.inputs.clone());
            let stages = Arc::clone(stages);
            let work = move || assembler(layout, inputs, &stages[stages.len() - 1]);
            interruptible(&run.control, work).map(Arc::new)
        })
    }

    /// Rows are conserved: each takes part in a tuple, was ruled out by bounds, or did not match.
    fn report_rows(&self, stages: &[Stage], metrics: &Metrics) {
        report_inputs(&self.inputs, metrics);
        for stage in stages {
            let (input, rows) = (stage.input, self.inputs[stage.input].num_rows());
            let unmatched = rows - stage.matched - stage.filtered;
            metrics.add(format!("matched_{input}"), stage.matched as u64);
            metrics.add(format!("filtered_{input}"), stage.filtered as u64);
            metrics.add(format!("unmatched_{input}"), unmatched as u64);
        }
    }
}

/// Counts the rows of each input.
fn report_inputs(inputs: &[Arc<Table>], metrics: &Metrics) {
    for (input, table) in inputs.iter().enumerate() {
        metrics.add(format!("rows_{input}"), table.num_rows() as u64);
    }
}

/// Reports a number of rows; beyond 64 bits a metric is not exact.
fn report_count(rows: u128, begun: Instant, metrics: &Metrics) {
    let count = u64::try_from(rows).map_or(Metric::Real(rows as f64), Metric::Count);
    metrics.set("rows_out", count);
    metrics.set("seconds", Metric::Real(begun.elapsed().as_secs_f64()));
}

/// 0..total in pieces of `size`, as many as anybody will live to see.
fn pieces(total: u128, size: u128) -> impl Iterator<Item = std::ops::Range<u128>> {
    let count = u64::try_from(total.div_ceil(size)).unwrap_or(u64::MAX);
    (0..count).map(move |number| {
        let begin = u128::from(number) * size;
        begin..total.min(begin + size)
    })
}

impl Operator for Chain {
    fn schema(&self) -> &SchemaRef {
        self.plan.layout.schema()
    }

    fn stream(&self, run: &Run) -> Result<BatchStream> {
        let begun = Instant::now();
        let stages = self.stages(run)?;
        let assembler = self.assembler(&stages, run)?;
        self.report_rows(&stages, &run.metrics);
        let total = stages[0].total().min(run.limit.map_or(u128::MAX, u128::from));
        run.control.expect(u64::try_from(total).unwrap_or(u64::MAX));
        let (size, control) = (assembler.batch_rows(run.caps), Arc::clone(&run.control));
        let tasks = pieces(total, size as u128).map(move |wanted| {
            let (stages, control) = (Arc::clone(&stages), Arc::clone(&control));
            Box::new(ChainTask { stages, wanted, control }) as Box<dyn MatchTask>
        });
        Ok(BatchStream::new(assembler, tasks, run)?.begun_at(begun))
    }

    fn count(&self, run: &Run) -> Result<u128> {
        let begun = Instant::now();
        let stages = self.stages(run)?;
        self.report_rows(&stages, &run.metrics);
        run.control.look()?;
        report_count(stages[0].total(), begun, &run.metrics);
        Ok(stages[0].total())
    }

    fn explain(&self, run: &Run) -> Result<String> {
        let stages = self.stages(run)?;
        let names = &self.plan.spec.names;
        let mut text = format!(
            "{}\n  algorithm  auto: no intermediate results; {} rows come out\n",
            self.plan,
            stages[0].total()
        );
        let mut by_input: Vec<&Stage> = stages.iter().collect();
        by_input.sort_by_key(|stage| stage.input);
        for (stage, name) in by_input.iter().zip(names) {
            let (rows, live) = (self.inputs[stage.input].num_rows(), stage.keyed - stage.filtered);
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "  {name:<10} {rows} rows: {} with a null key, {} ruled out by bounds, {live} kept; \
                 {} take part",
                rows - stage.keyed,
                stage.filtered,
                stage.matched,
            );
        }
        let bytes: usize = stages.iter().map(Stage::bytes).sum();
        let first = &names[stages[0].input];
        let rest: Vec<&str> = stages[1..].iter().map(|stage| names[stage.input].as_str()).collect();
        let _ = write!(
            text,
            "  memory     {bytes} bytes beside the inputs\n  threads    {}\n  \
             order      by row of {first}, then by key of {}\n",
            run.threads,
            rest.join(", then of "),
        );
        Ok(text)
    }
}
