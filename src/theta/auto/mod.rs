//! The default algorithm: sort once, then list matches instead of looking for them.
//!
//! | predicate | strategy | matches of a row |
//! |---|---|---|
//! | equality only; one inequality, `!=`; a band; several on one column | [slices](super::slices) | one or two slices of the other side |
//! | intervals that overlap | slices, from both sides | those that begin inside it; those it begins inside of |
//! | two inequalities | [sweep](super::sweep) | listed from a bit set |
//! | more | sweep or slices over the most selective ones | what the others accept |
//!
//! Except for the last line, how many rows come out is known before anything is built.
//! Where each row's partners are slices and there are many of them, the sliced table is put into
//! key order once and matches are copied as stretches.
//!
//! Output order: the matches, by driving row (left row, but for the cases below) and then by key
//! of the other side; behind them left rows without a match, then right rows without one, in row
//! order. Overlaps come by begin of the left and then of the right interval; sweeps by the key of
//! the first inequality.

mod listing;
mod strategy;

use std::sync::Arc;
use std::time::Instant;

use arrow_schema::SchemaRef;

use super::plan::ThetaPlan;
use super::ranked::Ranked;
use crate::control::{Control, interruptible};
use crate::metrics::Metric;
use crate::once::Once;
use crate::operator::{Operator, Run};
use crate::ordered::Ordered;
use crate::output::{BatchStream, Caps, MatchTask, Matches};
use crate::predicate::JoinKind;
use crate::table::Table;
use crate::workers::pool;
use crate::{Error, Result};
pub(super) use listing::reordered;
use listing::{Alone, Named, Names, match_tasks};
use strategy::Prepared;

/// The default theta join over two tables.
pub(super) struct Auto {
    plan: Arc<ThetaPlan>,
    left: Arc<Table>,
    right: Arc<Table>,
    prepared: Once<Arc<Prepared>>,
    named: Once<Arc<Named>>,
}

impl Auto {
    pub(super) fn new(plan: ThetaPlan, left: Arc<Table>, right: Arc<Table>) -> Self {
        Self { plan: Arc::new(plan), left, right, prepared: Once::new(), named: Once::new() }
    }

    fn prepared(&self, run: &Run) -> Result<Arc<Prepared>> {
        self.prepared.get(&run.control, || {
            let (plan, left, right) =
                (Arc::clone(&self.plan), Arc::clone(&self.left), Arc::clone(&self.right));
            let threads = run.threads;
            let work = move || {
                pool(threads)?.install(|| Ranked::new(&plan, &left, &right).map(Prepared::new))
            };
            let made = interruptible(&run.control, work)?;
            let (name, candidates) = (made.strategy.name(), made.strategy.candidates());
            log::debug!("{}: {name}, {candidates} candidates", self.plan);
            Ok(Arc::new(made))
        })
    }

    fn named(&self, prepared: &Arc<Prepared>, run: &Run) -> Result<Arc<Named>> {
        self.named.get(&run.control, || {
            let (layout, prepared) = (self.plan.layout.clone(), Arc::clone(prepared));
            let inputs = [Arc::clone(&self.left), Arc::clone(&self.right)];
            let work = move || Named::new(layout, inputs, &prepared);
            interruptible(&run.control, work).map(Arc::new)
        })
    }

    /// Rows of a side that have no partner (`wanted` false) or have one, in row order.
    fn rows_by_match(
        &self,
        prepared: &Prepared,
        run: &Run,
        side: usize,
        wanted: bool,
    ) -> Result<Vec<u32>> {
        let mut has = vec![false; [&self.left, &self.right][side].num_rows()];
        match &prepared.matched {
            Some(matched) => {
                let ranked = [&prepared.ranked.left, &prepared.ranked.right][side];
                for (&row, &matched) in ranked.rows.iter().zip(&matched[side]) {
                    has[row as usize] = matched;
                }
            }
            // No shorter way is known than to list all matches.
            None => {
                for matches in self.list(prepared, run)? {
                    let Matches::Pairs { left, right } = matches? else {
                        return Err(Error::internal("candidates are checked pair by pair"));
                    };
                    [left, right][side].iter().for_each(|&row| has[row as usize] = true);
                }
            }
        }
        Ok((0..has.len() as u32).filter(|&row| has[row as usize] == wanted).collect())
    }

    /// All matches as pairs of rows of the inputs, in order.
    fn list(&self, prepared: &Prepared, run: &Run) -> Result<Ordered<Box<dyn MatchTask>, Matches>> {
        let names = Names::of_inputs(&prepared.ranked);
        // A pass of its own: when it ends, the run goes on.
        let control = Arc::new(Control::part_of(&run.control));
        control.expect(prepared.strategy.candidates());
        let at_once = Caps::default().rows;
        let tasks = match_tasks(prepared, &names, at_once as u64, &control);
        let step = move |task: &mut Box<dyn MatchTask>| task.next(at_once);
        Ordered::new(tasks.into_iter(), step, run.threads, control)
    }

    fn count_pairs(&self, prepared: &Prepared, run: &Run) -> Result<u64> {
        match prepared.pairs() {
            Some(pairs) => Ok(pairs),
            None => self.list(prepared, run)?.map(|m| m.map(|m| m.len() as u64)).sum(),
        }
    }

