//! Joins whose matches are slices: one side in key order, a contiguous stretch for each row of the
//! other.
//!
//! ```text
//! driving rows        the sliced side, in (group, key) order
//!      7  ──────────▶ [3 5 5 6]8 9          key < 7
//!      4  ──────────▶ [3]5 5 6 8 9          key < 4
//! ```
//!
//! A [`SlicePart`] lists the slices in output order with a running total of their lengths, so the
//! number of matches is known before one is built, work is cut into equal tasks anywhere, and each
//! task copies stretches instead of gathering pairs.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::ranked::{RankedSide, RankedTerm};
use super::ranks::{Sorted, sort_by_rank};
use crate::Result;
use crate::control::Control;
use crate::output::{MatchTask, Matches, Side};
use crate::predicate::Comparison;

/// One side in the order of (group, rank of one column).
pub(super) struct KeyOrder {
    /// The place that comes at each position.
    pub(super) order: Vec<u32>,
    /// Ranks by position.
    ranks: Vec<u32>,
    /// Positions before each rank, where there are no groups.
    before_rank: Vec<u32>,
    /// Positions before each group, where there are.
    before_group: Option<Vec<u32>>,
}

impl KeyOrder {
    /// Orders `side` by its column `column` of `distinct` ranks, within `groups` groups.
    pub(super) fn new(side: &RankedSide, column: usize, distinct: usize, groups: usize) -> Self {
        let keys = &side.columns[column];
        let Sorted { order, before } = sort_by_rank(0..side.len() as u32, keys, distinct);
        let (order, before_group) = match &side.groups {
            Some(ids) => {
                let sorted = sort_by_rank(order.iter().copied(), ids, groups);
                (sorted.order, Some(sorted.before))
            }
            None => (order, None),
        };
        let ranks = order.iter().map(|&place| keys[place as usize]).collect();
        Self { order, ranks, before_rank: before, before_group }
    }

    /// Orders `side` by group alone.
    pub(super) fn by_group(side: &RankedSide, groups: usize) -> Self {
        let (order, before_group) = match &side.groups {
            Some(ids) => {
                let sorted = sort_by_rank(0..side.len() as u32, ids, groups);
                (sorted.order, Some(sorted.before))
            }
            None => ((0..side.len() as u32).collect(), None),
        };
        Self { order, ranks: vec![], before_rank: vec![], before_group }
    }

    /// All positions of `group`.
    pub(super) fn all(&self, group: Option<u32>) -> Range<u32> {
        match (&self.before_group, group) {
            (Some(before), Some(group)) => {
                let group = group as usize;
                before[group]..before[group + 1]
            }
            _ => 0..self.order.len() as u32,
        }
    }

    /// The positions within `range` of one group where ranks equal to `rank` begin and end.
    pub(super) fn equal(&self, range: &Range<u32>, rank: u32) -> Range<u32> {
        if self.before_group.is_none() {
            let rank = rank as usize;
            let (begin, end) = (self.before_rank[rank], self.before_rank[rank + 1]);
            return begin.clamp(range.start, range.end)..end.clamp(range.start, range.end);
        }
        let ranks = &self.ranks[range.start as usize..range.end as usize];
        let begin = ranks.partition_point(|&other| other < rank);
        let end = begin + ranks[begin..].partition_point(|&other| other == rank);
        range.start + begin as u32..range.start + end as u32
    }

    /// The part of `range` whose ranks stand in `comparison` to `rank` on the driving side, which
    /// is written first.
    pub(super) fn narrow(
        &self,
        range: Range<u32>,
        rank: u32,
        comparison: Comparison,
    ) -> Range<u32> {
        let equal = self.equal(&range, rank);
        match comparison {
            Comparison::Less => equal.end..range.end,
            Comparison::LessOrEqual => equal.start..range.end,
            Comparison::Greater => range.start..equal.start,
            Comparison::GreaterOrEqual => range.start..equal.end,
            Comparison::NotEqual => range,
        }
    }
}

/// Slices in output order.
pub(super) struct SlicePart {
    /// Places of the driving side.
    pub(super) driving: Vec<u32>,
    /// Positions in the other side's order; none is empty.
    pub(super) slices: Vec<Range<u32>>,
    /// Matches up to and with each slice.
    pub(super) totals: Vec<u64>,
    /// Which side the slices are of.
    pub(super) sliced: Side,
}

impl SlicePart {
    /// For each driving place, in order, the slices that `of` gives it; at most two.
    pub(super) fn new(
        driving: impl IndexedParallelIterator<Item = u32>,
        sliced: Side,
        of: impl Fn(u32) -> [Range<u32>; 2] + Sync,
    ) -> Self {
        let found: Vec<(u32, [Range<u32>; 2])> = driving.map(|place| (place, of(place))).collect();
        let mut part = Self { driving: vec![], slices: vec![], totals: vec![], sliced };
        part.driving.reserve(found.len());
        part.slices.reserve(found.len());
        part.totals.reserve(found.len());
        let mut total = 0;
        for (place, slices) in found {
            for slice in slices.into_iter().filter(|slice| !slice.is_empty()) {
                total += slice.len() as u64;
                part.driving.push(place);
                part.slices.push(slice);
                part.totals.push(total);
            }
        }
        part
    }

