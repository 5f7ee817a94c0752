//! The budget counts right whatever is asked of it, in whatever order, from any number of threads.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use dovetail::Error;
use dovetail::budget::{Budget, Reservation};
use proptest::prelude::*;

#[test]
fn a_refusal_names_the_purpose_and_the_numbers_and_changes_nothing() {
    let budget = Budget::bytes(100);
    let held = budget.reserve("sorting a run", 70).unwrap();
    let error = budget.reserve("a merge's pages", 31).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a merge's pages needs 31 bytes, but only 30 of 100 bytes are free"
    );
    assert!(matches!(error, Error::Budget { requested: 31, available: 30, limit: 100, .. }));
    assert_eq!((budget.used(), budget.peak(), budget.available()), (70, 70, 30));
    drop(budget.reserve("a merge's pages", 30).unwrap());
    assert_eq!((budget.used(), budget.peak()), (70, 100));
    drop(held);
    assert_eq!((budget.used(), budget.peak(), budget.limit()), (0, 100, Some(100)));
}

#[test]
fn unlimited_counts_and_still_cannot_overflow() {
    let budget = Budget::unlimited();
    let most = budget.reserve("all", u64::MAX - 1).unwrap();
    assert_eq!((budget.limit(), budget.peak()), (None, u64::MAX - 1));
    assert!(matches!(budget.reserve("more", 2), Err(Error::Budget { available: 1, .. })));
    drop(most);
    assert_eq!(budget.used(), 0);
}

#[test]
fn a_budget_of_zero_gives_zero_bytes() {
    let budget = Budget::bytes(0);
    assert_eq!(budget.reserve("nothing", 0).unwrap().bytes(), 0);
    assert!(budget.reserve("a byte", 1).is_err());
}

#[test]
fn a_part_outlives_the_whole() {
    let budget = Budget::bytes(10);
    let mut whole = budget.reserve("buffers", 10).unwrap();
    assert!(matches!(whole.split(11), Err(Error::Internal(_))));
    let part = whole.split(4).unwrap();
    assert_eq!((whole.bytes(), part.bytes(), part.what(), budget.used()), (6, 4, "buffers", 10));
    drop(whole);
    assert_eq!(budget.used(), 4);
    drop(part);
    assert_eq!(budget.used(), 0);
}

#[derive(Clone, Debug)]
enum Step {
    Reserve(u64),
    Grow(usize, u64),
    Shrink(usize, u64),
    Resize(usize, u64),
    Split(usize, u64),
    Drop(usize),
}

fn step() -> impl Strategy<Value = Step> {
    // Narrow amounts around a limit of 0 to 30, so that refusals and exact fits are common.
    let (which, bytes) = (0..4usize, 0..12u64);
    prop_oneof![
        bytes.clone().prop_map(Step::Reserve),
        (which.clone(), bytes.clone()).prop_map(|(i, n)| Step::Grow(i, n)),
        (which.clone(), bytes.clone()).prop_map(|(i, n)| Step::Shrink(i, n)),
        (which.clone(), bytes.clone()).prop_map(|(i, n)| Step::Resize(i, n)),
        (which.clone(), bytes).prop_map(|(i, n)| Step::Split(i, n)),
        which.prop_map(Step::Drop),
    ]
}

/// Does one step; what is refused, or aimed at a reservation that is not there, does nothing.
fn take_step(budget: &Budget, held: &mut Vec<Reservation>, step: &Step) {
    let count = held.len();
    let at = |i: usize| if count == 0 { None } else { Some(i % count) };
    match *step {
        Step::Reserve(n) => held.extend(budget.reserve("a step", n)),
        Step::Grow(i, n) => at(i).into_iter().for_each(|i| drop(held[i].try_grow(n))),
        Step::Shrink(i, n) => at(i).into_iter().for_each(|i| held[i].shrink(n)),
        Step::Resize(i, n) => at(i).into_iter().for_each(|i| drop(held[i].resize(n))),
        Step::Split(i, n) => {
            let part = at(i).and_then(|i| held[i].split(n).ok());
            held.extend(part);
        }
        Step::Drop(i) => at(i).into_iter().for_each(|i| drop(held.swap_remove(i))),
    }
}

