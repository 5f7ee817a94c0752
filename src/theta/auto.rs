//! The default algorithm: sort once, then list matches instead of looking for them.
//!
//! | predicate | strategy | matches of a row |
//! |---|---|---|
//! | equality only; one inequality, `!=`; several on one column | [slices](super::slices) | one or two slices of the other side |
//! | intervals that overlap | slices, from both sides | those that begin inside it; those it begins inside of |
//! | two inequalities | [sweep](super::sweep) | listed from a bit set |
//! | more | sweep or slices over the most selective ones | what the others accept |
//!
//! Except for the last line, how many partners every row has is known before anything is built.
//! Where each row's partners are slices and there are many of them, the sliced table is put into
//! key order once and matches are copied as stretches.
//!
//! Output order: the matches, by driving row (left row, but for the cases below) and then by key
//! of the other side; behind them left rows without a match, then right rows without one, in row
//! order. Overlaps come by begin of the left and then of the right interval; sweeps by the key of
//! the first inequality.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use arrow_schema::{Schema, SchemaRef};
use rayon::prelude::*;

use super::plan::ThetaPlan;
use super::ranked::{Ranked, RankedTerm};
use super::slices::{KeyOrder, Numbering, SlicePart, SliceTask, driven_by, slices_of};
use super::sweep::{Accepts, Sweep, SweepNames, SweepTask};
use crate::control::{Control, interruptible};
use crate::metrics::Metric;
use crate::operator::{Operator, Run};
use crate::ordered::Ordered;
use crate::output::{Assembler, BatchStream, Caps, Layout, MatchTask, Matches, Side};
use crate::predicate::{Comparison, JoinKind};
use crate::table::{NO_ROW, Table};
use crate::workers::pool;
use crate::{Error, Result};

/// The default theta join over two tables.
pub(super) struct Auto {
    plan: Arc<ThetaPlan>,
    left: Arc<Table>,
    right: Arc<Table>,
    prepared: Mutex<Option<Arc<Prepared>>>,
    named: Mutex<Option<Arc<Named>>>,
}

/// What is known after sorting.
struct Prepared {
    ranked: Arc<Ranked>,
    strategy: Strategy,
    /// Terms that candidates still have to satisfy.
    remaining: Vec<RankedTerm>,
    /// Partners of each place, left and right, where no term remains.
    partners: Option<[Vec<u64>; 2]>,
}

enum Strategy {
    Slices {
        parts: Vec<Arc<SlicePart>>,
        /// The order of each side that is sliced.
        orders: Box<[Option<KeyOrder>; 2]>,
    },
    /// The left side sweeps along the first term, the right one is listed by the second.
    Sweep(Arc<Sweep>, [RankedTerm; 2]),
}

impl Auto {
    pub(super) fn new(plan: ThetaPlan, left: Arc<Table>, right: Arc<Table>) -> Self {
        Self {
            plan: Arc::new(plan),
            left,
            right,
            prepared: Mutex::new(None),
            named: Mutex::new(None),
        }
    }

    fn prepared(&self, run: &Run) -> Result<Arc<Prepared>> {
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(prepared) = &*prepared {
            return Ok(Arc::clone(prepared));
        }
        let (plan, left, right) =
            (Arc::clone(&self.plan), Arc::clone(&self.left), Arc::clone(&self.right));
        let threads = run.threads;
        let work =
            move || pool(threads)?.install(|| Ranked::new(&plan, &left, &right).map(Prepared::new));
        let made = Arc::new(interruptible(&run.control, work)?);
        let strategy = &made.strategy;
        let candidates = strategy.candidates();
        log::debug!("{}: {}, {candidates} candidates", self.plan, strategy.name());
        Ok(Arc::clone(prepared.insert(made)))
    }
}

impl Prepared {
    fn new(ranked: Ranked) -> Self {
        let (strategy, remaining) = Strategy::choose(&ranked);
        let partners = remaining.is_empty().then(|| strategy.partners(&ranked));
        Self { ranked: Arc::new(ranked), strategy, remaining, partners }
    }

    /// The number of pairs, if it is known already.
    fn pairs(&self) -> Option<u64> {
        self.remaining.is_empty().then(|| self.strategy.candidates())
    }

