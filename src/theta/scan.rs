//! Cartesian products on worker threads: the kernel of every algorithm that compares row by row.
//!
//! The keys of both sides lie in vectors, rows with a null key left out, so the loop itself knows
//! no nulls: a block of right keys is compared with one left key into a mask, term by term, and
//! the mask read off. A [`Product`] is a stretch of one side against a stretch of the other; what
//! an algorithm decides is how rows are arranged and which products are made.
//!
//! Output order: products as they are given; within each, left place, then right place.
//! Every pair of a product is compared, and each comparison counted.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::balance::{Loads, WORKERS};
use crate::Result;
use crate::key::{KeyColumn, Keys, NO_GROUP};
use crate::metrics::Metric;
use crate::operator::Run;
use crate::ordered::Ordered;
use crate::output::{Assembler, BatchStream, MatchTask, Matches};
use crate::predicate::Comparison;

/// Right keys looked at in one go: they stay in the nearest cache, and so does the mask.
const BLOCK: usize = 1024;
/// About how many pairs a task compares: small enough to balance, large enough not to notice.
const TASK_PAIRS: usize = 1 << 20;
/// Most products of one task, however small they are.
const TASK_PRODUCTS: usize = 1 << 12;

/// A stretch of left places against a stretch of right places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Product {
    pub left: Range<usize>,
    pub right: Range<usize>,
    /// On whose account it goes, where loads are measured.
    pub worker: usize,
}

impl Product {
    pub fn pairs(&self) -> u64 {
        self.left.len() as u64 * self.right.len() as u64
    }
}

/// The keys of both sides, as they are compared.
pub(super) struct PairKeys {
    pub left: SideKeys,
    pub right: SideKeys,
    /// One entry per term.
    pub comparisons: Vec<Comparison>,
}

/// The keys of one side, in the order in which products name them.
pub(super) struct SideKeys {
    /// Row numbers in the table.
    pub rows: Vec<u32>,
    /// One entry per term.
    pub terms: Vec<Keys>,
    /// Equality group of each row, where the join has equality columns.
    pub groups: Option<Vec<u32>>,
}

impl PairKeys {
    /// Marks in `mask` which of the right places `block` go with left place `left`.
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
    /// The rows whose keys are not null, in row order.
    pub fn new(rows: usize, terms: &[KeyColumn], groups: Option<Vec<u32>>) -> Self {
        let lives = |row: &u32| {
            let row = *row as usize;
            terms.iter().all(|term| !term.is_null(row))
                && groups.as_ref().is_none_or(|ids| ids[row] != NO_GROUP)
        };
        let rows: Vec<u32> = (0..rows as u32).filter(lives).collect();
        let terms = terms.iter().map(|term| term.keys.take(&rows)).collect();
        let groups = groups.map(|ids| rows.iter().map(|&row| ids[row as usize]).collect());
        Self { rows, terms, groups }
    }
}

/// Rows of one side that a run was given, and how many of them it set aside before comparing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Given {
    pub rows: usize,
    pub filtered: Option<usize>,
}

/// What all scans of one run report to.
pub(super) struct Tally {
    run: Run,
    given: [Given; 2],
    /// A bit for each place that found a partner, left and right.
    matched: [Vec<AtomicU64>; 2],
    loads: Option<Arc<Loads>>,
    pairs: u64,
    compared: AtomicU64,
    begun: Instant,
}

impl Tally {
    /// A tally of a run that makes `pairs` comparisons; `loads` says who works how much, if that
    /// is measured.
    pub fn new(
        run: &Run,
        keys: &PairKeys,
        given: [Given; 2],
        pairs: u64,
        loads: Option<Arc<Loads>>,
    ) -> Arc<Self> {
        run.control.expect(pairs);
        run.metrics.add("rows_left", given[0].rows as u64);
        run.metrics.add("rows_right", given[1].rows as u64);
        let bits = |side: &SideKeys| {
            (0..side.rows.len().div_ceil(64)).map(|_| AtomicU64::new(0)).collect()
        };
        Arc::new(Self {
            run: run.clone(),
            given,
            matched: [bits(&keys.left), bits(&keys.right)],
            loads,
            pairs,
            compared: AtomicU64::new(0),
            begun: Instant::now(),
        })
    }

    fn mark(&self, side: usize, place: usize) {
        let (word, bit) = (&self.matched[side][place / 64], 1 << (place % 64));
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }
}

