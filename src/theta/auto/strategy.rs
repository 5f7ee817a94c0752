//! Which way to find matches, and everything that is known before they are listed.

use std::sync::Arc;

use rayon::prelude::*;

use super::super::key_order::KeyOrder;
use super::super::ranked::{Ranked, RankedTerm};
use super::super::slices::{SlicePart, driven_by, slices_of};
use super::super::sweep::{Accepts, Sweep};
use crate::output::Side;
use crate::predicate::Comparison;

/// What is known after sorting.
pub(super) struct Prepared {
    pub(super) ranked: Arc<Ranked>,
    pub(super) strategy: Strategy,
    /// Terms that candidates still have to satisfy.
    pub(super) remaining: Vec<RankedTerm>,
    /// Which places, left and right, have a partner; where no term remains.
    pub(super) matched: Option<[Vec<bool>; 2]>,
}

pub(super) enum Strategy {
    Slices {
        parts: Vec<Arc<SlicePart>>,
        /// The order of each side that is sliced.
        orders: Box<[Option<KeyOrder>; 2]>,
    },
    /// The left side sweeps along the first term, the right one is listed by the second.
    Sweep(Arc<Sweep>),
}

impl Prepared {
    pub(super) fn new(ranked: Ranked) -> Self {
        let (strategy, remaining) = Strategy::choose(&ranked);
        let matched = remaining.is_empty().then(|| strategy.matched(&ranked));
        Self { ranked: Arc::new(ranked), strategy, remaining, matched }
    }

    /// The number of pairs, if it is known already.
    pub(super) fn pairs(&self) -> Option<u64> {
        self.remaining.is_empty().then(|| self.strategy.candidates())
    }

    /// Whether a pair of places satisfies the remaining terms.
    pub(super) fn accepts(&self, driving: Side) -> Option<Accepts> {
        if self.remaining.is_empty() {
            return None;
        }
        let (ranked, remaining) = (Arc::clone(&self.ranked), self.remaining.clone());
        Some(Box::new(move |ours, theirs| {
            let (left, right) = match driving {
                Side::Left => (ours, theirs),
                Side::Right => (theirs, ours),
            };
            remaining.iter().all(|term| {
                let l = ranked.left.columns[term.left][left as usize];
                let r = ranked.right.columns[term.right][right as usize];
                term.comparison.accepts(l.cmp(&r))
            })
        }))
    }
}

impl Strategy {
    /// The strategy with the fewest candidates, and the terms it leaves over.
    fn choose(ranked: &Ranked) -> (Self, Vec<RankedTerm>) {
        let terms = &ranked.terms;
        // With one right column, as of a band, its slices say it all.
        if let [first, second] = &terms[..]
            && first.right != second.right
            && let Some(strategy) = Self::overlap(ranked, first, second)
        {
            return (strategy, vec![]);
        }
        if let [first, second] = &terms[..]
            && first.left != second.left
            && first.right != second.right
            && let Some((sweep, rest)) = Self::sweep(ranked)
        {
            return (sweep, rest);
        }
        // One column of one side, and all terms that compare with it; at best, these are all.
        let mut best: Option<(Self, Vec<RankedTerm>)> = None;
        let mut ways = ways(terms);
        ways.sort_by_key(|(_, _, rest)| !rest.is_empty());
        for (sliced, used, rest) in ways {
            let strategy = Self::slices(ranked, &used, sliced);
            if rest.is_empty() {
                return (strategy, rest);
            }
            let fewer = |(other, _): &(Self, Vec<_>)| strategy.candidates() < other.candidates();
            if best.as_ref().is_none_or(fewer) {
                best = Some((strategy, rest));
            }
        }
        let Some((slices, rest)) = best else {
            return (Self::slices(ranked, &[], Side::Right), vec![]);
        };
        match Self::sweep(ranked) {
            Some((sweep, rest)) if sweep.candidates() < slices.candidates() || rest.is_empty() => {
                (sweep, rest)
            }
            _ => (slices, rest),
        }
    }