    /// Whether a pair of places satisfies the remaining terms.
    fn accepts(&self, driving: Side) -> Option<Accepts> {
        if self.remaining.is_empty() {
            return None;
        }
        let (ranked, remaining) = (Arc::clone(&self.ranked), self.remaining.clone());
        Some(Box::new(move |ours, theirs| {
            let (left, right) = match driving {
                Side::Left => (ours, theirs),
                Side::Right => (theirs, ours),
            };
            remaining.iter().all(|term| {
                let l = ranked.left.columns[term.left][left as usize];
                let r = ranked.right.columns[term.right][right as usize];
                term.comparison.accepts(l.cmp(&r))
            })
        }))
    }
}

impl Strategy {
    /// The strategy with the fewest candidates, and the terms it leaves over.
    fn choose(ranked: &Ranked) -> (Self, Vec<RankedTerm>) {
        let terms = &ranked.terms;
        if let [first, second] = &terms[..]
            && let Some(strategy) = Self::overlap(ranked, first, second)
        {
            return (strategy, vec![]);
        }
        if let [first, second] = &terms[..]
            && first.left != second.left
            && first.right != second.right
            && let Some((sweep, rest)) = Self::sweep(ranked)
        {
            return (sweep, rest);
        }
        // One column of one side, and all terms that compare with it.
        let mut best: Option<(Self, Vec<RankedTerm>)> = None;
        for sliced in [Side::Right, Side::Left] {
            let column = |term: &RankedTerm| match sliced {
                Side::Right => term.right,
                Side::Left => term.left,
            };
            let mut columns: Vec<usize> = terms.iter().map(column).collect();
            columns.sort_unstable();
            columns.dedup();
            for chosen in columns {
                let (used, rest) = usable(terms, |term| column(term) == chosen);
                let strategy = Self::slices(ranked, &used, sliced);
                let better = best.as_ref().is_none_or(|(other, others)| {
                    let left_over = (!rest.is_empty(), strategy.candidates());
                    left_over < (!others.is_empty(), other.candidates())
                });
                if better {
                    best = Some((strategy, rest));
                }
            }
        }
        let Some((slices, rest)) = best else {
            return (Self::slices(ranked, &[], Side::Right), vec![]);
        };
        if rest.is_empty() {
            return (slices, rest);
        }
        match Self::sweep(ranked) {
            Some((sweep, rest)) if sweep.candidates() < slices.candidates() || rest.is_empty() => {
                (sweep, rest)
            }
            _ => (slices, rest),
        }
    }

    fn slices(ranked: &Ranked, terms: &[RankedTerm], sliced: Side) -> Self {
        let (driving, other) = match sliced {
            Side::Right => (&ranked.left, &ranked.right),
            Side::Left => (&ranked.right, &ranked.left),
        };
        let order = match terms.first() {
            Some(term) => {
                let column = if sliced == Side::Right { term.right } else { term.left };
                KeyOrder::new(other, column, term.distinct, ranked.groups)
            }
            None => KeyOrder::by_group(other, ranked.groups),
        };
        let terms: Vec<_> = terms.iter().map(|term| driven_by(term, sliced)).collect();
        let part = slices_of(driving, &order, &terms, sliced);
        let orders = Box::new(match sliced {
            Side::Right => [None, Some(order)],
            Side::Left => [Some(order), None],
        });
        Self::Slices { parts: vec![Arc::new(part)], orders }
    }