    /// How many matches there are.
    pub(super) fn total(&self) -> u64 {
        self.totals.last().copied().unwrap_or(0)
    }

    /// The matches numbered `wanted`: calls `found` with each driving place and its slice.
    pub(super) fn for_each(&self, wanted: Range<u64>, mut found: impl FnMut(u32, Range<u32>)) {
        let mut index = self.totals.partition_point(|&total| total <= wanted.start);
        let mut at = wanted.start;
        while at < wanted.end {
            let slice = &self.slices[index];
            let begins = self.totals[index] - slice.len() as u64;
            let end = self.totals[index].min(wanted.end);
            let start = slice.start + (at - begins) as u32;
            found(self.driving[index], start..slice.start + (end - begins) as u32);
            at = end;
            index += 1;
        }
    }

    /// How many matches each of `places` driving places has, added to `counts`.
    pub(super) fn count_driving(&self, counts: &mut [u64]) {
        for (&place, slice) in self.driving.iter().zip(&self.slices) {
            counts[place as usize] += slice.len() as u64;
        }
    }

    /// How many matches each place of the sliced side has, added to `counts`; `order` is its order.
    pub(super) fn count_sliced(&self, order: &[u32], counts: &mut [u64]) {
        // Slices begin and end somewhere: a running sum tells how many cover a position.
        let mut steps = vec![0_i64; order.len() + 1];
        for slice in &self.slices {
            steps[slice.start as usize] += 1;
            steps[slice.end as usize] -= 1;
        }
        let mut covering = 0;
        for (position, &place) in order.iter().enumerate() {
            covering += steps[position];
            counts[place as usize] += covering as u64;
        }
    }
}

/// The slices of a join on one column of the sliced side: all `terms` compare with that column.
pub(super) fn slices_of(
    driving: &RankedSide,
    order: &KeyOrder,
    terms: &[(usize, Comparison)],
    sliced: Side,
) -> SlicePart {
    let of = |place: u32| partners(driving, place, order, terms);
    SlicePart::new((0..driving.len() as u32).into_par_iter(), sliced, of)
}

/// The positions that `place` goes with under all `terms`, of which one may be `!=`.
pub(super) fn partners(
    driving: &RankedSide,
    place: u32,
    order: &KeyOrder,
    terms: &[(usize, Comparison)],
) -> [Range<u32>; 2] {
    let place = place as usize;
    let group = driving.groups.as_ref().map(|ids| ids[place]);
    let mut range = order.all(group);
    let mut hole = None;
    for &(column, comparison) in terms {
        let rank = driving.columns[column][place];
        range = order.narrow(range, rank, comparison);
        if comparison == Comparison::NotEqual {
            hole = Some(rank);
        }
        if range.is_empty() {
            return [0..0, 0..0];
        }
    }
    match hole {
        Some(rank) => {
            let equal = order.equal(&range, rank);
            [range.start..equal.start, equal.end..range.end]
        }
        None => [range, 0..0],
    }
}

/// The term as the sliced side's partner reads it: driving column, comparison.
pub(super) fn driven_by(term: &RankedTerm, sliced: Side) -> (usize, Comparison) {
    match sliced {
        Side::Right => (term.left, term.comparison),
        Side::Left => (term.right, term.comparison.turned()),
    }
}

/// How a task names its rows.
pub(super) enum Numbering {
    /// Both tables are as they were given: slices are spelled out as pairs of rows.
    Rows {
        /// Rows of the driving side by place.
        driving: Arc<Vec<u32>>,
        /// Rows of the sliced side by position.
        sliced: Arc<Vec<u32>>,
    },
    /// The sliced table was put into key order; driving places become these rows.
    Slices {
        /// Rows of the driving table by place.
        driving: Arc<Vec<u32>>,
    },
}

/// Builds the matches numbered `wanted` of a part.
pub(super) struct SliceTask {
    pub(super) part: Arc<SlicePart>,
    pub(super) numbering: Arc<Numbering>,
    pub(super) wanted: Range<u64>,
    pub(super) control: Arc<Control>,
}

impl MatchTask for SliceTask {
    fn next(&mut self, limit: usize) -> Result<Option<Matches>> {
        let end = self.wanted.end.min(self.wanted.start + limit as u64);
        let wanted = std::mem::replace(&mut self.wanted.start, end)..end;
        if wanted.is_empty() {
            return Ok(None);
        }
        let rows = (wanted.end - wanted.start) as usize;
        self.control.advance(rows as u64);
        let matches = match &*self.numbering {
            Numbering::Slices { driving } => {
                let (mut left, mut slices) = (Vec::new(), Vec::new());
                self.part.for_each(wanted, |place, slice| {
                    left.push(driving[place as usize]);
                    slices.push(slice);
                });
                Matches::Slices { rows: left, slices, sliced: self.part.sliced }
            }
            Numbering::Rows { driving, sliced } => {
                let (mut ours, mut theirs) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
                self.part.for_each(wanted, |place, slice| {
                    ours.extend(std::iter::repeat_n(driving[place as usize], slice.len()));
                    theirs.extend_from_slice(&sliced[slice.start as usize..slice.end as usize]);
                });
                match self.part.sliced {
                    Side::Right => Matches::Pairs { left: ours, right: theirs },
                    Side::Left => Matches::Pairs { left: theirs, right: ours },
                }
            }
        };
        Ok(Some(matches))
    }
}
