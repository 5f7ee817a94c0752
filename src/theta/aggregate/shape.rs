//! Where the matches of a left row lie, so that they can be folded without being listed.
//!
//! | terms | shape | matches of a left row |
//! |---|---|---|
//! | none, or all on one right column | [`Ranges`] | one or two ranges of the right side in key order |
//! | on two right columns, of which one has inequalities in one direction only | [`Turns`] | the same ranges, of what was activated before its turn |
//! | others | none | have to be listed |
//!
//! Positions are in (group, key) order, so the ranges of a row stay within its group.

use std::ops::Range;

use rayon::prelude::*;

use super::super::key_order::KeyOrder;
use super::super::ranked::{Ranked, RankedSide, RankedTerm};
use crate::predicate::Comparison;

/// Positions of a row's matches; the second range is what lies behind a hole (`!=`).
pub(super) type Asked = [Range<u32>; 2];

/// The matches of each left place: ranges of the right side in key order.
pub(super) struct Ranges {
    /// The right row at each position.
    pub(super) rows: Vec<u32>,
    /// By left place.
    pub(super) asked: Vec<Asked>,
}

/// The matches of each left place: ranges of what is active when its turn comes.
pub(super) struct Turns {
    /// The right row at each position.
    pub(super) rows: Vec<u32>,
    /// Positions in the order in which they become active.
    pub(super) activated: Vec<u32>,
    /// The left place of each turn.
    pub(super) places: Vec<u32>,
    /// By turn: how many positions are active by then. Never falls.
    pub(super) active: Vec<u32>,
    /// By turn.
    pub(super) asked: Vec<Asked>,
}

pub(super) enum Shape {
    Ranges(Ranges),
    Turns(Turns),
}

impl Shape {
    /// The shape of the matches, if they have one.
    pub(super) fn of(ranked: &Ranked) -> Option<Self> {
        let mut columns: Vec<usize> = ranked.terms.iter().map(|term| term.right).collect();
        columns.sort_unstable();
        columns.dedup();
        let on = |column: usize| -> Vec<RankedTerm> {
            ranked.terms.iter().filter(|term| term.right == column).copied().collect()
        };
        match columns[..] {
            [] => Some(Self::ranges(ranked, &[])),
            [column] => {
                let terms = on(column);
                is_range(&terms).then(|| Self::ranges(ranked, &terms))
            }
            [first, second] => {
                let (first, second) = (on(first), on(second));
                if let Some(rising) = direction(&first).filter(|_| is_range(&second)) {
                    return Some(Self::turns(ranked, rising, &first, &second));
                }
                let rising = direction(&second).filter(|_| is_range(&first))?;
                Some(Self::turns(ranked, rising, &second, &first))
            }
            _ => None,
        }
    }

    fn ranges(ranked: &Ranked, terms: &[RankedTerm]) -> Self {
        let order = key_order(ranked, terms);
        let (rows, left) = (rows_by_position(&ranked.right, &order), &ranked.left);
        let places = (0..left.len()).into_par_iter();
        let asked = places.map(|place| asked(&order, left, terms, place)).collect();
        Self::Ranges(Ranges { rows, asked })
    }

    /// `along` has inequalities in one direction: partners with smaller keys, if that is `rising`.
    fn turns(ranked: &Ranked, rising: bool, along: &[RankedTerm], listed: &[RankedTerm]) -> Self {
        let (left, right) = (&ranked.left, &ranked.right);
        let (by_along, by_listed) = (key_order(ranked, along), key_order(ranked, listed));
        let mut position = vec![0; right.len()];
        for (&place, at) in by_listed.order.iter().zip(0..) {
            position[place as usize] = at;
        }
        let mut activated: Vec<u32> =
            by_along.order.iter().map(|&place| position[place as usize]).collect();
        if !rising {
            activated.reverse();
        }
        // A row of a later group finds all earlier groups active, and asks for none of them.
        let turn = |place: usize| {
            let [range, _] = asked(&by_along, left, along, place);
            let active = if rising { range.end } else { right.len() as u32 - range.start };
            u64::from(active) << 32 | place as u64
        };
        let mut turns: Vec<u64> = (0..left.len()).into_par_iter().map(turn).collect();
        turns.par_sort_unstable();
        let places: Vec<u32> = turns.iter().map(|&turn| turn as u32).collect();
        let active = turns.iter().map(|&turn| (turn >> 32) as u32).collect();
        let of_place = |&place: &u32| asked(&by_listed, left, listed, place as usize);
        let asked = places.par_iter().map(of_place).collect();
        let rows = rows_by_position(right, &by_listed);
        Self::Turns(Turns { rows, activated, places, active, asked })
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Ranges(_) => "ranges",
            Self::Turns(_) => "sweep",
        }
    }
}

/// Whether terms on one right column leave a range with at most one hole.
fn is_range(terms: &[RankedTerm]) -> bool {
    terms.iter().filter(|term| term.comparison == Comparison::NotEqual).count() <= 1
}

/// Whether terms on one right column ask for smaller keys (true) or greater ones (false) only.
fn direction(terms: &[RankedTerm]) -> Option<bool> {
    use Comparison::{Greater, GreaterOrEqual, Less, LessOrEqual};
    let all = |wanted: [Comparison; 2]| terms.iter().all(|term| wanted.contains(&term.comparison));
    match (all([Greater, GreaterOrEqual]), all([Less, LessOrEqual])) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// The right side in the order of the column that all `terms` are on.
fn key_order(ranked: &Ranked, terms: &[RankedTerm]) -> KeyOrder {
    match terms.first() {
        Some(term) => KeyOrder::new(&ranked.right, term.right, ranked.groups),
        None => KeyOrder::by_group(&ranked.right, ranked.groups),
    }
}

fn rows_by_position(side: &RankedSide, order: &KeyOrder) -> Vec<u32> {
    order.order.iter().map(|&place| side.rows[place as usize]).collect()
}

/// What all `terms`, on the column of `order`, leave of it for a left place.
fn asked(order: &KeyOrder, left: &RankedSide, terms: &[RankedTerm], place: usize) -> Asked {
    let mut range = order.all(left.groups.as_ref().map(|ids| ids[place]));
    let mut hole = None;
    for term in terms {
        let key = left.columns[term.left][place];
        range = order.narrow(range, key, term.comparison);
        if term.comparison == Comparison::NotEqual {
            hole = Some(key);
        }
    }
    match hole {
        Some(key) => {
            let equal = order.equal(&range, key);
            [range.start..equal.start, equal.end..range.end]
        }
        None => [range.clone(), range.end..range.end],
    }
}
