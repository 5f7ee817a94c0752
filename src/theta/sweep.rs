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
//! Cost: O((n + m) log m) to count, the matches themselves to list. A task starts from the nearest
//! [snapshot](Sweep::snapshots) of the set, so the sweep runs on all threads.
//! Output order: left rows in the order of the sweep, then the order of the second column.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::layered_bits::LayeredBits;
use super::ranked::{RankedSide, RankedTerm};
use super::ranks::sort_by_rank;
use super::slices::{KeyOrder, driven_by};
use crate::Result;
use crate::control::Control;
use crate::output::{MatchTask, Matches, Side};
use crate::predicate::Comparison;

/// Sets kept along the way: tasks begin at most this part of the inserts behind one.
const SNAPSHOTS: usize = 64;

/// A sweep over two sides.
pub(super) struct Sweep {
    /// Left places in the order of their turns.
    pub(super) turns: Vec<u32>,
    /// By turn: how many right places are inserted by then, and which positions are asked for.
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
    /// A sweep along `along`; `listed` is the other inequality. Both sides as `driving` sees them.
    pub(super) fn new(
        driving: &RankedSide,
        other: &RankedSide,
        sliced: Side,
        [along, listed]: [&RankedTerm; 2],
        groups: usize,
    ) -> Self {
        let (x, along_comparison) = driven_by(along, sliced);
        let (y, listed_comparison) = driven_by(listed, sliced);
        let (other_x, other_y) = match sliced {
            Side::Right => (along.right, listed.right),
            Side::Left => (along.left, listed.left),
        };
        let by_y = KeyOrder::new(other, other_y, listed.distinct, groups);
        let places = other.len() as u32;
        let by_x = sort_by_rank(0..places, &other.columns[other_x], along.distinct);
        let mut position = vec![0; other.len()];
        for (at, &place) in by_y.order.iter().enumerate() {
            position[place as usize] = at as u32;
        }
        // Partners with smaller keys are inserted from the low end, larger ones from the high end.
        let rising = matches!(along_comparison, Comparison::Greater | Comparison::GreaterOrEqual);
        let mut inserts: Vec<u32> =
            by_x.order.iter().map(|&place| position[place as usize]).collect();
        if !rising {
            inserts.reverse();
        }
        let admitted = |rank: u32| {
            let rank = rank as usize;
            match along_comparison {
                Comparison::Greater => by_x.before[rank],
                Comparison::GreaterOrEqual => by_x.before[rank + 1],
                Comparison::Less => places - by_x.before[rank + 1],
                Comparison::LessOrEqual => places - by_x.before[rank],
                Comparison::NotEqual => places,
            }
        };
        let admits: Vec<u32> = driving.columns[x].par_iter().map(|&rank| admitted(rank)).collect();
        let turns = sort_by_rank(0..driving.len() as u32, &admits, other.len() + 1).order;
        let asked = turns.par_iter().map(|&place| {
            let place = place as usize;
            let all = by_y.all(driving.groups.as_ref().map(|ids| ids[place]));
            let range = by_y.narrow(all, driving.columns[y][place], listed_comparison);
            (admits[place], range)
        });
        let asked = asked.collect();
        let stride = other.len().div_ceil(SNAPSHOTS).max(1);
        let mut bits = LayeredBits::new(other.len());
        let mut snapshots = Vec::with_capacity(SNAPSHOTS);
        for stretch in inserts.chunks(stride) {
            snapshots.push(bits.clone());
            stretch.iter().for_each(|&at| bits.insert(at));
        }
        let mut sweep =
            Self { turns, asked, inserts, order: by_y.order, totals: vec![], snapshots, stride };
        let mut total = 0;
        let totals = sweep.counts().into_iter().map(|count| {
            total += count;
            total
        });
        sweep.totals = totals.collect();
        sweep
    }

    /// How many matches each left place has.
    pub(super) fn partners(&self) -> Vec<u64> {
        let mut partners = vec![0; self.turns.len()];
        let mut before = 0;
        for (&place, &total) in self.turns.iter().zip(&self.totals) {
            partners[place as usize] = total - before;
            before = total;
        }
        partners
    }

    /// How many matches each turn has.
    fn counts(&self) -> Vec<u64> {
        let stretch = self.asked.len().div_ceil(rayon::current_num_threads() * 2).max(1 << 14);
        let mut counts = vec![0; self.asked.len()];
        counts.par_chunks_mut(stretch).zip(self.asked.par_chunks(stretch)).for_each(
            |(counts, asked)| {
                let begun = asked[0].0 as usize;
                let mut set = CountedBits::new(self.order.len(), &self.inserts[..begun]);
                let mut inserted = begun;
                for (count, (admitted, range)) in counts.iter_mut().zip(asked) {
                    let admitted = *admitted as usize;
                    self.inserts[inserted..admitted].iter().for_each(|&at| set.insert(at));
                    inserted = admitted;
                    *count = u64::from(set.before(range.end) - set.before(range.start));
                }
            },
        );
        counts
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

/// Bits that also count: how many are set before a position, in logarithmic time.
struct CountedBits {
    words: Vec<u64>,
    /// A Fenwick tree over the words' counts, from 1 on.
    tree: Vec<u32>,
}

impl CountedBits {
    fn new(bound: usize, numbers: &[u32]) -> Self {
        let mut words = vec![0_u64; bound / 64 + 1];
        for &number in numbers {
            words[number as usize / 64] |= 1 << (number % 64);
        }
        let mut tree = vec![0; words.len() + 1];
        for at in 1..tree.len() {
            tree[at] += words[at - 1].count_ones();
            let above = at + (at & at.wrapping_neg());
            if above < tree.len() {
                tree[above] += tree[at];
            }
        }
        Self { words, tree }
    }

    fn insert(&mut self, number: u32) {
        self.words[number as usize / 64] |= 1 << (number % 64);
        let mut at = number as usize / 64 + 1;
        while at < self.tree.len() {
            self.tree[at] += 1;
            at += at & at.wrapping_neg();
        }
    }

    fn before(&self, number: u32) -> u32 {
        let mut at = number as usize / 64;
        let mut count = (self.words[at] & !(u64::MAX << (number % 64))).count_ones();
        while at > 0 {
            count += self.tree[at];
            at &= at - 1;
        }
        count
    }
}

/// What a sweep's task needs to name rows and to check what the sweep itself does not.
pub(super) struct SweepNames {
    /// Rows of the driving side by place.
    pub(super) driving: Arc<Vec<u32>>,
    /// Rows of the other side by position.
    pub(super) listed: Vec<u32>,
    /// Whose positions are listed.
    pub(super) sliced: Side,
    /// Whether a driving place and a place of the other side satisfy the remaining terms.
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
        Ok(Some(match self.names.sliced {
            Side::Right => Matches::Pairs { left: ours, right: theirs },
            Side::Left => Matches::Pairs { left: theirs, right: ours },
        }))
    }
}
