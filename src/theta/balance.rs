//! Load over the source's four workers.
//!
//! Every product is dealt to one worker, whose input grows by the rows of both partitions and
//! whose output grows by the product's matches. The ratio is the greatest load divided by the
//! average one: 1 is perfect, [`WORKERS`] is one worker doing everything. These workers are an
//! account, the same on every machine; threads take tasks as they come.

use std::sync::atomic::{AtomicU64, Ordering};

/// As in the source.
pub(super) const WORKERS: usize = 4;

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
}