proptest! {
    /// Against a model that knows the rule only: a request is granted exactly if it fits.
    #[test]
    fn oracle_sum_of_reservations(limit in 0..30u64, steps in prop::collection::vec(step(), 0..60)) {
        let budget = Budget::bytes(limit);
        let (mut held, mut model, mut peak) = (Vec::<Reservation>::new(), Vec::<u64>::new(), 0);
        for step in &steps {
            take_step(&budget, &mut held, step);
            let (total, count) = (model.iter().sum::<u64>(), model.len());
            let fits = |more: u64| total + more <= limit;
            match *step {
                Step::Reserve(n) if fits(n) => model.push(n),
                Step::Grow(i, n) if count > 0 && fits(n) => model[i % count] += n,
                Step::Shrink(i, n) if count > 0 => model[i % count] -= n.min(model[i % count]),
                Step::Resize(i, n) if count > 0 => {
                    let size = &mut model[i % count];
                    if n <= *size || fits(n - *size) { *size = n }
                }
                Step::Split(i, n) if count > 0 && n <= model[i % count] => {
                    model[i % count] -= n;
                    model.push(n);
                }
                Step::Drop(i) if count > 0 => drop(model.swap_remove(i % count)),
                _ => {}
            }
            peak = peak.max(model.iter().sum());
            prop_assert_eq!(held.iter().map(Reservation::bytes).collect::<Vec<_>>(), model.clone());
            prop_assert_eq!(budget.used(), model.iter().sum::<u64>());
            prop_assert_eq!(budget.peak(), peak);
        }
        drop(held);
        prop_assert_eq!(budget.used(), 0);
    }
}

/// Each thread holds its own reservations and knows their sum; an observer watches the totals. A
/// lost update or an over-commit shows in one of the three.
#[test]
fn threads_never_overcommit_and_leave_nothing() {
    const LIMIT: u64 = 1000;
    let budget = Budget::bytes(LIMIT);
    let over = AtomicBool::new(false);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..8u64)
            .map(|seed| {
                let budget = budget.clone();
                scope.spawn(move || {
                    let mut state = seed + 1;
                    let mut random = move |below: u64| {
                        state = state
                            .wrapping_mul(6364136223846793005)
                            .wrapping_add(1442695040888963407);
                        (state >> 33) % below
                    };
                    let mut held = Vec::new();
                    let (mut granted, mut refused) = (0, 0);
                    for _ in 0..20_000 {
                        let (i, n) = (random(4) as usize, random(200));
                        let step = match random(6) {
                            0 => Step::Reserve(n),
                            1 => Step::Grow(i, n),
                            2 => Step::Shrink(i, n),
                            3 => Step::Resize(i, n),
                            4 => Step::Split(i, n),
                            _ => Step::Drop(i),
                        };
                        match budget.reserve("a probe", n) {
                            Ok(_) => granted += 1,
                            Err(Error::Budget { available, .. }) => {
                                assert!(available < n);
                                refused += 1;
                            }
                            Err(other) => panic!("{other}"),
                        }
                        take_step(&budget, &mut held, &step);
                        let mine: u64 = held.iter().map(Reservation::bytes).sum();
                        assert!(mine <= budget.used(), "bytes of living reservations were lost");
                    }
                    (granted, refused)
                })
            })
            .collect();
        scope.spawn(|| {
            while !done.load(Relaxed) {
                if budget.used() > LIMIT || budget.peak() > LIMIT {
                    over.store(true, Relaxed);
                }
            }
        });
        // The observer must end even when a worker has panicked, or failing would mean hanging.
        let outcomes: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        done.store(true, Relaxed);
        let outcomes: Vec<(u32, u32)> = outcomes.into_iter().map(Result::unwrap).collect();
        // Both answers must have been common, or the test has not tested contention.
        assert!(
            outcomes.iter().all(|&(granted, refused)| granted > 100 && refused > 100),
            "{outcomes:?}"
        );
    });
    assert!(!over.load(Relaxed), "more was reserved than the limit");
    assert_eq!(budget.used(), 0);
    assert!(budget.peak() <= LIMIT);
}

/// As many threads as bytes, each holding one until all have one: none may be lost, none invented.
#[test]
fn exactly_the_limit_can_be_held_at_once() {
    let budget = Budget::bytes(16);
    let granted: Vec<Reservation> = thread::scope(|scope| {
        let asking: Vec<_> =
            (0..24).map(|_| scope.spawn(|| budget.reserve("one byte", 1).ok())).collect();
        asking.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!((granted.len(), budget.used(), budget.peak()), (16, 16, 16));
}