    fn slices(ranked: &Ranked, terms: &[RankedTerm], sliced: Side) -> Self {
        let (driving, other) = match sliced {
            Side::Right => (&ranked.left, &ranked.right),
            Side::Left => (&ranked.right, &ranked.left),
        };
        let order = match terms.first() {
            Some(term) => {
                let column = if sliced == Side::Right { term.right } else { term.left };
                KeyOrder::new(other, column, ranked.groups)
            }
            None => KeyOrder::by_group(other, ranked.groups),
        };
        let terms: Vec<_> = terms.iter().map(|term| driven_by(term, sliced)).collect();
        let part = slices_of(driving, &order, &terms, sliced);
        let orders = Box::new(match sliced {
            Side::Right => [None, Some(order)],
            Side::Left => [Some(order), None],
        });
        Self::Slices { parts: vec![Arc::new(part)], orders }
    }

    /// `l.lo < r.hi and l.hi > r.lo`, where no interval is turned round or, with strict
    /// comparisons, empty: each pair has one interval that begins first, or both begin together.
    fn overlap(ranked: &Ranked, first: &RankedTerm, second: &RankedTerm) -> Option<Self> {
        use Comparison::{Greater, GreaterOrEqual, Less, LessOrEqual};
        let rises = |term: &RankedTerm| matches!(term.comparison, Less | LessOrEqual);
        let falls = |term: &RankedTerm| matches!(term.comparison, Greater | GreaterOrEqual);
        let (lower, upper) = match (rises(first) && falls(second), falls(first) && rises(second)) {
            (true, _) => (first, second),
            (_, true) => (second, first),
            _ => return None,
        };
        if lower.space != upper.space {
            return None;
        }
        let strict = lower.comparison == Less || upper.comparison == Greater;
        let (left, right) = (&ranked.left, &ranked.right);
        let proper = |begins: &[u64], ends: &[u64]| {
            begins.par_iter().zip(ends).all(|(b, e)| if strict { b < e } else { b <= e })
        };
        // l.lo is lower.left, r.hi lower.right; l.hi is upper.left, r.lo upper.right.
        let left_hi = &left.columns[upper.left];
        let right_hi = &right.columns[lower.right];
        if !proper(&left.columns[lower.left], left_hi)
            || !proper(&right.columns[upper.right], right_hi)
        {
            return None;
        }
        let (left_order, right_order) = rayon::join(
            || KeyOrder::new(left, lower.left, ranked.groups),
            || KeyOrder::new(right, upper.right, ranked.groups),
        );
        let group = |ids: &Option<Vec<u32>>, place: u32| ids.as_ref().map(|i| i[place as usize]);
        // Right intervals that begin in [l.lo, l.hi), or up to l.hi where that counts.
        let begins_inside = |at: usize, hint: &mut u32| {
            let place = left_order.order[at];
            let mut range = right_order.all(group(&left.groups, place));
            range.start = range.start.max(*hint);
            range.start = right_order.next_below(&range, left_order.keys[at]);
            *hint = range.start;
            let end = left_hi[place as usize];
            let end = match upper.comparison {
                GreaterOrEqual => right_order.next_through(&range, end),
                _ => right_order.next_below(&range, end),
            };
            let slice = range.start..end;
            [slice]
        };
        // Left intervals that begin behind r.lo, but before r.hi.
        let begins_behind = |at: usize, hint: &mut u32| {
            let place = right_order.order[at];
            let mut range = left_order.all(group(&right.groups, place));
            range.start = range.start.max(*hint);
            range.start = left_order.next_through(&range, right_order.keys[at]);
            *hint = range.start;
            let end = right_hi[place as usize];
            let end = match lower.comparison {
                LessOrEqual => left_order.next_through(&range, end),
                _ => left_order.next_below(&range, end),
            };
            let slice = range.start..end;
            [slice]
        };
        let parts = vec![
            Arc::new(SlicePart::new(&left_order.order, Side::Right, begins_inside)),
            Arc::new(SlicePart::new(&right_order.order, Side::Left, begins_behind)),
        ];
        Some(Self::Slices { parts, orders: Box::new([Some(left_order), Some(right_order)]) })
    }