impl Drop for Tally {
    /// The last scan of a run is gone. Which rows matched is known only if all were looked at.
    fn drop(&mut self) {
        if *self.compared.get_mut() < self.pairs {
            return;
        }
        const NAMES: [[&str; 3]; 2] = [
            ["matched_left", "unmatched_left", "filtered_left"],
            ["matched_right", "unmatched_right", "filtered_right"],
        ];
        let metrics = &self.run.metrics;
        for ((given, words), names) in self.given.iter().zip(&self.matched).zip(NAMES) {
            let ones = words.iter().map(|w| u64::from(w.load(Ordering::Relaxed).count_ones()));
            let (rows, matched) = (given.rows as u64, ones.sum());
            let filtered = given.filtered.unwrap_or(0) as u64;
            metrics.add(names[0], matched);
            metrics.add(names[1], rows - filtered - matched);
            if given.filtered.is_some() {
                metrics.add(names[2], filtered);
            }
        }
        metrics.set("seconds", Metric::Real(self.begun.elapsed().as_secs_f64()));
        if let Some(loads) = &self.loads {
            metrics.set("load_balance_in", Metric::Real(loads.balance_in()));
            metrics.set("load_balance_out", Metric::Real(loads.balance_out()));
        }
    }
}

/// No more threads than there will be tasks.
fn threads_for(tally: &Tally, run: &Run) -> usize {
    run.threads.min(tally.pairs.div_ceil(TASK_PAIRS as u64) as usize)
}

/// The matches of `products` as batches.
pub(super) fn stream(
    keys: Arc<PairKeys>,
    products: impl Iterator<Item = Product> + Send + 'static,
    tally: Arc<Tally>,
    assembler: Arc<Assembler>,
    run: &Run,
) -> Result<BatchStream> {
    let run = Run { threads: threads_for(&tally, run), ..run.clone() };
    BatchStream::new(assembler, match_tasks(keys, products, tally), &run)
}

/// Tasks that report the matches of `products`.
pub(super) fn match_tasks(
    keys: Arc<PairKeys>,
    products: impl Iterator<Item = Product> + Send + 'static,
    tally: Arc<Tally>,
) -> impl Iterator<Item = Box<dyn MatchTask>> + Send + 'static {
    Tasks::new(products).map(move |products| {
        Box::new(Scan::new(Arc::clone(&keys), products, Arc::clone(&tally))) as Box<dyn MatchTask>
    })
}

/// The number of matches of `products`.
pub(super) fn count(
    keys: Arc<PairKeys>,
    products: impl Iterator<Item = Product> + Send + 'static,
    tally: Arc<Tally>,
    run: &Run,
) -> Result<u128> {
    let threads = threads_for(&tally, run);
    let tasks = Tasks::new(products)
        .map(move |products| Scan::new(Arc::clone(&keys), products, Arc::clone(&tally)));
    let counts = Ordered::new(tasks, Scan::count, threads, Arc::clone(&run.control))?;
    let rows = counts.sum::<Result<u64>>()?;
    run.metrics.add("rows_out", rows);
    Ok(rows.into())
}

/// The matches of `products`, about `at_once` at a time.
pub(super) fn matches(
    keys: Arc<PairKeys>,
    products: impl Iterator<Item = Product> + Send + 'static,
    tally: Arc<Tally>,
    at_once: usize,
    run: &Run,
) -> Result<Ordered<Box<dyn MatchTask>, Matches>> {
    let step = move |task: &mut Box<dyn MatchTask>| task.next(at_once);
    let threads = threads_for(&tally, run);
    let tasks = match_tasks(keys, products, tally);
    Ordered::new(tasks, step, threads, Arc::clone(&run.control))
}

/// Products put together, or cut, into tasks of about [`TASK_PAIRS`].
struct Tasks<I> {
    products: I,
    /// What is left of a product that was cut.
    rest: Option<Product>,
}

impl<I: Iterator<Item = Product>> Tasks<I> {
    fn new(products: I) -> Self {
        Self { products, rest: None }
    }
}

impl<I: Iterator<Item = Product>> Iterator for Tasks<I> {
    type Item = VecDeque<Product>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut task = VecDeque::new();
        let mut space = TASK_PAIRS;
        while space > 0 && task.len() < TASK_PRODUCTS {
            let Some(mut product) = self.rest.take().or_else(|| self.products.next()) else {
                break;
            };
            if product.right.len() > space && !task.is_empty() {
                self.rest = Some(product);
                break;
            }
            let rows = (space / product.right.len().max(1)).max(1);
            if rows < product.left.len() {
                let cut = product.left.start + rows;
                self.rest = Some(Product { left: cut..product.left.end, ..product.clone() });
                product.left.end = cut;
                space = 0;
            }
            space = space.saturating_sub(product.pairs() as usize);
            task.push_back(product);
        }
        (!task.is_empty()).then_some(task)
    }
}

