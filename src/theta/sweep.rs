//! Two inequalities at once: sweep along the one, keep the other in a layered bit set.
//!
//! Right rows are inserted in the order of the first column, at their position in the order of
//! the second; left rows are visited in the order in which their first inequality admits right
//! rows. So when a left row's turn comes, the set holds exactly the right rows that satisfy its
//! first inequality, and its second one asks for a range of positions:
//!
//! ```text
//! order of the second column   0 1 2 3 4 5 6 7 …      inserted: those with l.x > r.x
//!                              . X . . X X . X         l.y <= r.y: list the range 3..
//! ```
//!
//! Cost: O((n + m) log m) to sort and count, the matches themselves to list. A task starts from the
//! nearest [snapshot](Sweep::snapshots) of the set, so the sweep runs on all threads.
//! Output order: left rows in the order of the sweep, then the order of the second column.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::counted_bits::CountedBits;
use super::key_order::{KeyOrder, gallop};
use super::layered_bits::LayeredBits;
use super::ranked::{Ranked, RankedTerm};
use super::sorting::sort_places;
use crate::Result;
use crate::control::Control;
use crate::output::{MatchTask, Matches};
use crate::predicate::Comparison;

/// Sets kept along the way: tasks begin at most this part of the inserts behind one.
const SNAPSHOTS: usize = 64;

/// A sweep of the left side over the right one.
pub(super) struct Sweep {
    /// Left places in the order of their turns.
    pub(super) turns: Vec<u32>,
    /// By turn: how many right places are inserted by then, and which positions are asked for. The
    /// ranges of one group all begin or all end together.
    asked: Vec<(u32, Range<u32>)>,
    /// Positions, in the order in which they are inserted.
    inserts: Vec<u32>,
    /// The right place at each position.
    pub(super) order: Vec<u32>,
    /// Matches up to and with each turn.
    pub(super) totals: Vec<u64>,
    /// The set before every `stride`-th insert.
    snapshots: Vec<LayeredBits>,
    stride: usize,
}

impl Sweep {
    /// A sweep along `along`; `listed` is the other inequality.
    pub(super) fn new(ranked: &Ranked, [along, listed]: [&RankedTerm; 2]) -> Self {
        use Comparison::{Greater, GreaterOrEqual, Less};
        let (left, right) = (&ranked.left, &ranked.right);
        // Partners with smaller keys are inserted from the low end, larger ones from the high end.
        let rising = matches!(along.comparison, Greater | GreaterOrEqual);
        let strict = matches!(along.comparison, Greater | Less);
        let sorted = |keys: &[u64]| match rising {
            true => sort_places(keys),
            false => sort_places(&keys.iter().map(|key| !key).collect::<Vec<_>>()),
        };
        let (by_y, (right_by_x, left_by_x)) = rayon::join(
            || KeyOrder::new(right, listed.right, ranked.groups),
            || {
                rayon::join(
                    || sorted(&right.columns[along.right]),
                    || sorted(&left.columns[along.left]),
                )
            },
        );
        let mut position = vec![0; right.len()];
        for (&place, at) in by_y.order.iter().zip(0..) {
            position[place as usize] = at;
        }
        let inserts: Vec<u32> =
            right_by_x.order.par_iter().map(|&place| position[place as usize]).collect();
        let y = &left.columns[listed.left];
        let turns = left_by_x.order.par_iter().zip(&left_by_x.keys).with_min_len(1 << 14);
        let ask = |admitted: &mut usize, (&place, &key): (&u32, &u64)| {
            let rest = &right_by_x.keys[*admitted..];
            *admitted += match (strict, key.checked_add(1)) {
                (true, _) => gallop(rest, key),
                (false, Some(next)) => gallop(rest, next),
                (false, None) => rest.len(),
            };
            let all = by_y.all(left.groups.as_ref().map(|ids| ids[place as usize]));
            (*admitted as u32, by_y.narrow(all, y[place as usize], listed.comparison))
        };
        let asked = turns.map_init(|| 0, ask).collect();
        let stride = right.len().div_ceil(SNAPSHOTS).max(1);
        let mut sweep = Self {
            turns: left_by_x.order,
            asked,
            inserts,
            order: by_y.order,
            totals: vec![],
            snapshots: vec![],
            stride,
        };
        (sweep.totals, sweep.snapshots) =
            rayon::join(|| sweep.running_totals(), || sweep.sets_along_the_way());
        sweep
    }

