//! The nested loop: every left row against every right row. The baseline, and the oracle's twin.
//!
//! Rows with a null key are set aside first, so the loop itself knows no nulls: a block of right
//! keys is compared with one left key into a mask, term by term, and the mask read off.
//! Output order: left row, then right row. Cost: |left| × |right| comparisons.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use arrow_schema::SchemaRef;

use super::plan::{ThetaPlan, label};
use crate::Result;
use crate::key::{KeyColumn, Keys, NO_GROUP, equality_groups, ordered_keys};
use crate::metrics::Metric;
use crate::operator::{Operator, Run};
use crate::ordered::Ordered;
use crate::output::{Assembler, BatchStream, MatchTask, Matches};
use crate::predicate::Comparison;
use crate::table::Table;

/// Right keys looked at in one go: they stay in the nearest cache, and so does the mask.
const BLOCK: usize = 1024;
/// About how many pairs a task compares: small enough to balance, large enough not to notice.
const TASK_PAIRS: usize = 1 << 20;

/// A nested-loop join over two tables.
pub(super) struct NestedLoop {
    plan: ThetaPlan,
    left: Arc<Table>,
    right: Arc<Table>,
    keys: Arc<PairKeys>,
}

impl NestedLoop {
    pub(super) fn new(plan: ThetaPlan, left: Arc<Table>, right: Arc<Table>) -> Result<Self> {
        let keys = Arc::new(PairKeys::new(&plan, &left, &right)?);
        Ok(Self { plan, left, right, keys })
    }

    /// Ranges of left rows that make one task each.
    fn pieces(&self) -> impl Iterator<Item = Range<usize>> + Send + use<> {
        let (left, right) = (self.keys.left.rows.len(), self.keys.right.rows.len());
        let rows = (TASK_PAIRS / right.max(1)).max(1);
        (0..left).step_by(rows).map(move |begin| begin..(begin + rows).min(left))
    }

    fn begin(&self, run: &Run) -> Arc<Progress> {
        let pairs = self.keys.left.rows.len() as u64 * self.keys.right.rows.len() as u64;
        run.control.expect(pairs);
        run.metrics.add("rows_left", self.left.num_rows() as u64);
        run.metrics.add("rows_right", self.right.num_rows() as u64);
        log::debug!("{}: nested_loop, {pairs} comparisons on {} threads", self.plan, run.threads);
        let words = self.keys.right.rows.len().div_ceil(64);
        Arc::new(Progress {
            run: run.clone(),
            pairs,
            compared: AtomicU64::new(0),
            left_matched: AtomicU64::new(0),
            right_matched: (0..words).map(|_| AtomicU64::new(0)).collect(),
        })
    }
}

impl Operator for NestedLoop {
    fn schema(&self) -> &SchemaRef {
        self.plan.layout.schema()
    }

    fn stream(&self, run: &Run) -> Result<BatchStream> {
        let (left, right) = (Arc::clone(&self.left), Arc::clone(&self.right));
        let assembler = Arc::new(Assembler::new(self.plan.layout.clone(), left, right, run.caps));
        let (keys, progress) = (Arc::clone(&self.keys), self.begin(run));
        let tasks = self.pieces().map(move |rows| {
            Box::new(Scan::new(Arc::clone(&keys), rows, Arc::clone(&progress)))
                as Box<dyn MatchTask>
        });
        BatchStream::new(assembler, tasks, run)
    }

    fn count(&self, run: &Run) -> Result<u128> {
        let (keys, progress) = (Arc::clone(&self.keys), self.begin(run));
        let tasks = self
            .pieces()
            .map(move |rows| Scan::new(Arc::clone(&keys), rows, Arc::clone(&progress)));
        let begun = Instant::now();
        let counts = Ordered::new(tasks, Scan::count, run.threads, Arc::clone(&run.control))?;
        let rows = counts.sum::<Result<u64>>()?;
        run.metrics.add("rows_out", rows);
        run.metrics.set("seconds", Metric::Real(begun.elapsed().as_secs_f64()));
        Ok(rows.into())
    }

