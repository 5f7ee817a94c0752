//! What cannot match is not compared: rows (Algorithm 1), partitions against the whole other side
//! (CFS), pairs of partitions (Algorithm 3, lines 11 to 23).
//!
//! All three ask the same question of actual keys, never of nominal boundaries: does the best left
//! key match the best right key? For `<` and `<=` these are the least left and the greatest right
//! one, for `>` and `>=` the other way round.

use std::ops::Range;

use super::partition::{Extent, Side};
use crate::predicate::Comparison;

/// Whether any pair of keys from these extents satisfies `comparison`.
pub(super) fn can_match(left: &Extent, comparison: Comparison, right: &Extent) -> bool {
    let (left, right) = (left.best_left(comparison), right.best_right(comparison));
    comparison.accepts(left.cmp(&right))
}

/// Algorithm 1: removes the rows of both sides that the other side's extremes rule out.
pub(super) fn prefilter(left: &mut Side, comparison: Comparison, right: &mut Side) {
    let (Some(l), Some(r)) = (left.extent(0..left.len()), right.extent(0..right.len())) else {
        left.retain(|_| false);
        right.retain(|_| false);
        return;
    };
    let (best_left, best_right) = (l.best_left(comparison), r.best_right(comparison));
    left.retain(|key| comparison.accepts(key.cmp(&best_right)));
    right.retain(|key| comparison.accepts(best_left.cmp(&key)));
}

/// CFS: the partitions of both sides that the other side as a whole does not rule out.
pub(super) fn cross_filter(
    left: &Side,
    comparison: Comparison,
    right: &Side,
) -> [Vec<Range<usize>>; 2] {
    let (Some(l), Some(r)) = (left.extent(0..left.len()), right.extent(0..right.len())) else {
        return [Vec::new(), Vec::new()];
    };
    let survivors = |side: &Side, survives: &dyn Fn(&Extent) -> bool| {
        let survives =
            |part: &&Range<usize>| side.extent((*part).clone()).is_some_and(|e| survives(&e));
        side.parts.iter().filter(survives).cloned().collect()
    };
    [
        survivors(left, &|part| can_match(part, comparison, &r)),
        survivors(right, &|part| can_match(&l, comparison, part)),
    ]
}