    /// Which left and which right places have a match.
    pub(super) fn matched(&self, ranked: &Ranked) -> [Vec<bool>; 2] {
        let (left, right) = (&ranked.left, &ranked.right);
        let group = |ids: &Option<Vec<u32>>, place: u32| {
            ids.as_ref().map_or(0, |ids| ids[place as usize]) as usize
        };
        let of_left = || {
            let mut matched = vec![false; left.len()];
            // The least and the greatest position inserted so far, by group.
            let mut inserted = vec![(u32::MAX, 0); ranked.groups];
            let mut next = 0;
            for (&place, (admitted, range)) in self.turns.iter().zip(&self.asked) {
                for &at in &self.inserts[next..*admitted as usize] {
                    let group = group(&right.groups, self.order[at as usize]);
                    let (least, greatest) = &mut inserted[group];
                    (*least, *greatest) = (at.min(*least), at.max(*greatest));
                }
                next = *admitted as usize;
                let (least, greatest) = inserted[group(&left.groups, place)];
                matched[place as usize] = least < range.end && greatest >= range.start;
            }
            matched
        };
        let of_right = || {
            let mut matched = vec![false; right.len()];
            // All that is asked for from some turn to the end, by group: as the ranges of a group
            // begin or end together, their hull is their union.
            let nothing = Range { start: u32::MAX, end: 0 };
            let mut hull = vec![nothing; ranked.groups];
            let mut last = self.inserts.len();
            let mut mark = |inserts: Range<usize>, hull: &[Range<u32>]| {
                for &at in &self.inserts[inserts] {
                    let place = self.order[at as usize];
                    matched[place as usize] = hull[group(&right.groups, place)].contains(&at);
                }
            };
            for (&place, (admitted, range)) in self.turns.iter().zip(&self.asked).rev() {
                mark(*admitted as usize..last, &hull);
                last = *admitted as usize;
                if !range.is_empty() {
                    let hull = &mut hull[group(&left.groups, place)];
                    *hull = range.start.min(hull.start)..range.end.max(hull.end);
                }
            }
            mark(0..last, &hull);
            matched
        };
        rayon::join(of_left, of_right).into()
    }

    /// How many matches there are up to and with each turn.
    fn running_totals(&self) -> Vec<u64> {
        let stretch = self.asked.len().div_ceil(rayon::current_num_threads() * 2).max(1 << 14);
        let mut totals = vec![0; self.asked.len()];
        totals.par_chunks_mut(stretch).zip(self.asked.par_chunks(stretch)).for_each(
            |(totals, asked)| {
                let mut inserted = asked[0].0 as usize;
                let mut set = CountedBits::new(self.order.len(), &self.inserts[..inserted]);
                let mut sum = 0;
                for (total, (admitted, range)) in totals.iter_mut().zip(asked) {
                    let admitted = *admitted as usize;
                    self.inserts[inserted..admitted].iter().for_each(|&at| set.insert(at));
                    inserted = admitted;
                    sum += u64::from(set.before(range.end) - set.before(range.start));
                    *total = sum;
                }
            },
        );
        let mut before = 0;
        for totals in totals.chunks_mut(stretch) {
            totals.iter_mut().for_each(|total| *total += before);
            before = totals.last().copied().unwrap_or(0);
        }
        totals
    }

    /// The set before every `stride`-th insert.
    fn sets_along_the_way(&self) -> Vec<LayeredBits> {
        let mut bits = LayeredBits::new(self.order.len());
        let mut snapshots = Vec::with_capacity(SNAPSHOTS);
        for stretch in self.inserts.chunks(self.stride) {
            snapshots.push(bits.clone());
            stretch.iter().for_each(|&at| bits.insert(at));
        }
        snapshots
    }

    /// The set when `turn` begins, and how many were inserted.
    fn set_before(&self, turn: usize) -> (LayeredBits, usize) {
        let admitted = self.asked[turn].0 as usize;
        let number = (admitted / self.stride).min(self.snapshots.len().saturating_sub(1));
        match self.snapshots.get(number) {
            Some(bits) => (bits.clone(), number * self.stride),
            None => (LayeredBits::new(0), 0),
        }
    }
}

/// What a sweep's task needs to name rows and to check what the sweep itself does not.
pub(super) struct SweepNames {
    /// Left rows by place.
    pub(super) driving: Arc<Vec<u32>>,
    /// Right rows by position.
    pub(super) listed: Vec<u32>,
    /// Whether a left and a right place satisfy the remaining terms.
    pub(super) accepts: Option<Accepts>,
}

/// A test of a pair of places: driving, other.
pub(super) type Accepts = Box<dyn Fn(u32, u32) -> bool + Send + Sync>;

/// Lists the matches of some turns.
pub(super) struct SweepTask {
    pub(super) sweep: Arc<Sweep>,
    pub(super) names: Arc<SweepNames>,
    pub(super) turns: Range<usize>,
    pub(super) set: Option<(LayeredBits, usize)>,
    pub(super) control: Arc<Control>,
}

impl MatchTask for SweepTask {
    fn next(&mut self, limit: usize) -> Result<Option<Matches>> {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let sweep = &*self.sweep;
        let begun = self.turns.start;
        if !self.turns.is_empty() {
            let (set, inserted) =
                self.set.get_or_insert_with(|| sweep.set_before(self.turns.start));
            while ours.len() < limit && !self.turns.is_empty() {
                let turn = self.turns.start;
                let (admitted, range) = &sweep.asked[turn];
                let admitted = *admitted as usize;
                sweep.inserts[*inserted..admitted].iter().for_each(|&at| set.insert(at));
                *inserted = admitted;
                let place = sweep.turns[turn];
                match &self.names.accepts {
                    None => set.for_each(range.clone(), |at| {
                        theirs.push(self.names.listed[at as usize]);
                    }),
                    Some(accepts) => set.for_each(range.clone(), |at| {
                        if accepts(place, sweep.order[at as usize]) {
                            theirs.push(self.names.listed[at as usize]);
                        }
                    }),
                }
                ours.resize(theirs.len(), self.names.driving[place as usize]);
                self.turns.start += 1;
            }
            let before = begun.checked_sub(1).map_or(0, |turn| sweep.totals[turn]);
            self.control.advance(sweep.totals[self.turns.start - 1] - before);
            self.control.check()?;
        }
        if ours.is_empty() {
            return Ok(None);
        }
        Ok(Some(Matches::Pairs { left: ours, right: theirs }))
    }
}
