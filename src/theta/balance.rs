//! Load over the source's four workers, and which of them makes which product.
//!
//! Every product is dealt to one worker, whose input grows by the rows of both partitions and
//! whose output grows by the product's matches. The ratio is the greatest load divided by the
//! average one: 1 is perfect, [`WORKERS`] is one worker doing everything. These workers are an
//! account, the same on every machine; threads take tasks as they come.

use std::sync::atomic::{AtomicU64, Ordering};

/// As in the source.
pub(super) const WORKERS: usize = 4;

/// How products are dealt to workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deal {
    /// One after the other, in turn.
    InTurn,
    /// By left partition: its products all go to one worker, the partitions in turn.
    ByLeft,
    /// In random order: of each four products in a row, every worker gets one.
    Random(u64),
}

impl Deal {
    /// A dealer who begins anew.
    pub fn begin(self) -> Dealer {
        let seed = if let Self::Random(seed) = self { seed } else { 0 };
        Dealer { deal: self, dealt: 0, hand: std::array::from_fn(|worker| worker), random: seed }
    }
}

/// Deals the products of one run.
pub(super) struct Dealer {
    deal: Deal,
    dealt: usize,
    /// The order in which workers get the next products.
    hand: [usize; WORKERS],
    random: u64,
}

impl Dealer {
    /// The worker who makes the next product, one of left partition number `left`.
    pub fn worker(&mut self, left: usize) -> usize {
        let turn = self.dealt % WORKERS;
        self.dealt += 1;
        match self.deal {
            Deal::InTurn => turn,
            Deal::ByLeft => left % WORKERS,
            Deal::Random(_) => {
                if turn == 0 {
                    for last in (1..WORKERS).rev() {
                        let other = (self.next() % (last as u64 + 1)) as usize;
                        self.hand.swap(last, other);
                    }
                }
                self.hand[turn]
            }
        }
    }

    /// SplitMix64: a seed means the same numbers for ever.
    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

/// What each worker was given and what it gave.
#[derive(Debug, Default)]
pub(super) struct Loads {
    input: [AtomicU64; WORKERS],
    output: [AtomicU64; WORKERS],
}

impl Loads {
    /// Adds rows handed to each worker.
    pub fn add_input(&self, rows: &[u64; WORKERS]) {
        add(&self.input, rows);
    }

    /// Adds matches found by each worker.
    pub fn add_output(&self, matches: &[u64; WORKERS]) {
        add(&self.output, matches);
    }

    /// Adds the loads of a part of the same work.
    pub fn add_all(&self, other: &Self) {
        self.add_input(&other.input.each_ref().map(|load| load.load(Ordering::Relaxed)));
        self.add_output(&other.output.each_ref().map(|load| load.load(Ordering::Relaxed)));
    }

    /// Greatest input ÷ average input.
    pub fn balance_in(&self) -> f64 {
        ratio(&self.input)
    }

    /// Greatest output ÷ average output.
    pub fn balance_out(&self) -> f64 {
        ratio(&self.output)
    }
}

fn add(loads: &[AtomicU64; WORKERS], more: &[u64; WORKERS]) {
    for (load, &more) in loads.iter().zip(more) {
        load.fetch_add(more, Ordering::Relaxed);
    }
}

/// Nothing at all is evenly spread.
fn ratio(loads: &[AtomicU64; WORKERS]) -> f64 {
    let loads = loads.each_ref().map(|load| load.load(Ordering::Relaxed) as f64);
    let mean = loads.iter().sum::<f64>() / WORKERS as f64;
    if mean == 0.0 { 1.0 } else { loads.into_iter().fold(0.0, f64::max) / mean }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_greatest_over_average() {
        let loads = Loads::default();
        assert_eq!((loads.balance_in(), loads.balance_out()), (1.0, 1.0));
        loads.add_input(&[1, 2, 3, 2]);
        loads.add_output(&[0, 7, 0, 0]);
        assert_eq!((loads.balance_in(), loads.balance_out()), (1.5, 4.0));
    }

    #[test]
    fn every_deal_is_fair_in_its_way() {
        let dealt = |deal: Deal| -> Vec<usize> {
            let mut dealer = deal.begin();
            (0..24).map(|product| dealer.worker(product / 3)).collect()
        };
        assert_eq!(dealt(Deal::InTurn)[..6], [0, 1, 2, 3, 0, 1]);
        assert_eq!(dealt(Deal::ByLeft)[..15], [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 0, 0, 0]);
        let random = dealt(Deal::Random(1));
        assert_eq!(random, dealt(Deal::Random(1)));
        assert!(random != dealt(Deal::Random(2)) && random != dealt(Deal::InTurn));
        for mut four in random.chunks(WORKERS).map(<[usize]>::to_vec) {
            four.sort_unstable();
            assert_eq!(four, [0, 1, 2, 3]);
        }
    }
}