    fn report_rows(&self, prepared: &Prepared, run: &Run) {
        let metrics = &run.metrics;
        metrics.add("rows_left", self.left.num_rows() as u64);
        metrics.add("rows_right", self.right.num_rows() as u64);
        if let Some(matched) = &prepared.matched {
            let names = [("matched_left", "unmatched_left"), ("matched_right", "unmatched_right")];
            let rows = [self.left.num_rows(), self.right.num_rows()];
            for ((flags, (matched, unmatched)), rows) in matched.iter().zip(names).zip(rows) {
                let count = flags.iter().filter(|&&flag| flag).count();
                metrics.add(matched, count as u64);
                metrics.add(unmatched, (rows - count) as u64);
            }
        }
    }
}

/// Tasks that list all matches as pairs of rows of the inputs, and how they find them.
pub(super) struct Pairs {
    prepared: Prepared,
}

impl Pairs {
    pub(super) fn new(ranked: Ranked) -> Self {
        Self { prepared: Prepared::new(ranked) }
    }

    /// How matches are found, for people to read.
    pub(super) fn explain(&self) -> String {
        let strategy = &self.prepared.strategy;
        format!(
            "{}; {} candidates, on which {} more terms are checked",
            strategy.name(),
            strategy.candidates(),
            self.prepared.remaining.len()
        )
    }

    /// The tasks, which tell `control` how much they do.
    pub(super) fn tasks(&self, at_once: usize, control: &Arc<Control>) -> Vec<Box<dyn MatchTask>> {
        control.expect(self.prepared.strategy.candidates());
        let names = Names::of_inputs(&self.prepared.ranked);
        match_tasks(&self.prepared, &names, at_once as u64, control)
    }
}

impl Operator for Auto {
    fn schema(&self) -> &SchemaRef {
        self.plan.layout.schema()
    }

    fn stream(&self, run: &Run) -> Result<BatchStream> {
        let prepared = self.prepared(run)?;
        self.report_rows(&prepared, run);
        let kind = self.plan.spec.kind;
        let lists = !matches!(kind, JoinKind::Semi | JoinKind::Anti);
        let named = self.named(&prepared, run)?;
        let (assembler, names) = (Arc::clone(&named.assembler), &named.names);
        let at_once = assembler.batch_rows(run.caps) as u64;
        let mut tasks = Vec::new();
        if lists {
            run.control.expect(prepared.strategy.candidates());
            tasks = match_tasks(&prepared, names, at_once, &run.control);
        }
        let wanted: &[(usize, bool)] = match kind {
            JoinKind::Inner => &[],
            JoinKind::Left => &[(0, false)],
            JoinKind::Right => &[(1, false)],
            JoinKind::Full => &[(0, false), (1, false)],
            JoinKind::Semi => &[(0, true)],
            JoinKind::Anti => &[(0, false)],
        };
        for &(side, matched) in wanted {
            let mut rows = self.rows_by_match(&prepared, run, side, matched)?;
            if let Some(moved) = &names.moved[side] {
                rows.iter_mut().for_each(|row| *row = moved[*row as usize]);
            }
            for rows in rows.chunks(at_once as usize) {
                tasks.push(Box::new(Alone { rows: rows.to_vec(), left: side == 0 }));
            }
        }
        BatchStream::new(assembler, tasks.into_iter(), run)
    }

    fn count(&self, run: &Run) -> Result<u128> {
        let begun = Instant::now();
        let prepared = self.prepared(run)?;
        self.report_rows(&prepared, run);
        let alone = |side, matched| -> Result<u64> {
            Ok(self.rows_by_match(&prepared, run, side, matched)?.len() as u64)
        };
        let rows = match self.plan.spec.kind {
            JoinKind::Inner => self.count_pairs(&prepared, run)?,
            JoinKind::Left => self.count_pairs(&prepared, run)? + alone(0, false)?,
            JoinKind::Right => self.count_pairs(&prepared, run)? + alone(1, false)?,
            JoinKind::Full => {
                self.count_pairs(&prepared, run)? + alone(0, false)? + alone(1, false)?
            }
            JoinKind::Semi => alone(0, true)?,
            JoinKind::Anti => alone(0, false)?,
        };
        run.control.look()?;
        run.metrics.add("rows_out", rows);
        run.metrics.set("seconds", Metric::Real(begun.elapsed().as_secs_f64()));
        Ok(rows.into())
    }

    fn explain(&self, run: &Run) -> Result<String> {
        let prepared = self.prepared(run)?;
        let pairs = match prepared.pairs() {
            Some(pairs) => format!("{pairs} pairs match"),
            None => format!(
                "{} candidates, on which {} more terms are checked",
                prepared.strategy.candidates(),
                prepared.remaining.len()
            ),
        };
        let side = |name: &str, table: &Table, live: usize| {
            let (rows, null) = (table.num_rows(), table.num_rows() - live);
            format!("  {name:<10} {rows} rows, {null} of them with a null key\n")
        };
        Ok(format!(
            "{}\n  algorithm  auto: {}; {pairs}\n{}{}  threads    {}\n",
            self.plan,
            prepared.strategy.name(),
            side("left", &self.left, prepared.ranked.left.len()),
            side("right", &self.right, prepared.ranked.right.len()),
            run.threads,
        ))
    }
}
