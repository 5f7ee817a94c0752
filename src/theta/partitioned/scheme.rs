//! What each algorithm does to two sides: arrange, cut, filter, deal.
//!
//! | algorithm | rows set aside | partitions | products | dealt to workers |
//! |---|---|---|---|---|
//! | Prefap | prefilter, by row | equal widths, amalgamated; oversized ones split | of pairs that can match | in turn |
//! | FTJ | none | equal widths; oversized ones split | of pairs that can match | in turn |
//! | CFS | partitions the other side rules out | equal widths | of all pairs | in turn |
//! | RBM | none | sorted; ranges between left keys sampled at equal ranks, for both sides | of all pairs | by left partition |
//! | OBT | none | sorted; blocks of equal count | of all pairs | in random order |
//!
//! The nested loop is here too, as one product of all rows, so that whoever joins keys pairwise
//! has every algorithm.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use super::boundaries::{amalgamate, cuts, equal_width};
use super::filter::{can_match, cross_filter, prefilter};
use super::options::PartitionedOptions;
use super::partition::{Extent, Side, by_count};
use super::repartition::repartition;
use crate::key::KeyColumn;
use crate::metrics::Metrics;
use crate::predicate::Comparison;
use crate::theta::balance::{Deal, Dealer, Loads, WORKERS};
use crate::theta::plan::Algorithm;
use crate::theta::scan::{Given, PairKeys, Product, SideKeys};
use crate::{Error, Result};

/// Pairs of partitions are looked at one by one; beyond this many the request is a mistake.
const MAX_PAIRS: usize = 1 << 32;

/// One partition: its places and what keys are there.
#[derive(Clone, Debug)]
pub(in crate::theta) struct Partition {
    pub places: Range<usize>,
    /// Least and greatest position.
    pub span: (f64, f64),
    extent: Extent,
}

/// Two sides cut into partitions, and which pairs of them are compared.
pub(in crate::theta) struct Partitioning {
    pub keys: Arc<PairKeys>,
    /// Rows per side, nulls included, and those set aside by a filter.
    pub given: [Given; 2],
    /// The partitions that are left, per side.
    pub partitions: [Vec<Partition>; 2],
    /// Whether pairs of partitions that cannot match are dropped.
    by_pair: bool,
    deal: Deal,
    /// Partitions per side before any was dropped.
    made: [usize; 2],
    pub pairs_kept: u64,
    /// Comparisons of all products.
    pub comparisons: u64,
    /// What partitioning took.
    pub seconds: f64,
}

impl Partitioning {
    /// Partitions two columns that were encoded together.
    pub fn new(
        left: &KeyColumn,
        comparison: Comparison,
        right: &KeyColumn,
        algorithm: Algorithm,
    ) -> Result<Self> {
        let begun = Instant::now();
        let given = [left.len(), right.len()];
        let (mut left, mut right) = (Side::new(left), Side::new(right));
        let keyed = [left.len(), right.len()];
        let (mut by_pair, mut deal) = (false, Deal::InTurn);
        let mut made = None;
        match algorithm {
            Algorithm::Auto | Algorithm::NestedLoop => {}
            Algorithm::Prefap(options) => {
                by_pair = true;
                prefap(&mut left, comparison, &mut right, &options);
            }
            Algorithm::Ftj(options) => {
                by_pair = true;
                let options =
                    PartitionedOptions { prefilter: false, amalgamation: false, ..options };
                prefap(&mut left, comparison, &mut right, &options);
            }
            Algorithm::Cfs(options) => {
                for side in [&mut left, &mut right] {
                    let bounds = equal_width(&side.positions, options.partitions);
                    side.parts = side.cut(0..side.len(), cuts(&bounds));
                }
                made = Some([left.parts.len(), right.parts.len()]);
                [left.parts, right.parts] = cross_filter(&left, comparison, &right);
            }
            Algorithm::Rbm(options) => {
                deal = Deal::ByLeft;
                sampled_ranges(&mut left, &mut right, options.partitions);
            }
            Algorithm::Obt(options) => {
                deal = Deal::Random(options.seed);
                for side in [&mut left, &mut right] {
                    side.sort();
                    side.parts = by_count(0..side.len(), options.partitions);
                }
            }
        }
        let sides = [left, right];
        let made = made.unwrap_or([0, 1].map(|side| sides[side].parts.len()));
        if made[0].saturating_mul(made[1]) > MAX_PAIRS {
            return Err(Error::invalid(format!(
                "{} left and {} right partitions make too many pairs to look at: ask for fewer \
                 partitions or a larger window",
                made[0], made[1]
            )));
        }
        let filters = algorithm.options().is_some();
        let given = [0, 1].map(|side| {
            let live: usize = sides[side].parts.iter().map(ExactSizeIterator::len).sum();
            Given { rows: given[side], filtered: filters.then(|| keyed[side] - live) }
        });
        let partitions = [0, 1].map(|side| partitions(&sides[side]));
        let [left, right] =
            sides.map(|side| SideKeys { rows: side.rows, terms: vec![side.keys], groups: None });
        let keys = Arc::new(PairKeys { left, right, comparisons: vec![comparison] });
        let mut partitioning = Self {
            keys,
            given,
            partitions,
            by_pair,
            deal,
            made,
            pairs_kept: 0,
            comparisons: 0,
            seconds: 0.0,
        };
        let (mut kept, mut comparisons) = (0, 0);
        partitioning.each_product(|product| {
            kept += 1;
            comparisons += product.pairs();
        });
        (partitioning.pairs_kept, partitioning.comparisons) = (kept, comparisons);
        partitioning.seconds = begun.elapsed().as_secs_f64();
        Ok(partitioning)
    }

