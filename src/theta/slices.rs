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

use super::key_order::KeyOrder;
use super::ranked::{RankedSide, RankedTerm};
use crate::Result;
use crate::control::Control;
use crate::output::{MatchTask, Matches, Side};
use crate::predicate::Comparison;

/// Slices in output order.
pub(super) struct SlicePart {
    /// Places of the driving side.
    pub(super) driving: Vec<u32>,
    /// Positions in the other side's order; some may be empty.
    pub(super) slices: Vec<Range<u32>>,
    /// Matches up to and with each slice.
    pub(super) totals: Vec<u64>,
    /// Which side the slices are of.
    pub(super) sliced: Side,
}

impl SlicePart {
    /// For each of the driving places, in order, the `N` slices that `of` gives the place at an
    /// index. What `of` leaves in its last argument, it finds there with the next index; now and
    /// then it finds 0 instead.
    pub(super) fn new<const N: usize>(
        places: &[u32],
        sliced: Side,
        of: impl Fn(usize, &mut u32) -> [Range<u32>; N] + Sync,
    ) -> Self {
        const STRETCH: usize = 1 << 14;
        let indices = (0..places.len()).into_par_iter().with_min_len(STRETCH);
        let slices: Vec<[Range<u32>; N]> =
            indices.map_init(|| 0, |hint, index| of(index, hint)).collect();
        let slices = slices.into_flattened();
        let sum = |slices: &[Range<u32>]| slices.iter().map(|slice| slice.len() as u64).sum();
        let sums: Vec<u64> = slices.par_chunks(STRETCH).map(sum).collect();
        let mut before = 0;
        let begins: Vec<u64> = sums.iter().map(|sum| (before, before += sum).0).collect();
        let mut totals = vec![0; slices.len()];
        let stretches = totals.par_chunks_mut(STRETCH).zip(slices.par_chunks(STRETCH));
        stretches.zip(begins).for_each(|((totals, slices), mut sum)| {
            for (total, slice) in totals.iter_mut().zip(slices) {
                sum += slice.len() as u64;
                *total = sum;
            }
        });
        let driving = match N {
            1 => places.to_vec(),
            _ => places.iter().flat_map(|&place| [place; N]).collect(),
        };
        Self { driving, slices, totals, sliced }
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
            if !slice.is_empty() {
                found(self.driving[index], start..slice.start + (end - begins) as u32);
            }
            at = end;
            index += 1;
        }
    }

    /// Marks the driving places that have a match.
    pub(super) fn mark_driving(&self, matched: &mut [bool]) {
        for (&place, slice) in self.driving.iter().zip(&self.slices) {
            matched[place as usize] |= !slice.is_empty();
        }
    }

    /// Marks the places of the sliced side that have a match; `order` is its order.
    pub(super) fn mark_sliced(&self, order: &[u32], matched: &mut [bool]) {
        // How far the slices reach that begin at a position.
        let mut reach = vec![0; order.len() + 1];
        for slice in &self.slices {
            let end = &mut reach[slice.start as usize];
            *end = slice.end.max(*end);
        }
        let mut covered = 0;
        for ((&place, reach), position) in order.iter().zip(reach).zip(0..) {
            covered = reach.max(covered);
            matched[place as usize] |= position < covered;
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
    let places: Vec<u32> = (0..driving.len() as u32).collect();
    if terms.iter().any(|(_, comparison)| *comparison == Comparison::NotEqual) {
        return SlicePart::new(&places, sliced, |place, _| partners(driving, place, order, terms));
    }
    SlicePart::new(&places, sliced, |place, _| [within(driving, place, order, terms)])
}

/// The positions that `place` goes with under all `terms`, of which one may be `!=`.
pub(super) fn partners(
    driving: &RankedSide,
    place: usize,
    order: &KeyOrder,
    terms: &[(usize, Comparison)],
) -> [Range<u32>; 2] {
    let range = within(driving, place, order, terms);
    match terms.iter().find(|(_, comparison)| *comparison == Comparison::NotEqual) {
        Some(&(column, _)) => {
            let hole = order.equal(&range, driving.columns[column][place]);
            [range.start..hole.start, hole.end..range.end]
        }
        None => [range, 0..0],
    }
}

/// The positions that `place` goes with under all `terms` but `!=`.
fn within(
    driving: &RankedSide,
    place: usize,
    order: &KeyOrder,
    terms: &[(usize, Comparison)],
) -> Range<u32> {
    let mut range = order.all(driving.groups.as_ref().map(|ids| ids[place]));
    for &(column, comparison) in terms {
        range = order.narrow(range, driving.columns[column][place], comparison);
        if range.is_empty() {
            return 0..0;
        }
    }
    range
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