/// One task: some products, resumable at any block of any left row.
struct Scan {
    keys: Arc<PairKeys>,
    /// What is to be done; the first one's left rows shrink as they are done.
    products: VecDeque<Product>,
    /// How many right places the first left row of the first product has seen.
    seen: usize,
    tally: Arc<Tally>,
}

impl Scan {
    fn new(keys: Arc<PairKeys>, products: VecDeque<Product>, tally: Arc<Tally>) -> Self {
        Self { keys, products, seen: 0, tally }
    }

    /// Compares on until `found`, called with each matching (left, right), says stop or all is
    /// done; returns how often it was called.
    fn scan(&mut self, mut found: impl FnMut(u32, u32) -> bool) -> Result<u64> {
        let (keys, tally) = (&*self.keys, &*self.tally);
        let mut mask = [0; BLOCK];
        let mut compared = 0;
        let mut results = [0; WORKERS];
        let mut go_on = true;
        while go_on && let Some(product) = self.products.front_mut() {
            if product.left.is_empty() {
                self.products.pop_front();
                continue;
            }
            let (left, before) = (product.left.start, results[product.worker]);
            let mut place = product.right.start + self.seen;
            while go_on && place < product.right.end {
                let block = place..(place + BLOCK).min(product.right.end);
                let marks = &mut mask[..block.len()];
                keys.compare(left, block.clone(), marks);
                compared += block.len() as u64;
                place = block.end;
                for (offset, _) in marks.iter().enumerate().filter(|(_, mark)| **mark != 0) {
                    let right = block.start + offset;
                    results[product.worker] += 1;
                    tally.mark(1, right);
                    go_on &= found(keys.left.rows[left], keys.right.rows[right]);
                }
            }
            if results[product.worker] > before {
                tally.mark(0, left);
            }
            self.seen = place - product.right.start;
            if place == product.right.end {
                product.left.start += 1;
                self.seen = 0;
            }
            tally.run.control.check()?;
        }
        let matches = results.iter().sum();
        tally.run.control.advance(compared);
        let metrics = &tally.run.metrics;
        metrics.add("comparisons", compared);
        tally.compared.fetch_add(compared, Ordering::Relaxed);
        metrics.add("cartesian_products", compared);
        metrics.add("results", matches);
        if let Some(loads) = &tally.loads {
            loads.add_output(&results);
        }
        Ok(matches)
    }

    fn count(&mut self) -> Result<Option<u64>> {
        if self.products.is_empty() { Ok(None) } else { self.scan(|_, _| true).map(Some) }
    }
}

impl MatchTask for Scan {
    fn next(&mut self, limit: usize) -> Result<Option<Matches>> {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        self.scan(|l, r| {
            left.push(l);
            right.push(r);
            left.len() < limit
        })?;
        Ok((!left.is_empty()).then_some(Matches::Pairs { left, right }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_cover_every_pair_once_and_in_order() {
        let products = [
            Product { left: 0..3, right: 0..5, worker: 0 },
            Product { left: 0..1, right: 5..5, worker: 1 },
            Product { left: 3..40, right: 0..TASK_PAIRS / 10, worker: 2 },
            Product { left: 40..43, right: 0..TASK_PAIRS * 2, worker: 3 },
            Product { left: 43..44, right: 7..9, worker: 0 },
        ];
        let tasks: Vec<_> = Tasks::new(products.clone().into_iter()).collect();
        let mut joined: Vec<Product> = Vec::new();
        for piece in tasks.iter().flatten() {
            match joined.last_mut() {
                Some(last)
                    if last.right == piece.right
                        && last.worker == piece.worker
                        && last.left.end == piece.left.start =>
                {
                    last.left.end = piece.left.end;
                }
                _ => joined.push(piece.clone()),
            }
        }
        assert_eq!(joined, products);
        for task in &tasks {
            let pairs: u64 = task.iter().map(Product::pairs).sum();
            let one_row = task.len() == 1 && task[0].left.len() == 1;
            assert!(one_row || pairs <= TASK_PAIRS as u64, "{pairs}");
        }
    }
}