    /// `l.lo < r.hi and l.hi > r.lo`, where no interval is turned round or, with strict
    /// comparisons, empty: each pair has one interval that begins first, or both begin together.
    fn overlap(ranked: &Ranked, first: &RankedTerm, second: &RankedTerm) -> Option<Self> {
        use Comparison::{Greater, GreaterOrEqual, Less, LessOrEqual};
        let rises = |term: &RankedTerm| matches!(term.comparison, Less | LessOrEqual);
        let falls = |term: &RankedTerm| matches!(term.comparison, Greater | GreaterOrEqual);
        let (lower, upper) = match (rises(first) && falls(second), falls(first) && rises(second)) {
            (true, _) => (first, second),
            (_, true) => (second, first),
            _ => return None,
        };
        if lower.space != upper.space {
            return None;
        }
        let strict = lower.comparison == Less || upper.comparison == Greater;
        let (left, right) = (&ranked.left, &ranked.right);
        let proper = |begins: &[u32], ends: &[u32]| {
            begins.par_iter().zip(ends).all(|(b, e)| if strict { b < e } else { b <= e })
        };
        // l.lo is lower.left, r.hi lower.right; l.hi is upper.left, r.lo upper.right.
        let (left_lo, left_hi) = (&left.columns[lower.left], &left.columns[upper.left]);
        let (right_lo, right_hi) = (&right.columns[upper.right], &right.columns[lower.right]);
        if !proper(left_lo, left_hi) || !proper(right_lo, right_hi) {
            return None;
        }
        let left_order = KeyOrder::new(left, lower.left, lower.distinct, ranked.groups);
        let right_order = KeyOrder::new(right, upper.right, upper.distinct, ranked.groups);
        let group = |ids: &Option<Vec<u32>>, place: u32| ids.as_ref().map(|i| i[place as usize]);
        // Right intervals that begin in [l.lo, l.hi), or up to l.hi where that counts.
        let begins_inside = |place: u32| {
            let range = right_order.all(group(&left.groups, place));
            let range = right_order.narrow(range, left_lo[place as usize], LessOrEqual);
            [right_order.narrow(range, left_hi[place as usize], upper.comparison), 0..0]
        };
        // Left intervals that begin behind r.lo, but before r.hi.
        let begins_behind = |place: u32| {
            let range = left_order.all(group(&right.groups, place));
            let range = left_order.narrow(range, right_lo[place as usize], Less);
            let ends = lower.comparison.turned();
            [left_order.narrow(range, right_hi[place as usize], ends), 0..0]
        };
        let in_order = |order: &KeyOrder| order.order.clone().into_par_iter();
        let parts = vec![
            Arc::new(SlicePart::new(in_order(&left_order), Side::Right, begins_inside)),
            Arc::new(SlicePart::new(in_order(&right_order), Side::Left, begins_behind)),
        ];
        Some(Self::Slices { parts, orders: Box::new([Some(left_order), Some(right_order)]) })
    }

    /// Along the two inequalities that, in a sample, fewest pairs satisfy both of.
    fn sweep(ranked: &Ranked) -> Option<(Self, Vec<RankedTerm>)> {
        let ordered = |term: &&RankedTerm| term.comparison != Comparison::NotEqual;
        let ordered: Vec<RankedTerm> = ranked.terms.iter().filter(ordered).copied().collect();
        let pairs = (0..ordered.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
        let (a, b) = pairs.min_by_key(|&(a, b)| sampled(ranked, &ordered[a], &ordered[b]))?;
        let (along, listed) = (ordered[a], ordered[b]);
        let (left, right) = (&ranked.left, &ranked.right);
        let sweep = Sweep::new(left, right, Side::Right, [&along, &listed], ranked.groups);
        let rest = ranked.terms.iter().filter(|term| **term != along && **term != listed);
        let rest = rest.copied().collect();
        Some((Self::Sweep(Arc::new(sweep), [along, listed]), rest))
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Slices { parts, .. } if parts.len() > 1 => "overlap",
            Self::Slices { .. } => "slices",
            Self::Sweep(..) => "sweep",
        }
    }

    /// Pairs that satisfy the terms in use.
    fn candidates(&self) -> u64 {
        match self {
            Self::Slices { parts, .. } => parts.iter().map(|part| part.total()).sum(),
            Self::Sweep(sweep, _) => sweep.totals.last().copied().unwrap_or(0),
        }
    }

    /// How many candidates each place has, left and right.
    fn partners(&self, ranked: &Ranked) -> [Vec<u64>; 2] {
        let mut counts = [vec![0; ranked.left.len()], vec![0; ranked.right.len()]];
        match self {
            Self::Slices { parts, orders } => {
                for part in parts {
                    let (driving, sliced) = match part.sliced {
                        Side::Right => (0, 1),
                        Side::Left => (1, 0),
                    };
                    part.count_driving(&mut counts[driving]);
                    if let Some(order) = &orders[sliced] {
                        part.count_sliced(&order.order, &mut counts[sliced]);
                    }
                }
            }
            Self::Sweep(sweep, [along, listed]) => {
                let (left, right) = (&ranked.left, &ranked.right);
                let back = Sweep::new(right, left, Side::Left, [along, listed], ranked.groups);
                counts = [sweep.partners(), back.partners()];
            }
        }
        counts
    }
}

