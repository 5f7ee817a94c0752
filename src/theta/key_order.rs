//! One side in the order of its keys, and where a key would stand in it.
//!
//! Two ways to find a place: by *buckets* of equal width, which tell at once between which positions
//! a key lies (a few steps of bisection are left; all of them where one bucket holds most keys), and
//! by *galloping* on from an earlier answer, for keys that come in ascending order.

use std::ops::Range;

use super::ranked::RankedSide;
use super::sorting::{Grouped, Sorted, group_places, sort_grouped, sort_places};
use crate::predicate::Comparison;

/// One side in the order of (group, key of one column).
pub(super) struct KeyOrder {
    /// The place that comes at each position.
    pub(super) order: Vec<u32>,
    /// Keys by position.
    pub(super) keys: Vec<u64>,
    /// Positions before each group, where there are groups.
    before_group: Option<Vec<u32>>,
    /// Where there are none.
    buckets: Option<Buckets>,
}

impl KeyOrder {
    /// Orders `side` by its column `column`, within `groups` groups.
    pub(super) fn new(side: &RankedSide, column: usize, groups: usize) -> Self {
        let keys = &side.columns[column];
        match &side.groups {
            Some(ids) => {
                let Grouped { sorted: Sorted { order, keys }, before } =
                    sort_grouped(keys, ids, groups);
                Self { order, keys, before_group: Some(before), buckets: None }
            }
            None => {
                let Sorted { order, keys } = sort_places(keys);
                let buckets = Some(Buckets::new(&keys));
                Self { order, keys, before_group: None, buckets }
            }
        }
    }

    /// Orders `side` by group alone.
    pub(super) fn by_group(side: &RankedSide, groups: usize) -> Self {
        let (order, before_group) = match &side.groups {
            Some(ids) => {
                let (order, before) = group_places(ids, groups);
                (order, Some(before))
            }
            None => ((0..side.len() as u32).collect(), None),
        };
        Self { order, keys: vec![], before_group, buckets: None }
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

    /// The first position within `range`, of one group, whose key is not less than `key`.
    fn below(&self, range: &Range<u32>, key: u64) -> u32 {
        let Some(buckets) = &self.buckets else {
            let keys = &self.keys[range.start as usize..range.end as usize];
            return range.start + keys.partition_point(|&other| other < key) as u32;
        };
        let around = buckets.around(key);
        let keys = &self.keys[around.start as usize..around.end as usize];
        let at = around.start + keys.partition_point(|&other| other < key) as u32;
        at.clamp(range.start, range.end)
    }

    /// The first position within `range`, of one group, whose key is greater than `key`.
    fn through(&self, range: &Range<u32>, key: u64) -> u32 {
        key.checked_add(1).map_or(range.end, |next| self.below(range, next))
    }

    /// As [`below`](Self::below), fast where the answer is near the start of `range`.
    pub(super) fn next_below(&self, range: &Range<u32>, key: u64) -> u32 {
        let keys = &self.keys[range.start as usize..range.end as usize];
        range.start + gallop(keys, key) as u32
    }

    /// As [`through`](Self::through), fast where the answer is near the start of `range`.
    pub(super) fn next_through(&self, range: &Range<u32>, key: u64) -> u32 {
        key.checked_add(1).map_or(range.end, |next| self.next_below(range, next))
    }

    /// The positions within `range`, of one group, whose key is `key`.
    pub(super) fn equal(&self, range: &Range<u32>, key: u64) -> Range<u32> {
        let begin = self.below(range, key);
        begin..self.next_through(&(begin..range.end), key)
    }

    /// The part of `range`, of one group, whose keys stand in `comparison` to `key` on the driving
    /// side, which is written first.
    pub(super) fn narrow(&self, range: Range<u32>, key: u64, comparison: Comparison) -> Range<u32> {
        match comparison {
            Comparison::Less => self.through(&range, key)..range.end,
            Comparison::LessOrEqual => self.below(&range, key)..range.end,
            Comparison::Greater => range.start..self.below(&range, key),
            Comparison::GreaterOrEqual => range.start..self.through(&range, key),
            Comparison::NotEqual => range,
        }
    }
}

/// How many of the sorted `keys` are less than `key`; fast where few are.
pub(super) fn gallop(keys: &[u64], key: u64) -> usize {
    let (mut low, mut step) = (0, 1);
    while low + step <= keys.len() && keys[low + step - 1] < key {
        low += step;
        step *= 2;
    }
    let near = &keys[low..keys.len().min(low + step - 1)];
    low + near.partition_point(|&other| other < key)
}

/// Where the keys of equal width begin in sorted keys.
struct Buckets {
    least: u64,
    shift: u32,
    /// How many keys come before each bucket and behind the last.
    before: Vec<u32>,
}

impl Buckets {
    /// A few keys in each bucket, if they spread evenly.
    const KEYS: usize = 4;