    /// The products, by left partition, then right partition.
    pub fn products(self: &Arc<Self>) -> Products {
        Products { partitioning: Arc::clone(self), left: 0, right: 0, dealer: self.deal.begin() }
    }

    /// Pairs of partitions in all, whatever was dropped.
    pub fn pairs(&self) -> u64 {
        self.made[0] as u64 * self.made[1] as u64
    }

    /// Puts what is known before anything is compared into the metrics and the loads.
    pub fn report(&self, metrics: &Metrics, loads: &Loads) {
        metrics.add("partitions_left", self.made[0] as u64);
        metrics.add("partitions_right", self.made[1] as u64);
        metrics.add("pairs_kept", self.pairs_kept);
        metrics.add("pairs_dropped", self.pairs() - self.pairs_kept);
        metrics.add_real("partition_seconds", self.seconds);
        let mut rows = [0; WORKERS];
        self.each_product(|product| {
            rows[product.worker] += (product.left.len() + product.right.len()) as u64;
        });
        loads.add_input(&rows);
    }

    fn each_product(&self, mut visit: impl FnMut(Product)) {
        let mut dealer = self.deal.begin();
        for left in 0..self.partitions[0].len() {
            for right in 0..self.partitions[1].len() {
                if let Some(product) = self.product(left, right, &mut dealer) {
                    visit(product);
                }
            }
        }
    }

    fn product(&self, left: usize, right: usize, dealer: &mut Dealer) -> Option<Product> {
        let (l, r) = (&self.partitions[0][left], &self.partitions[1][right]);
        if self.by_pair && !can_match(&l.extent, self.keys.comparisons[0], &r.extent) {
            return None;
        }
        let worker = dealer.worker(left);
        Some(Product { left: l.places.clone(), right: r.places.clone(), worker })
    }
}

/// The products of one run, see [`Partitioning::products`].
pub(in crate::theta) struct Products {
    partitioning: Arc<Partitioning>,
    left: usize,
    right: usize,
    dealer: Dealer,
}

impl Iterator for Products {
    type Item = Product;

    fn next(&mut self) -> Option<Product> {
        let [left, right] = &self.partitioning.partitions;
        while self.left < left.len() {
            if self.right == right.len() {
                (self.left, self.right) = (self.left + 1, 0);
                continue;
            }
            self.right += 1;
            let product = self.partitioning.product(self.left, self.right - 1, &mut self.dealer);
            if product.is_some() {
                return product;
            }
        }
        None
    }
}

fn prefap(left: &mut Side, comparison: Comparison, right: &mut Side, options: &PartitionedOptions) {
    if options.prefilter {
        prefilter(left, comparison, right);
    }
    let mut left_bounds = equal_width(&left.positions, options.partitions);
    let mut right_bounds = equal_width(&right.positions, options.partitions);
    if options.amalgamation {
        left_bounds = amalgamate(&left_bounds, &right_bounds);
        right_bounds.clone_from(&left_bounds);
    }
    for (side, bounds) in [(left, left_bounds), (right, right_bounds)] {
        side.parts = side.cut(0..side.len(), cuts(&bounds));
        repartition(side, options);
    }
}

/// RBM: boundaries are the left keys at equal distances in key order, and serve both sides.
fn sampled_ranges(left: &mut Side, right: &mut Side, count: usize) {
    left.sort();
    right.sort();
    let sampled: Vec<u128> =
        by_count(0..left.len(), count).iter().skip(1).map(|block| left.key(block.start)).collect();
    for side in [left, right] {
        let mut ends: Vec<usize> = sampled.iter().map(|&key| side.lower_bound(key)).collect();
        ends.push(side.len());
        let mut begin = 0;
        side.parts = Vec::new();
        for end in ends {
            if begin < end {
                side.parts.push(begin..end);
            }
            begin = end;
        }
    }
}

fn partitions(side: &Side) -> Vec<Partition> {
    let partition = |places: &Range<usize>| {
        let positions = side.positions[places.clone()].iter().copied();
        Some(Partition {
            places: places.clone(),
            span: super::boundaries::extremes(positions),
            extent: side.extent(places.clone())?,
        })
    };
    side.parts.iter().filter_map(partition).collect()
}