/// How many pairs of a sample of both sides satisfy both terms.
fn sampled(ranked: &Ranked, first: &RankedTerm, second: &RankedTerm) -> usize {
    const SAMPLE: usize = 512;
    let places = |rows: usize| (0..rows).step_by(rows.div_ceil(SAMPLE).max(1));
    let (left, right) = (&ranked.left, &ranked.right);
    let holds = |term: &RankedTerm, l: usize, r: usize| {
        term.comparison.accepts(left.columns[term.left][l].cmp(&right.columns[term.right][r]))
    };
    let count =
        |l| places(right.len()).filter(|&r| holds(first, l, r) && holds(second, l, r)).count();
    places(left.len()).map(count).sum()
}

/// Terms that one set of slices can serve (at most one `!=` among them), and the others.
fn usable(
    terms: &[RankedTerm],
    fits: impl Fn(&RankedTerm) -> bool,
) -> (Vec<RankedTerm>, Vec<RankedTerm>) {
    let mut holes = 0;
    terms.iter().partition(|term| {
        holes += usize::from(fits(term) && term.comparison == Comparison::NotEqual);
        fits(term) && (term.comparison != Comparison::NotEqual || holes == 1)
    })
}

/// Slices of fewer rows than this are spelled out: copying them one by one would cost more.
const LONG_SLICE: u64 = 16;

/// The tables as output is read from them, and what the places of each side are called there.
struct Named {
    assembler: Arc<Assembler>,
    names: Names,
}

struct Names {
    /// Row by place.
    places: [Arc<Vec<u32>>; 2],
    /// Row by row of the input, where the table was put into another order.
    moved: [Option<Vec<u32>>; 2],
}

impl Names {
    /// Rows are called as in the inputs.
    fn of_inputs(ranked: &Ranked) -> Self {
        let places = [&ranked.left, &ranked.right].map(|side| Arc::new(side.rows.clone()));
        Self { places, moved: [None, None] }
    }
}

impl Named {
    /// Puts the sliced tables into key order where that pays: when more is copied than moved.
    fn new(layout: Layout, inputs: [Arc<Table>; 2], prepared: &Prepared) -> Result<Self> {
        let mut tables = inputs.clone();
        let mut names = Names::of_inputs(&prepared.ranked);
        let moves: usize = inputs.iter().map(|table| table.num_rows()).sum();
        if let Strategy::Slices { orders, parts } = &prepared.strategy
            && prepared.pairs().is_some_and(|pairs| {
                let slices: usize = parts.iter().map(|part| part.slices.len()).sum();
                pairs >= (moves as u64).max(LONG_SLICE * slices as u64)
            })
        {
            let sides = [&prepared.ranked.left, &prepared.ranked.right];
            for (side, order) in orders.iter().enumerate() {
                let Some(order) = order else { continue };
                let ranked = sides[side];
                // All rows, so that those without a key have a place too: behind the others.
                let mut rows: Vec<u32> =
                    order.order.iter().map(|&place| ranked.rows[place as usize]).collect();
                let mut moved = vec![NO_ROW; inputs[side].num_rows()];
                rows.iter().zip(0..).for_each(|(&row, at)| moved[row as usize] = at);
                for (row, moved) in moved.iter_mut().enumerate().filter(|(_, at)| **at == NO_ROW) {
                    *moved = rows.len() as u32;
                    rows.push(row as u32);
                }
                tables[side] = Arc::new(reordered(&inputs[side], rows)?);
                let places = ranked.rows.iter().map(|&row| moved[row as usize]).collect();
                names.places[side] = Arc::new(places);
                names.moved[side] = Some(moved);
            }
        }
        let [left, right] = tables;
        Ok(Self { assembler: Arc::new(Assembler::new(layout, left, right)), names })
    }
}

impl Auto {
    fn named(&self, prepared: &Arc<Prepared>, run: &Run) -> Result<Arc<Named>> {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(named) = &*named {
            return Ok(Arc::clone(named));
        }
        let (layout, prepared) = (self.plan.layout.clone(), Arc::clone(prepared));
        let inputs = [Arc::clone(&self.left), Arc::clone(&self.right)];
        let work = move || Named::new(layout, inputs, &prepared);
        let made = Arc::new(interruptible(&run.control, work)?);
        Ok(Arc::clone(named.insert(made)))
    }

