//! Keys too wide for the kernels become ranks: 0 for the least, ties alike.

use rayon::slice::ParallelSliceMut;

/// The ranks of several columns in one common numbering.
pub(super) fn rank_together(columns: &[Vec<u128>]) -> Vec<Vec<u64>> {
    let places = columns.iter().zip(0_u32..).flat_map(|(keys, column)| {
        keys.iter().zip(0_u32..).map(move |(&key, place)| (key, column, place))
    });
    let mut sorted: Vec<_> = places.collect();
    sorted.par_sort_unstable_by_key(|&(key, _, _)| key);
    let mut ranks: Vec<Vec<u64>> = columns.iter().map(|keys| vec![0; keys.len()]).collect();
    let mut rank = 0;
    let mut previous = sorted.first().map_or(0, |&(key, _, _)| key);
    for (key, column, place) in sorted {
        rank += u64::from(previous != key);
        previous = key;
        ranks[column as usize][place as usize] = rank;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn ranks_count_smaller_keys(
            a in prop::collection::vec(0..20_u128, 0..50),
            b in prop::collection::vec(10..30_u128, 0..50),
        ) {
            let all: BTreeSet<u128> = a.iter().chain(&b).copied().collect();
            let ranks = rank_together(&[a.clone(), b.clone()]);
            for (keys, ranks) in [&a, &b].into_iter().zip(&ranks) {
                prop_assert_eq!(keys.len(), ranks.len());
                for (key, &rank) in keys.iter().zip(ranks) {
                    prop_assert_eq!(rank as usize, all.range(..key).count());
                }
            }
        }
    }
}