    fn new(keys: &[u64]) -> Self {
        let (Some(&least), Some(&greatest)) = (keys.first(), keys.last()) else {
            return Self { least: 0, shift: 0, before: vec![0, 0] };
        };
        let wanted = (keys.len() / Self::KEYS).max(2).ilog2();
        let shift = (u64::BITS - (greatest - least).leading_zeros()).saturating_sub(wanted);
        let buckets = ((greatest - least) >> shift) as usize + 1;
        let mut before = Vec::with_capacity(buckets + 1);
        for (&key, at) in keys.iter().zip(0..) {
            let bucket = ((key - least) >> shift) as usize;
            if before.len() <= bucket {
                before.resize(bucket + 1, at);
            }
        }
        before.push(keys.len() as u32);
        Self { least, shift, before }
    }

    /// Where to look for the first key that is not less than `key`: it is there or right behind.
    fn around(&self, key: u64) -> Range<u32> {
        let Some(distance) = key.checked_sub(self.least) else { return 0..0 };
        let (bucket, last) = (distance >> self.shift, self.before.len() - 1);
        if bucket >= last as u64 {
            return self.before[last]..self.before[last];
        }
        self.before[bucket as usize]..self.before[bucket as usize + 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;

    fn order(keys: Vec<u64>, groups: Option<Vec<u32>>) -> KeyOrder {
        let rows = Arc::new((0..keys.len() as u32).collect());
        KeyOrder::new(&RankedSide { rows, groups, columns: vec![keys] }, 0, 3)
    }

    /// Every bound that is asked for equals the one that counting gives.
    fn check(rows: &[(u32, u64)], asked: &[u64], grouped: bool) {
        let (groups, keys): (Vec<u32>, Vec<u64>) = rows.iter().copied().unzip();
        let order = order(keys.clone(), grouped.then_some(groups.clone()));
        for group in 0..if grouped { 3 } else { 1 } {
            let range = order.all(Some(group));
            let members: Vec<u64> = (0..rows.len())
                .filter(|&i| !grouped || groups[i] == group)
                .map(|i| keys[i])
                .collect();
            assert_eq!(range.len(), members.len());
            for &key in asked.iter().chain(&keys).chain(&[0, u64::MAX]) {
                let below = members.iter().filter(|&&other| other < key).count() as u32;
                let through = members.iter().filter(|&&other| other <= key).count() as u32;
                assert_eq!(order.below(&range, key) - range.start, below);
                assert_eq!(order.next_below(&range, key) - range.start, below);
                assert_eq!(order.through(&range, key) - range.start, through);
                assert_eq!(order.next_through(&range, key) - range.start, through);
                let equal = order.equal(&range, key);
                assert_eq!((equal.start - range.start, equal.end - range.start), (below, through));
            }
        }
    }

    #[test]
    fn bounds_of_special_keys() {
        for grouped in [false, true] {
            check(&[], &[1], grouped);
            check(&[(0, 0), (1, u64::MAX)], &[1], grouped);
            check(&[(1, 5); 40], &[4, 5, 6], grouped);
            let rising: Vec<_> = (0..40).map(|i| (0, i * i)).collect();
            check(&rising, &[3, 1600], grouped);
            let far: Vec<_> = (0..40).map(|i| (2, 1_u64 << (i + 20))).collect();
            check(&far, &[1], grouped);
        }
    }

    proptest! {
        #[test]
        fn bounds_are_where_counting_puts_them(
            rows in prop::collection::vec((0..3_u32, (any::<u64>(), 0..64_u32)), 0..100),
            asked in prop::collection::vec((any::<u64>(), 0..64_u32), 0..20),
            grouped in any::<bool>(),
        ) {
            let rows: Vec<_> = rows.iter().map(|&(g, (key, shift))| (g, key >> shift)).collect();
            let asked: Vec<_> = asked.iter().map(|&(key, shift)| key >> shift).collect();
            check(&rows, &asked, grouped);
        }
    }
}
