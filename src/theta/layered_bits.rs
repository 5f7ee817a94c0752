//! A set of small numbers that inserts and lists fast: bits, with layers of summaries above them.
//!
//! Bit `i` of a layer says whether word `i` of the layer below holds anything, so listing skips
//! empty stretches 64, 4,096, … numbers at a time. A million numbers take 128 kB: they stay in a
//! core's own cache. Inserting: one word per layer. Listing: time in proportion to what is listed.

use std::ops::Range;

/// A set of numbers below a fixed bound.
#[derive(Clone, Debug)]
pub(super) struct LayeredBits {
    /// The bits themselves, then summaries, the last of one word.
    layers: Vec<Vec<u64>>,
}

impl LayeredBits {
    /// The empty set of numbers below `bound`.
    pub(super) fn new(bound: usize) -> Self {
        let mut layers = Vec::new();
        let mut words = bound.div_ceil(64).max(1);
        loop {
            layers.push(vec![0; words]);
            if words == 1 {
                return Self { layers };
            }
            words = words.div_ceil(64);
        }
    }

    /// Adds `number`.
    pub(super) fn insert(&mut self, number: u32) {
        let mut place = number as usize;
        for layer in &mut self.layers {
            let (word, bit) = (&mut layer[place / 64], 1 << (place % 64));
            let summarised = *word != 0;
            *word |= bit;
            if summarised {
                return;
            }
            place /= 64;
        }
    }

    /// Calls `found` with each member within `range`, in ascending order.
    pub(super) fn for_each(&self, range: Range<u32>, mut found: impl FnMut(u32)) {
        if !range.is_empty() {
            let bits = range.start as usize..range.end as usize;
            self.for_each_word(0, bits, &mut |word, mut rest| {
                while rest != 0 {
                    found(word as u32 * 64 + rest.trailing_zeros());
                    rest &= rest - 1;
                }
            });
        }
    }

    /// Calls `found` with each word of `layer` that has members within `bits`, which is not empty,
    /// and with those members. Once per word, so that the call does not weigh.
    fn for_each_word(&self, layer: usize, bits: Range<usize>, found: &mut dyn FnMut(usize, u64)) {
        let words = &self.layers[layer];
        let (first, last) = (bits.start / 64, (bits.end - 1) / 64);
        let from_start = u64::MAX << (bits.start % 64);
        let to_end = u64::MAX >> (63 - (bits.end - 1) % 64);
        if first == last {
            found(first, words[first] & from_start & to_end);
            return;
        }
        found(first, words[first] & from_start);
        // A handful of words is read faster than its summary.
        if last - first < 16 || layer + 1 == self.layers.len() {
            (first + 1..last).for_each(|word| found(word, words[word]));
        } else {
            self.for_each_word(layer + 1, first + 1..last, &mut |summary, mut rest| {
                while rest != 0 {
                    let word = summary * 64 + rest.trailing_zeros() as usize;
                    found(word, words[word]);
                    rest &= rest - 1;
                }
            });
        }
        found(last, words[last] & to_end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn lists_what_a_plain_set_lists(
            bound in prop::sample::select(vec![1_u32, 63, 64, 65, 4096, 5000, 300_000]),
            numbers in prop::collection::vec(any::<u32>(), 0..300),
            ranges in prop::collection::vec((any::<u32>(), any::<u32>()), 1..20),
        ) {
            let mut bits = LayeredBits::new(bound as usize);
            let set: BTreeSet<u32> = numbers.iter().map(|number| number % bound).collect();
            set.iter().for_each(|&number| bits.insert(number));
            for (a, b) in ranges {
                let (a, b) = (a % (bound + 1), b % (bound + 1));
                let range = a.min(b)..a.max(b);
                let mut listed = Vec::new();
                bits.for_each(range.clone(), |number| listed.push(number));
                prop_assert_eq!(listed, set.range(range).copied().collect::<Vec<_>>());
            }
        }
    }
}
