//! Counters of one run: what the papers measure and what users want to see.
//!
//! Kernels count in locals and add once per step, so a lock is cheap enough here.
//! Names are shared by all families; rows are conserved per side:
//! `rows_left = matched_left + unmatched_left + filtered_left`, and likewise for the right; the
//! last is absent where nothing is set aside before it is compared. Joins of more than two inputs
//! number them: `rows_0`, `matched_0` and so on.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// One measured value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Metric {
    /// A number of things.
    Count(u64),
    /// Seconds or a ratio.
    Real(f64),
}

/// What a value is called; made up where it holds the number of an input.
pub type Name = Cow<'static, str>;

/// The named values of one run, in alphabetical order.
#[derive(Debug, Default)]
pub struct Metrics {
    values: Mutex<BTreeMap<Name, Metric>>,
}

impl Metrics {
    /// Adds to a count.
    pub fn add(&self, name: impl Into<Name>, count: u64) {
        let mut values = self.lock();
        let entry = values.entry(name.into()).or_insert(Metric::Count(0));
        if let Metric::Count(total) = entry {
            *total = total.saturating_add(count);
        }
    }

    /// Adds to a real value.
    pub fn add_real(&self, name: impl Into<Name>, more: f64) {
        let mut values = self.lock();
        let entry = values.entry(name.into()).or_insert(Metric::Real(0.0));
        if let Metric::Real(total) = entry {
            *total += more;
        }
    }

    /// Adds all values of `other`, a part of the same work that is done.
    pub fn add_all(&self, other: &Self) {
        for (name, value) in other.snapshot() {
            match value {
                Metric::Count(count) => self.add(name, count),
                Metric::Real(real) => self.add_real(name, real),
            }
        }
    }

    /// Sets a value, replacing what was there.
    pub fn set(&self, name: impl Into<Name>, value: Metric) {
        self.lock().insert(name.into(), value);
    }

    /// The count called `name`, 0 if nothing was counted.
    pub fn count(&self, name: &str) -> u64 {
        match self.lock().get(name) {
            Some(Metric::Count(count)) => *count,
            _ => 0,
        }
    }

    /// All values so far.
    pub fn snapshot(&self) -> Vec<(Name, Metric)> {
        self.lock().iter().map(|(name, value)| (name.clone(), *value)).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Name, Metric>> {
        // A panic while holding the lock leaves the map whole: every update is one insert.
        self.values.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_and_values_replace() {
        let metrics = Metrics::default();
        metrics.add("rows_out", 2);
        metrics.add("rows_out", 3);
        metrics.set("seconds", Metric::Real(1.0));
        metrics.set("seconds", Metric::Real(0.25));
        metrics.add_real("seconds", 0.25);
        assert_eq!(metrics.count("rows_out"), 5);
        assert_eq!(metrics.count("never_counted"), 0);
        assert_eq!(
            metrics.snapshot(),
            vec![("rows_out".into(), Metric::Count(5)), ("seconds".into(), Metric::Real(0.5))]
        );
    }
}
