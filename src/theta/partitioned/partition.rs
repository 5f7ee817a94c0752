//! One side, its rows arranged so that each partition is a stretch of places.
//!
//! Rows are assigned to partitions by position, which never decreases with the key. Within a
//! partition they keep the order they had: row order, or key order if the side was sorted.

use std::ops::Range;

use crate::key::{KeyColumn, Keys};
use crate::predicate::Comparison;

/// Least and greatest key of some rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    least: u128,
    greatest: u128,
}

impl Extent {
    /// The left key that has a partner if any has.
    pub fn best_left(&self, comparison: Comparison) -> u128 {
        if grows(comparison) { self.least } else { self.greatest }
    }

    /// The right key that has a partner if any has.
    pub fn best_right(&self, comparison: Comparison) -> u128 {
        if grows(comparison) { self.greatest } else { self.least }
    }
}

/// Whether more right keys match as they grow.
fn grows(comparison: Comparison) -> bool {
    matches!(comparison, Comparison::Less | Comparison::LessOrEqual)
}

/// The rows of one side that have a key, arranged and cut.
pub(super) struct Side {
    /// Row numbers in the table.
    pub rows: Vec<u32>,
    pub keys: Keys,
    pub positions: Vec<f64>,
    /// Stretches of places, none of them empty; together all places.
    pub parts: Vec<Range<usize>>,
}

impl Side {
    /// One partition of all rows that are not null, in row order.
    pub fn new(column: &KeyColumn) -> Self {
        let rows: Vec<u32> =
            (0..column.len() as u32).filter(|&row| !column.is_null(row as usize)).collect();
        let (keys, positions) = (column.keys.take(&rows), column.positions(&rows));
        let parts = whole(rows.len());
        Self { rows, keys, positions, parts }
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The extent of these places, `None` if there are none.
    pub fn extent(&self, places: Range<usize>) -> Option<Extent> {
        fn of<K: Copy + Ord + Into<u128>>(keys: &[K]) -> Option<Extent> {
            let (least, greatest) = (keys.iter().min()?, keys.iter().max()?);
            Some(Extent { least: (*least).into(), greatest: (*greatest).into() })
        }
        match &self.keys {
            Keys::U64(keys) => of(&keys[places]),
            Keys::U128(keys) => of(&keys[places]),
        }
    }

    /// Keeps the rows whose key passes, and makes them one partition.
    pub fn retain(&mut self, mut passes: impl FnMut(u128) -> bool) {
        let kept = match &self.keys {
            Keys::U64(keys) => places_where(keys, |key| passes(key.into())),
            Keys::U128(keys) => places_where(keys, passes),
        };
        self.pick(&kept);
        self.parts = whole(kept.len());
    }

    /// Puts rows in key order; equal keys keep their order.
    pub fn sort(&mut self) {
        fn order<K: Ord>(keys: &[K]) -> Vec<u32> {
            let mut places: Vec<u32> = (0..keys.len() as u32).collect();
            places.sort_by_key(|&place| &keys[place as usize]);
            places
        }
        let order = match &self.keys {
            Keys::U64(keys) => order(keys),
            Keys::U128(keys) => order(keys),
        };
        self.pick(&order);
    }

    /// Arranges `places` by position and returns their stretches between `cuts` (ascending);
    /// a position at a cut lies behind it. Empty stretches are left out. No sorting: linear, but
    /// for the search among the cuts.
    pub fn cut(&mut self, places: Range<usize>, cuts: &[f64]) -> Vec<Range<usize>> {
        let stretch = |position: f64| cuts.partition_point(|&cut| cut <= position);
        let stretches: Vec<usize> =
            self.positions[places.clone()].iter().map(|&position| stretch(position)).collect();
        let mut ends = vec![0; cuts.len() + 1];
        for &stretch in &stretches {
            ends[stretch] += 1;
        }
        let mut begin = places.start;
        let mut parts = Vec::new();
        for end in &mut ends {
            let part = begin..begin + *end;
            *end = begin - places.start;
            begin = part.end;
            if !part.is_empty() {
                parts.push(part);
            }
        }
        if parts.len() > 1 {
            let targets: Vec<usize> = stretches
                .into_iter()
                .map(|stretch| {
                    ends[stretch] += 1;
                    ends[stretch] - 1
                })
                .collect();
            scatter(&mut self.rows[places.clone()], &targets);
            scatter(&mut self.positions[places.clone()], &targets);
            match &mut self.keys {
                Keys::U64(keys) => scatter(&mut keys[places], &targets),
                Keys::U128(keys) => scatter(&mut keys[places], &targets),
            }
        }
        parts
    }

    /// Where keys stop being less than `key`; for a side in key order.
    pub fn lower_bound(&self, key: u128) -> usize {
        match &self.keys {
            Keys::U64(keys) => keys.partition_point(|&k| u128::from(k) < key),
            Keys::U128(keys) => keys.partition_point(|&k| k < key),
        }
    }

    /// The key at a place.
    pub fn key(&self, place: usize) -> u128 {
        match &self.keys {
            Keys::U64(keys) => keys[place].into(),
            Keys::U128(keys) => keys[place],
        }
    }

    /// The rows at `places`, in that order, and no others.
    fn pick(&mut self, places: &[u32]) {
        self.rows = places.iter().map(|&place| self.rows[place as usize]).collect();
        self.positions = places.iter().map(|&place| self.positions[place as usize]).collect();
        self.keys = self.keys.take(places);
    }
}

/// `places` in `count` stretches of equal length, give or take one; none of them empty.
pub(super) fn by_count(places: Range<usize>, count: usize) -> Vec<Range<usize>> {
    let count = count.min(places.len());
    let at = |k: usize| places.start + (places.len() as u128 * k as u128 / count as u128) as usize;
    (0..count).map(|k| at(k)..at(k + 1)).collect()
}

fn whole(rows: usize) -> Vec<Range<usize>> {
    by_count(0..rows, 1)
}

fn places_where<K: Copy>(keys: &[K], mut passes: impl FnMut(K) -> bool) -> Vec<u32> {
    (0..keys.len() as u32).filter(|&place| passes(keys[place as usize])).collect()
}

/// Moves `values[i]` to place `targets[i]`.
fn scatter<T: Copy>(values: &mut [T], targets: &[usize]) {
    let before = values.to_vec();
    for (value, &target) in before.into_iter().zip(targets) {
        values[target] = value;
    }
}
