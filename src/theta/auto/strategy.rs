//! Which way to find matches, and everything that is known before they are listed.

use std::sync::Arc;

use rayon::prelude::*;

use super::super::ranked::{Ranked, RankedTerm};
use super::super::slices::{KeyOrder, SlicePart, driven_by, slices_of};
use super::super::sweep::{Accepts, Sweep};
use crate::output::Side;
use crate::predicate::Comparison;

/// What is known after sorting.
pub(super) struct Prepared {
    pub(super) ranked: Arc<Ranked>,
    pub(super) strategy: Strategy,
    /// Terms that candidates still have to satisfy.
    pub(super) remaining: Vec<RankedTerm>,
    /// Partners of each place, left and right, where no term remains.
    pub(super) partners: Option<[Vec<u64>; 2]>,
}

pub(super) enum Strategy {
    Slices {
        parts: Vec<Arc<SlicePart>>,
        /// The order of each side that is sliced.
        orders: Box<[Option<KeyOrder>; 2]>,
    },
    /// The left side sweeps along the first term, the right one is listed by the second.
    Sweep(Arc<Sweep>, [RankedTerm; 2]),
}

impl Prepared {
    pub(super) fn new(ranked: Ranked) -> Self {
        let (strategy, remaining) = Strategy::choose(&ranked);
        let partners = remaining.is_empty().then(|| strategy.partners(&ranked));
        Self { ranked: Arc::new(ranked), strategy, remaining, partners }
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
        // One column of one side, and all terms that compare with it.
        let mut best: Option<(Self, Vec<RankedTerm>)> = None;
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
                let strategy = Self::slices(ranked, &used, sliced);
                if rest.is_empty() {
                    return (strategy, rest);
                }
                let candidates = strategy.candidates();
                if best.as_ref().is_none_or(|(other, _)| candidates < other.candidates()) {
                    best = Some((strategy, rest));
                }
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
                KeyOrder::new(other, column, term.distinct, ranked.groups)
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
        let proper = |begins: &[u32], ends: &[u32]| {
            begins.par_iter().zip(ends).all(|(b, e)| if strict { b < e } else { b <= e })
        };
        // l.lo is lower.left, r.hi lower.right; l.hi is upper.left, r.lo upper.right.
        let (left_lo, left_hi) = (&left.columns[lower.left], &left.columns[upper.left]);
        let (right_lo, right_hi) = (&right.columns[upper.right], &right.columns[lower.right]);
        if !proper(left_lo, left_hi) || !proper(right_lo, right_hi) {
            return None;
        }
        let left_order = KeyOrder::new(left, lower.left, lower.distinct, ranked.groups);
        let right_order = KeyOrder::new(right, upper.right, upper.distinct, ranked.groups);
        let group = |ids: &Option<Vec<u32>>, place: u32| ids.as_ref().map(|i| i[place as usize]);
        // Right intervals that begin in [l.lo, l.hi), or up to l.hi where that counts.
        let begins_inside = |place: u32| {
            let range = right_order.all(group(&left.groups, place));
            let range = right_order.narrow(range, left_lo[place as usize], LessOrEqual);
            [right_order.narrow(range, left_hi[place as usize], upper.comparison), 0..0]
        };
        // Left intervals that begin behind r.lo, but before r.hi.
        let begins_behind = |place: u32| {
            let range = left_order.all(group(&right.groups, place));
            let range = left_order.narrow(range, right_lo[place as usize], Less);
            let ends = lower.comparison.turned();
            [left_order.narrow(range, right_hi[place as usize], ends), 0..0]
        };
        let in_order = |order: &KeyOrder| order.order.clone().into_par_iter();
        let parts = vec![
            Arc::new(SlicePart::new(in_order(&left_order), Side::Right, begins_inside)),
            Arc::new(SlicePart::new(in_order(&right_order), Side::Left, begins_behind)),
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
        let (left, right) = (&ranked.left, &ranked.right);
        let sweep = Sweep::new(left, right, Side::Right, [&along, &listed], ranked.groups);
        let rest = ranked.terms.iter().filter(|term| **term != along && **term != listed);
        let rest = rest.copied().collect();
        Some((Self::Sweep(Arc::new(sweep), [along, listed]), rest))
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Slices { parts, .. } if parts.len() > 1 => "overlap",
            Self::Slices { .. } => "slices",
            Self::Sweep(..) => "sweep",
        }
    }

    /// Pairs that satisfy the terms in use.
    pub(super) fn candidates(&self) -> u64 {
        match self {
            Self::Slices { parts, .. } => parts.iter().map(|part| part.total()).sum(),
            Self::Sweep(sweep, _) => sweep.totals.last().copied().unwrap_or(0),
        }
    }

    /// How many candidates each place has, left and right.
    fn partners(&self, ranked: &Ranked) -> [Vec<u64>; 2] {
        let mut counts = [vec![0; ranked.left.len()], vec![0; ranked.right.len()]];
        match self {
            Self::Slices { parts, orders } => {
                for part in parts {
                    let (driving, sliced) = match part.sliced {
                        Side::Right => (0, 1),
                        Side::Left => (1, 0),
                    };
                    part.count_driving(&mut counts[driving]);
                    if let Some(order) = &orders[sliced] {
                        part.count_sliced(&order.order, &mut counts[sliced]);
                    }
                }
            }
            Self::Sweep(sweep, [along, listed]) => {
                let (left, right) = (&ranked.left, &ranked.right);
                let back = Sweep::new(right, left, Side::Left, [along, listed], ranked.groups);
                counts = [sweep.partners(), back.partners()];
            }
        }
        counts
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
