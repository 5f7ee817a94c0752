//! Places in the order of their keys; places of equal keys keep their order.
//!
//! A key and its place are packed into one number, so that sorting moves and compares nothing else:
//!
//! ```text
//! 63                    20          0
//! │ key - least key │ cut │  place  │      cut: bits of the key that find no room
//! ```
//!
//! Numbers are dealt into buckets by their highest bits and sorted there, on all threads. Keys that
//! differ only in bits that were cut look alike; such stretches are sorted once more by themselves,
//! where their least key is closer and fewer bits are cut. Keys that are sorted already are left
//! alone, and keys with few distinct values have few bits to deal by.
//!
//! Cost: O(n log n) at worst, about three passes where the highest bits spread the keys.

use std::ops::Range;

use rayon::prelude::*;

/// Places in order, and the key of each.
pub(super) struct Sorted {
    pub(super) order: Vec<u32>,
    pub(super) keys: Vec<u64>,
}

/// Places in the order of their groups, then of their keys.
pub(super) struct Grouped {
    pub(super) sorted: Sorted,
    /// How many places come before each group, and behind the last.
    pub(super) before: Vec<u32>,
}

/// Work on fewer elements than this is not worth sharing between threads.
const SHARED: usize = 1 << 14;

/// Sorts the places of `keys`.
pub(super) fn sort_places(keys: &[u64]) -> Sorted {
    if keys.is_sorted() {
        return Sorted { order: (0..keys.len() as u32).collect(), keys: keys.to_vec() };
    }
    let (least, greatest) = extremes(keys);
    let place_bits = bits(keys.len() as u64 - 1);
    let cut = (bits(greatest - least) + place_bits).saturating_sub(u64::BITS);
    let pack = |(place, &key): (usize, &u64)| ((key - least) >> cut) << place_bits | place as u64;
    let packed = keys.par_iter().enumerate().with_min_len(SHARED);
    let mut packed: Vec<u64> = packed.map(pack).collect();
    sort_numbers(&mut packed);
    let unpack = |&number: &u64| {
        let place = number as u32 & (u32::MAX >> (u32::BITS - place_bits));
        let key = if cut > 0 { keys[place as usize] } else { (number >> place_bits) + least };
        (place, key)
    };
    let mut sorted = Sorted { order: vec![], keys: vec![] };
    let unpacked = packed.par_iter().with_min_len(SHARED).map(unpack);
    unpacked.unzip_into_vecs(&mut sorted.order, &mut sorted.keys);
    if cut > 0 {
        let mut begin = 0;
        for alike in packed.chunk_by(|a, b| a >> place_bits == b >> place_bits) {
            let run = begin..begin + alike.len();
            begin = run.end;
            sort_run(&mut sorted.order[run.clone()], &mut sorted.keys[run]);
        }
    }
    sorted
}

/// Sorts the places of `keys` within their groups; `groups` has one of `count` ids per place.
pub(super) fn sort_grouped(keys: &[u64], groups: &[u32], count: usize) -> Grouped {
    let (order, before) = group_places(groups, count);
    let keys = order.par_iter().with_min_len(SHARED).map(|&place| keys[place as usize]).collect();
    let mut sorted = Sorted { order, keys };
    let bounds: Vec<Range<u32>> = before.windows(2).map(|pair| pair[0]..pair[1]).collect();
    sort_runs(&mut sorted.order, &mut sorted.keys, 0, &bounds);
    Grouped { sorted, before }
}

/// Places in the order of their groups, and how many come before each group and behind the last.
pub(super) fn group_places(groups: &[u32], count: usize) -> (Vec<u32>, Vec<u32>) {
    let mut before = vec![0; count + 2];
    for &group in groups {
        before[group as usize + 2] += 1;
    }
    for group in 2..before.len() {
        before[group] += before[group - 1];
    }
    // One place early: while places are dealt, each count moves up to where the next group begins.
    let mut order = vec![0; groups.len()];
    for (&group, place) in groups.iter().zip(0..) {
        let at = &mut before[group as usize + 1];
        order[*at as usize] = place;
        *at += 1;
    }
    before.pop();
    (order, before)
}

/// Sorts each of `runs`, which follow one another from `begin` on.
fn sort_runs(places: &mut [u32], keys: &mut [u64], begin: u32, runs: &[Range<u32>]) {
    if runs.len() > 1 && places.len() > SHARED {
        let (low, high) = runs.split_at(runs.len() / 2);
        let middle = (high[0].start - begin) as usize;
        let (low_places, high_places) = places.split_at_mut(middle);
        let (low_keys, high_keys) = keys.split_at_mut(middle);
        rayon::join(
            || sort_runs(low_places, low_keys, begin, low),
            || sort_runs(high_places, high_keys, high[0].start, high),
        );
        return;
    }
    for run in runs {
        let run = (run.start - begin) as usize..(run.end - begin) as usize;
        sort_run(&mut places[run.clone()], &mut keys[run]);
    }
}

/// Sorts `places` by `keys`, their keys, which are sorted with them.
fn sort_run(places: &mut [u32], keys: &mut [u64]) {
    const SHORT: usize = 24;
    if keys.is_sorted() {
        return;
    }
    if keys.len() <= SHORT {
        for end in 1..keys.len() {
            let (place, key) = (places[end], keys[end]);
            let at = keys[..end].partition_point(|&other| other <= key);
            places.copy_within(at..end, at + 1);
            keys.copy_within(at..end, at + 1);
            (places[at], keys[at]) = (place, key);
        }
        return;
    }
    let sorted = sort_places(keys);
    keys.copy_from_slice(&sorted.keys);
    let unsorted = places.to_vec();
    for (place, at) in places.iter_mut().zip(sorted.order) {
        *place = unsorted[at as usize];
    }
}

