//! Keys that are compared with each other become dense ranks: 0 for the least, ties alike.
//!
//! Ranks are what the sort-based kernels work on: one width whatever the type, four bytes each,
//! and small enough to index arrays by. So after the one sort that makes them, ordering rows is
//! counting, and a bound is looked up instead of searched for.

use rayon::slice::ParallelSliceMut;

use crate::key::Keys;
use crate::{Error, Result};

/// The ranks of several columns in one common numbering, and how many ranks there are.
pub(super) struct Ranks {
    pub(super) columns: Vec<Vec<u32>>,
    pub(super) distinct: usize,
}

/// Ranks the keys of `columns` together. All have the same width.
pub(super) fn rank_together(columns: &[&Keys]) -> Result<Ranks> {
    let narrow = columns.iter().map(|keys| match keys {
        Keys::U64(keys) => Some(keys.as_slice()),
        Keys::U128(_) => None,
    });
    if let Some(narrow) = narrow.collect::<Option<Vec<_>>>() {
        return rank(&narrow);
    }
    let wide = columns.iter().map(|keys| match keys {
        Keys::U128(keys) => Ok(keys.as_slice()),
        Keys::U64(_) => Err(Error::internal("keys that are compared have one width")),
    });
    rank(&wide.collect::<Result<Vec<_>>>()?)
}

fn rank<K: Ord + Copy + Send>(columns: &[&[K]]) -> Result<Ranks> {
    let rows: usize = columns.iter().map(|keys| keys.len()).sum();
    if u32::try_from(rows).is_err() {
        return Err(Error::invalid(format!("{rows} keys are more than can be ranked together")));
    }
    let keys = columns.iter().flat_map(|keys| keys.iter().copied());
    let mut sorted: Vec<(K, u32)> = keys.zip(0..).collect();
    sorted.par_sort_unstable_by_key(|&(key, _)| key);
    let mut ranks = vec![0; rows];
    let mut distinct = 0;
    let mut previous = None;
    for (key, place) in sorted {
        if previous.is_some_and(|previous| previous != key) {
            distinct += 1;
        }
        previous = Some(key);
        ranks[place as usize] = distinct;
    }
    let distinct = if rows == 0 { 0 } else { distinct as usize + 1 };
    let mut begin = 0;
    let cut = |keys: &&[K]| {
        let column = ranks[begin..begin + keys.len()].to_vec();
        begin += keys.len();
        column
    };
    Ok(Ranks { columns: columns.iter().map(cut).collect(), distinct })
}

/// Rows in the order of their ranks; rows of one rank keep their order.
pub(super) struct Sorted {
    /// Which row comes when.
    pub(super) order: Vec<u32>,
    /// How many rows have a smaller rank, for each rank and one behind the last.
    pub(super) before: Vec<u32>,
}

/// Sorts `rows` by their ranks, by counting. `ranks` is indexed by what `rows` hold.
pub(super) fn sort_by_rank(
    rows: impl Iterator<Item = u32> + Clone,
    ranks: &[u32],
    distinct: usize,
) -> Sorted {
    let mut before = vec![0; distinct + 2];
    for row in rows.clone() {
        before[ranks[row as usize] as usize + 2] += 1;
    }
    for rank in 2..before.len() {
        before[rank] += before[rank - 1];
    }
    // One place early: while rows are placed, each count moves up to where the next rank begins.
    let mut order = vec![0; before[distinct + 1] as usize];
    for row in rows {
        let place = &mut before[ranks[row as usize] as usize + 1];
        order[*place as usize] = row;
        *place += 1;
    }
    before.pop();
    Sorted { order, before }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranks_order_as_keys_do(
            a in prop::collection::vec(0..20_u64, 0..50),
            b in prop::collection::vec(10..30_u64, 0..50),
        ) {
            let wide = |keys: &[u64]| Keys::U128(keys.iter().map(|&key| key.into()).collect());
            let narrow = [Keys::U64(a.clone()), Keys::U64(b.clone())];
            for keys in [narrow, [wide(&a), wide(&b)]] {
                let ranks = rank_together(&[&keys[0], &keys[1]]).unwrap();
                let all: Vec<u64> = a.iter().chain(&b).copied().collect();
                let of: Vec<u32> = ranks.columns.concat();
                for (i, key) in all.iter().enumerate() {
                    let smaller: std::collections::BTreeSet<_> =
                        all.iter().filter(|other| *other < key).collect();
                    prop_assert_eq!(of[i] as usize, smaller.len());
                }
                prop_assert_eq!(ranks.distinct, all.iter().collect::<std::collections::BTreeSet<_>>().len());
                let sorted = sort_by_rank(0..a.len() as u32, &ranks.columns[0], ranks.distinct);
                let mut expected: Vec<u32> = (0..a.len() as u32).collect();
                expected.sort_by_key(|&row| a[row as usize]);
                prop_assert_eq!(&sorted.order, &expected);
                for rank in 0..=ranks.distinct {
                    let fewer = ranks.columns[0].iter().filter(|&&r| (r as usize) < rank).count();
                    prop_assert_eq!(sorted.before[rank] as usize, fewer);
                }
            }
        }
    }
}