    /// The tasks that list matches.
    fn match_tasks(
        prepared: &Prepared,
        names: &Names,
        at_once: u64,
        control: &Arc<Control>,
    ) -> Vec<Box<dyn MatchTask>> {
        let index = |side: Side| usize::from(side == Side::Right);
        let mut tasks: Vec<Box<dyn MatchTask>> = Vec::new();
        match &prepared.strategy {
            Strategy::Slices { parts, orders } => {
                for part in parts {
                    let (ours, theirs) = (1 - index(part.sliced), index(part.sliced));
                    let driving = Arc::clone(&names.places[ours]);
                    let other = &names.places[theirs];
                    let listed = || {
                        let order = orders[theirs].as_ref().map_or(&[][..], |o| &o.order);
                        order.iter().map(|&place| other[place as usize]).collect::<Vec<_>>()
                    };
                    let driving_side = if ours == 0 { Side::Left } else { Side::Right };
                    if let Some(accepts) = prepared.accepts(driving_side) {
                        let order = orders[theirs].as_ref().map_or(vec![], |o| o.order.clone());
                        let filter = Arc::new(Filter { driving, order, listed: listed(), accepts });
                        for wanted in cut(part.total(), FILTER_AT_ONCE) {
                            let (part, filter) = (Arc::clone(part), Arc::clone(&filter));
                            let control = Arc::clone(control);
                            tasks.push(Box::new(FilterTask { part, filter, wanted, control }));
                        }
                        continue;
                    }
                    let numbering = Arc::new(if names.moved[theirs].is_some() {
                        Numbering::Slices { driving }
                    } else {
                        Numbering::Rows { driving, sliced: Arc::new(listed()) }
                    });
                    for wanted in cut(part.total(), at_once) {
                        let (part, numbering) = (Arc::clone(part), Arc::clone(&numbering));
                        let control = Arc::clone(control);
                        tasks.push(Box::new(SliceTask { part, numbering, wanted, control }));
                    }
                }
            }
            Strategy::Sweep(sweep, _) => {
                let other = &names.places[1];
                let listed = sweep.order.iter().map(|&place| other[place as usize]).collect();
                let names = Arc::new(SweepNames {
                    driving: Arc::clone(&names.places[0]),
                    listed,
                    sliced: Side::Right,
                    accepts: prepared.accepts(Side::Left),
                });
                for turns in cut_turns(&sweep.totals, at_once) {
                    let (sweep, names) = (Arc::clone(sweep), Arc::clone(&names));
                    let control = Arc::clone(control);
                    tasks.push(Box::new(SweepTask { sweep, names, turns, set: None, control }));
                }
            }
        }
        tasks
    }

    /// Rows of each side that have no partner (`matched` false) or have one, in row order.
    fn rows_by_match(
        &self,
        prepared: &Prepared,
        run: &Run,
        side: usize,
        matched: bool,
    ) -> Result<Vec<u32>> {
        let partners = self.partners(prepared, run)?;
        let ranked = [&prepared.ranked.left, &prepared.ranked.right][side];
        let rows = [&self.left, &self.right][side].num_rows();
        let mut has = vec![false; rows];
        for (&row, &count) in ranked.rows.iter().zip(&partners[side]) {
            has[row as usize] = count > 0;
        }
        Ok((0..rows as u32).filter(|&row| has[row as usize] == matched).collect())
    }

    /// Partners of each place; counted by listing all matches where no shorter way is known.
    fn partners(&self, prepared: &Prepared, run: &Run) -> Result<[Vec<u64>; 2]> {
        if let Some(partners) = &prepared.partners {
            return Ok(partners.clone());
        }
        let rows = [self.left.num_rows(), self.right.num_rows()];
        let mut by_row = rows.map(|rows| vec![0; rows]);
        for matches in self.list(prepared, run)? {
            let Matches::Pairs { left, right } = matches? else {
                return Err(Error::internal("candidates are checked pair by pair"));
            };
            left.iter().for_each(|&row| by_row[0][row as usize] += 1);
            right.iter().for_each(|&row| by_row[1][row as usize] += 1);
        }
        let ranked = &prepared.ranked;
        let of = |rows: &[u32], counts: &[u64]| rows.iter().map(|&r| counts[r as usize]).collect();
        Ok([of(&ranked.left.rows, &by_row[0]), of(&ranked.right.rows, &by_row[1])])
    }