    fn explain(&self, run: &Run) -> Result<String> {
        let side = |name: &str, table: &Table, keys: &SideKeys| {
            let (rows, null) = (table.num_rows(), table.num_rows() - keys.rows.len());
            format!("  {name:<10} {rows} rows, {null} of them with a null key\n")
        };
        Ok(format!(
            "{}\n  algorithm  nested_loop: {} comparisons\n{}{}  threads    {}\n  \
             order      left row, then right row\n",
            self.plan,
            self.keys.left.rows.len() as u128 * self.keys.right.rows.len() as u128,
            side("left", &self.left, &self.keys.left),
            side("right", &self.right, &self.keys.right),
            run.threads,
        ))
    }
}

/// The keys of both sides, rows with a null key left out.
struct PairKeys {
    left: SideKeys,
    right: SideKeys,
    comparisons: Vec<Comparison>,
}

struct SideKeys {
    /// Row numbers in the table.
    rows: Vec<u32>,
    /// One entry per term.
    terms: Vec<Keys>,
    /// Equality group of each row, where the join has equality columns.
    groups: Option<Vec<u32>>,
}

impl PairKeys {
    fn new(plan: &ThetaPlan, left: &Table, right: &Table) -> Result<Self> {
        let column = |side: &str, table: &Table, index: usize| {
            table.key_column(index, label(side, table.schema(), index))
        };
        let mut left_terms = Vec::new();
        let mut right_terms = Vec::new();
        for term in &plan.terms {
            let pair = [column("left", left, term.left), column("right", right, term.right)];
            let [l, r] = <[KeyColumn; 2]>::try_from(ordered_keys(&pair)?)
                .map_err(|_| crate::Error::internal("two columns in, not two out"))?;
            left_terms.push(l);
            right_terms.push(r);
        }
        let groups = if plan.by.is_empty() {
            [None, None]
        } else {
            let sides = [
                plan.by.iter().map(|&(l, _)| column("left", left, l)).collect(),
                plan.by.iter().map(|&(_, r)| column("right", right, r)).collect(),
            ];
            let [l, r] = <[Vec<u32>; 2]>::try_from(equality_groups(&sides)?.ids)
                .map_err(|_| crate::Error::internal("two sides in, not two out"))?;
            [Some(l), Some(r)]
        };
        let [left_groups, right_groups] = groups;
        Ok(Self {
            left: SideKeys::new(left.num_rows(), left_terms, left_groups),
            right: SideKeys::new(right.num_rows(), right_terms, right_groups),
            comparisons: plan.terms.iter().map(|term| term.comparison).collect(),
        })
    }

    /// Marks in `mask` which of the right rows `block` go with left row `left`.
    fn compare(&self, left: usize, block: Range<usize>, mask: &mut [u8]) {
        match (&self.left.groups, &self.right.groups) {
            (Some(l), Some(r)) => {
                let group = l[left];
                for (mark, other) in mask.iter_mut().zip(&r[block.clone()]) {
                    *mark = u8::from(group == *other);
                }
            }
            _ => mask.fill(1),
        }
        let terms = self.left.terms.iter().zip(&self.right.terms).zip(&self.comparisons);
        for ((l, r), &comparison) in terms {
            match (l, r) {
                (Keys::U64(l), Keys::U64(r)) => {
                    narrow(mask, l[left], &r[block.clone()], comparison);
                }
                (Keys::U128(l), Keys::U128(r)) => {
                    narrow(mask, l[left], &r[block.clone()], comparison);
                }
                _ => unreachable!("keys that are compared have one width"),
            }
        }
    }
}

fn narrow<T: Ord + Copy>(mask: &mut [u8], left: T, right: &[T], comparison: Comparison) {
    let pairs = mask.iter_mut().zip(right);
    match comparison {
        Comparison::Less => pairs.for_each(|(mark, &right)| *mark &= u8::from(left < right)),
        Comparison::LessOrEqual => {
            pairs.for_each(|(mark, &right)| *mark &= u8::from(left <= right))
        }
        Comparison::Greater => pairs.for_each(|(mark, &right)| *mark &= u8::from(left > right)),
        Comparison::GreaterOrEqual => {
            pairs.for_each(|(mark, &right)| *mark &= u8::from(left >= right));
        }
        Comparison::NotEqual => pairs.for_each(|(mark, &right)| *mark &= u8::from(left != right)),
    }
}