    /// Along the two inequalities that, in a sample, fewest pairs satisfy both of.
    fn sweep(ranked: &Ranked) -> Option<(Self, Vec<RankedTerm>)> {
        let ordered = |term: &&RankedTerm| term.comparison != Comparison::NotEqual;
        let ordered: Vec<RankedTerm> = ranked.terms.iter().filter(ordered).copied().collect();
        let pairs = (0..ordered.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
        let (a, b) = pairs.min_by_key(|&(a, b)| sampled(ranked, &ordered[a], &ordered[b]))?;
        let (along, listed) = (ordered[a], ordered[b]);
        let sweep = Sweep::new(ranked, [&along, &listed]);
        let rest = ranked.terms.iter().filter(|term| **term != along && **term != listed);
        let rest = rest.copied().collect();
        Some((Self::Sweep(Arc::new(sweep)), rest))
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Slices { parts, .. } if parts.len() > 1 => "overlap",
            Self::Slices { .. } => "slices",
            Self::Sweep(_) => "sweep",
        }
    }

    /// Pairs that satisfy the terms in use.
    pub(super) fn candidates(&self) -> u64 {
        match self {
            Self::Slices { parts, .. } => parts.iter().map(|part| part.total()).sum(),
            Self::Sweep(sweep) => sweep.totals.last().copied().unwrap_or(0),
        }
    }

    /// Which places have a candidate, left and right.
    fn matched(&self, ranked: &Ranked) -> [Vec<bool>; 2] {
        let (parts, orders) = match self {
            Self::Sweep(sweep) => return sweep.matched(ranked),
            Self::Slices { parts, orders } => (parts, orders),
        };
        let of = |side: Side, order: &Option<KeyOrder>, places: usize| {
            let mut matched = vec![false; places];
            for part in parts {
                match order {
                    Some(order) if part.sliced == side => {
                        part.mark_sliced(&order.order, &mut matched);
                    }
                    _ => part.mark_driving(&mut matched),
                }
            }
            matched
        };
        rayon::join(
            || of(Side::Left, &orders[0], ranked.left.len()),
            || of(Side::Right, &orders[1], ranked.right.len()),
        )
        .into()
    }
}

/// How many pairs of a sample of both sides satisfy both terms.
fn sampled(ranked: &Ranked, first: &RankedTerm, second: &RankedTerm) -> usize {
    const SAMPLE: usize = 512;
    let places = |rows: usize| (0..rows).step_by(rows.div_ceil(SAMPLE).max(1));
    let (left, right) = (&ranked.left, &ranked.right);
    let holds = |term: &RankedTerm, l: usize, r: usize| {
        term.comparison.accepts(left.columns[term.left][l].cmp(&right.columns[term.right][r]))
    };
    let count =
        |l| places(right.len()).filter(|&r| holds(first, l, r) && holds(second, l, r)).count();
    places(left.len()).map(count).sum()
}

/// The columns that can be sliced: side, terms that slices of it can serve, terms left over.
fn ways(terms: &[RankedTerm]) -> Vec<(Side, Vec<RankedTerm>, Vec<RankedTerm>)> {
    let mut ways = Vec::new();
    for sliced in [Side::Right, Side::Left] {
        let column = |term: &RankedTerm| match sliced {
            Side::Right => term.right,
            Side::Left => term.left,
        };
        let mut columns: Vec<usize> = terms.iter().map(column).collect();
        columns.sort_unstable();
        columns.dedup();
        for chosen in columns {
            let (used, rest) = usable(terms, |term| column(term) == chosen);
            ways.push((sliced, used, rest));
        }
    }
    ways
}

/// Terms that one set of slices can serve (at most one `!=` among them), and the others.
fn usable(
    terms: &[RankedTerm],
    fits: impl Fn(&RankedTerm) -> bool,
) -> (Vec<RankedTerm>, Vec<RankedTerm>) {
    let mut holes = 0;
    terms.iter().partition(|term| {
        holes += usize::from(fits(term) && term.comparison == Comparison::NotEqual);
        fits(term) && (term.comparison != Comparison::NotEqual || holes == 1)
    })
}