/// Numbers in one bucket, about; and at most, before they are dealt out again.
const BUCKET: usize = 256;
const CROWDED: usize = 8192;

/// Sorts numbers of which no two are equal.
fn sort_numbers(numbers: &mut [u64]) {
    if numbers.len() <= CROWDED {
        numbers.sort_unstable();
        return;
    }
    if numbers.is_sorted() {
        return;
    }
    let (least, greatest) = extremes(numbers);
    let digit = (numbers.len() / BUCKET).ilog2().min(11);
    let shift = bits(greatest - least).saturating_sub(digit);
    let bucket = |number: u64| ((number - least) >> shift) as usize;
    let buckets = bucket(greatest) + 1;
    // Each stretch is dealt by itself, then each bucket collects its piece of every stretch.
    let stretch = numbers.len().div_ceil(2 * rayon::current_num_threads()).max(SHARED);
    let mut dealt = vec![0; numbers.len()];
    let stretches = numbers.par_chunks(stretch).zip(dealt.par_chunks_mut(stretch));
    let before: Vec<Vec<u32>> = stretches
        .map(|(from, to)| {
            let mut before = vec![0; buckets + 2];
            from.iter().for_each(|&number| before[bucket(number) + 2] += 1);
            (2..before.len()).for_each(|at| before[at] += before[at - 1]);
            for &number in from {
                let at = &mut before[bucket(number) + 1];
                to[*at as usize] = number;
                *at += 1;
            }
            before
        })
        .collect();
    let mut rest = numbers;
    let sorted: Vec<&mut [u64]> = (0..buckets)
        .map(|bucket| {
            let len: u32 = before.iter().map(|of| of[bucket + 1] - of[bucket]).sum();
            rest.split_off_mut(..len as usize).unwrap_or_default()
        })
        .collect();
    sorted.into_par_iter().enumerate().for_each(|(bucket, out)| {
        let mut at = 0;
        for (of, stretch) in before.iter().zip(dealt.chunks(stretch)) {
            let piece = &stretch[of[bucket] as usize..of[bucket + 1] as usize];
            out[at..at + piece.len()].copy_from_slice(piece);
            at += piece.len();
        }
        sort_numbers(out);
    });
}

/// The least and the greatest of `numbers`.
fn extremes(numbers: &[u64]) -> (u64, u64) {
    numbers
        .par_iter()
        .with_min_len(SHARED)
        .fold(|| (u64::MAX, 0), |(low, high), &number| (low.min(number), high.max(number)))
        .reduce(|| (u64::MAX, 0), |a, b| (a.0.min(b.0), a.1.max(b.1)))
}

/// How many bits it takes to write `number`.
fn bits(number: u64) -> u32 {
    u64::BITS - number.leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(keys: &[u64]) {
        let sorted = sort_places(keys);
        let mut expected: Vec<u32> = (0..keys.len() as u32).collect();
        expected.sort_by_key(|&place| keys[place as usize]);
        assert_eq!(sorted.order, expected);
        assert!(expected.iter().map(|&place| keys[place as usize]).eq(sorted.keys));
    }

    /// `rows` numbers that look random.
    fn mixed(rows: u64) -> impl Iterator<Item = u64> {
        (0..rows).map(|i| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31) ^ i)
    }

    #[test]
    fn places_of_many_keys_come_in_order() {
        let rows = 3 * SHARED as u64;
        check(&mixed(rows).collect::<Vec<_>>());
        check(&mixed(rows).map(|key| key % 10).collect::<Vec<_>>());
        check(&(0..rows).collect::<Vec<_>>());
        check(&(0..rows).rev().collect::<Vec<_>>());
        check(&vec![7; rows as usize]);
        // Half of the keys are one, a quarter another, and so on.
        check(&mixed(rows).map(|key| key.trailing_zeros().into()).collect::<Vec<_>>());
        check(&mixed(rows).map(|key| key >> (key % 64)).collect::<Vec<_>>());
        // Close together but for one: most bits in which they differ are cut.
        check(
            &std::iter::once(u64::MAX).chain(mixed(rows).map(|key| key >> 40)).collect::<Vec<_>>(),
        );
    }

    proptest! {
        #[test]
        fn agrees_with_a_plain_sort(
            keys in prop::collection::vec((any::<u64>(), 0..64_u32), 0..200),
        ) {
            check(&keys.iter().map(|(key, shift)| key >> shift).collect::<Vec<_>>());
        }

        #[test]
        fn groups_are_sorted_one_by_one(
            rows in prop::collection::vec((0..9_u32, 0..20_u64), 0..200),
        ) {
            let (groups, keys): (Vec<_>, Vec<_>) = rows.iter().copied().unzip();
            let Grouped { sorted, before } = sort_grouped(&keys, &groups, 9);
            let mut expected: Vec<u32> = (0..rows.len() as u32).collect();
            expected.sort_by_key(|&place| rows[place as usize]);
            prop_assert_eq!(&sorted.order, &expected);
            prop_assert!(expected.iter().map(|&place| keys[place as usize]).eq(sorted.keys));
            for group in 0..10 {
                let fewer = groups.iter().filter(|&&other| other < group).count();
                prop_assert_eq!(before[group as usize] as usize, fewer);
            }
        }
    }
}