impl SideKeys {
    fn new(rows: usize, terms: Vec<KeyColumn>, groups: Option<Vec<u32>>) -> Self {
        let lives = |row: &u32| {
            let row = *row as usize;
            terms.iter().all(|term| !term.is_null(row))
                && groups.as_ref().is_none_or(|ids| ids[row] != NO_GROUP)
        };
        let rows: Vec<u32> = (0..rows as u32).filter(lives).collect();
        let compact = |term: &KeyColumn| match &term.keys {
            Keys::U64(keys) => Keys::U64(rows.iter().map(|&row| keys[row as usize]).collect()),
            Keys::U128(keys) => Keys::U128(rows.iter().map(|&row| keys[row as usize]).collect()),
        };
        let terms = terms.iter().map(compact).collect();
        let groups = groups.map(|ids| rows.iter().map(|&row| ids[row as usize]).collect());
        Self { rows, terms, groups }
    }
}

/// What all scans of one run report to.
struct Progress {
    run: Run,
    pairs: u64,
    compared: AtomicU64,
    left_matched: AtomicU64,
    /// A bit for each right row that found a partner.
    right_matched: Vec<AtomicU64>,
}

impl Progress {
    fn matched_right(&self, place: usize) {
        let (word, bit) = (&self.right_matched[place / 64], 1 << (place % 64));
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }
}

impl Drop for Progress {
    /// The last scan of a run is gone. Which rows matched is known only if all were looked at.
    fn drop(&mut self) {
        if *self.compared.get_mut() < self.pairs {
            return;
        }
        let metrics = &self.run.metrics;
        let ones = self.right_matched.iter_mut().map(|word| u64::from(word.get_mut().count_ones()));
        let (left, right) = (*self.left_matched.get_mut(), ones.sum());
        metrics.add("matched_left", left);
        metrics.add("unmatched_left", metrics.count("rows_left") - left);
        metrics.add("matched_right", right);
        metrics.add("unmatched_right", metrics.count("rows_right") - right);
    }
}

/// One task: some left rows against all right rows, resumable at any pair.
struct Scan {
    keys: Arc<PairKeys>,
    rows: Range<usize>,
    /// The right row to go on with, for the first of `rows`.
    place: usize,
    /// Whether the first of `rows` has found a partner already.
    matched: bool,
    progress: Arc<Progress>,
}

impl Scan {
    fn new(keys: Arc<PairKeys>, rows: Range<usize>, progress: Arc<Progress>) -> Self {
        Self { keys, rows, place: 0, matched: false, progress }
    }

    /// Compares on until `found`, called with each matching (left, right), says stop or all is
    /// done; returns how often it was called.
    fn scan(&mut self, mut found: impl FnMut(u32, u32) -> bool) -> Result<u64> {
        let keys = Arc::clone(&self.keys);
        let right = &keys.right.rows;
        let mut mask = [0; BLOCK];
        let (mut matches, mut compared, mut left_matched) = (0, 0, 0);
        let mut go_on = true;
        while go_on && !self.rows.is_empty() {
            let left = self.rows.start;
            while go_on && self.place < right.len() {
                let block = self.place..(self.place + BLOCK).min(right.len());
                let marks = &mut mask[..block.len()];
                keys.compare(left, block.clone(), marks);
                compared += block.len() as u64;
                self.place = block.end;
                for (offset, _) in marks.iter().enumerate().filter(|(_, mark)| **mark != 0) {
                    matches += 1;
                    left_matched += u64::from(!std::mem::replace(&mut self.matched, true));
                    self.progress.matched_right(block.start + offset);
                    go_on &= found(keys.left.rows[left], right[block.start + offset]);
                }
            }
            if self.place == right.len() {
                self.rows.start += 1;
                self.place = 0;
                self.matched = false;
            }
            self.progress.run.control.check()?;
        }
        self.progress.run.control.advance(compared);
        self.progress.run.metrics.add("comparisons", compared);
        self.progress.compared.fetch_add(compared, Ordering::Relaxed);
        self.progress.left_matched.fetch_add(left_matched, Ordering::Relaxed);
        Ok(matches)
    }

    fn count(&mut self) -> Result<Option<u64>> {
        if self.rows.is_empty() { Ok(None) } else { self.scan(|_, _| true).map(Some) }
    }
}

impl MatchTask for Scan {
    fn next(&mut self, limit: usize) -> Result<Option<Matches>> {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        if !self.rows.is_empty() {
            self.scan(|l, r| {
                left.push(l);
                right.push(r);
                left.len() < limit
            })?;
        }
        Ok((!left.is_empty()).then_some(Matches::Pairs { left, right }))
    }
}