    /// All matches as pairs of rows of the inputs, in order.
    fn list(&self, prepared: &Prepared, run: &Run) -> Result<Ordered<Box<dyn MatchTask>, Matches>> {
        let names = Names::of_inputs(&prepared.ranked);
        // A pass of its own: when it ends, the run goes on.
        let control = Arc::new(Control::part_of(&run.control));
        control.expect(prepared.strategy.candidates());
        let at_once = Caps::default().rows;
        let tasks = Self::match_tasks(prepared, &names, at_once as u64, &control);
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
        if let Some(partners) = &prepared.partners {
            let names = [("matched_left", "unmatched_left"), ("matched_right", "unmatched_right")];
            let rows = [self.left.num_rows(), self.right.num_rows()];
            for ((partners, (matched, unmatched)), rows) in partners.iter().zip(names).zip(rows) {
                let count = partners.iter().filter(|&&count| count > 0).count();
                metrics.add(matched, count as u64);
                metrics.add(unmatched, (rows - count) as u64);
            }
        }
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
            tasks = Self::match_tasks(&prepared, names, at_once, &run.control);
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

/// `table` with its rows in another order.
fn reordered(table: &Arc<Table>, rows: Vec<u32>) -> Result<Table> {
    let schema = table.schema();
    let nothing = Arc::new(Table::new("no", Arc::new(Schema::empty()), vec![])?);
    let layout = Layout::new(schema, nothing.schema(), &[], JoinKind::Semi, "")?;
    let assembler = Assembler::new(layout, Arc::clone(table), nothing);
    let caps = Caps { rows: 1 << 20, bytes: 1 << 28 };
    let wanted = Matches::Pairs { right: vec![NO_ROW; rows.len()], left: rows };
    Table::new("reordered", Arc::clone(schema), assembler.assemble(&wanted, caps)?)
}

/// 0..total in pieces of `size`.
fn cut(total: u64, size: u64) -> impl Iterator<Item = Range<u64>> {
    let size = size.max(1);
    (0..total.div_ceil(size)).map(move |i| i * size..((i + 1) * size).min(total))
}

/// Turns in stretches of about `size` candidates each.
fn cut_turns(totals: &[u64], size: u64) -> Vec<Range<usize>> {
    let mut stretches = Vec::new();
    let mut begin = 0;
    while begin < totals.len() {
        let before = if begin == 0 { 0 } else { totals[begin - 1] };
        let end = totals.partition_point(|&total| total < before + size.max(1));
        let end = (end + 1).min(totals.len()).max(begin + 1);
        stretches.push(begin..end);
        begin = end;
    }
    stretches
}

/// Candidates that one task checks.
const FILTER_AT_ONCE: u64 = 1 << 20;

/// What it takes to check the candidates of slices.
struct Filter {
    driving: Arc<Vec<u32>>,
    /// Places of the sliced side by position.
    order: Vec<u32>,
    /// Rows of the sliced side by position.
    listed: Vec<u32>,
    accepts: Accepts,
}

/// Checks the candidates numbered `wanted` of a part.
struct FilterTask {
    part: Arc<SlicePart>,
    filter: Arc<Filter>,
    wanted: Range<u64>,
    control: Arc<Control>,
}

impl MatchTask for FilterTask {
    fn next(&mut self, _limit: usize) -> Result<Option<Matches>> {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let wanted = std::mem::replace(&mut self.wanted, 0..0);
        self.control.check()?;
        self.control.advance(wanted.end - wanted.start);
        let filter = &*self.filter;
        self.part.for_each(wanted, |place, slice| {
            for at in slice.start as usize..slice.end as usize {
                if (filter.accepts)(place, filter.order[at]) {
                    ours.push(filter.driving[place as usize]);
                    theirs.push(filter.listed[at]);
                }
            }
        });
        Ok((!ours.is_empty()).then_some(match self.part.sliced {
            Side::Right => Matches::Pairs { left: ours, right: theirs },
            Side::Left => Matches::Pairs { left: theirs, right: ours },
        }))
    }
}

/// Rows that come out by themselves.
struct Alone {
    rows: Vec<u32>,
    left: bool,
}

impl MatchTask for Alone {
    fn next(&mut self, _limit: usize) -> Result<Option<Matches>> {
        let rows = std::mem::take(&mut self.rows);
        let none = vec![NO_ROW; rows.len()];
        Ok((!rows.is_empty()).then_some(if self.left {
            Matches::Pairs { left: rows, right: none }
        } else {
            Matches::Pairs { left: none, right: rows }
        }))
    }
}
