//! What is known of a chain once it is sorted: who goes on with whom, and how often.
//!
//! Every stage but the first is put into the order of the column that the stage before compares
//! with, so that a row's partners in the next stage are one slice of it, or two around the hole of
//! a `!=`. From the last stage to the first, the number of ways to go on from a row is the sum
//! over its partners, which running totals turn into a subtraction:
//!
//! ```text
//! stage 0        stage 1, in key order        stage 2, in key order
//! row a ───────▶ [ p   q   r ] s        p ──▶ [ u   v ] w      ways of p: 2
//!  ways: 2+2+3   before: 0 2 4 7 …      r ──▶ [ u   v   w ]    ways of r: 3
//! ```
//!
//! Rows with no way to go on are left out before their stage is sorted. Totals also lead from the
//! number of a tuple to the tuple itself, so work can begin anywhere.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::super::key_order::KeyOrder;
use super::super::ranked::{RankedSide, narrow};
use super::super::slices::partners;
use super::bounds::propagate;
use super::keys::ChainKeys;
use crate::predicate::Comparison;
use crate::{Error, Result};

/// Positions of the next stage; the second range is empty but for the hole of a `!=`.
pub(super) type Partners = [Range<u32>; 2];

/// One input of a chain, arranged.
pub(super) struct Stage {
    /// Which input it is.
    pub input: usize,
    /// Rows of the input by position.
    pub rows: Vec<u32>,
    /// Ways to go on from all positions before each, and behind them from all.
    pub before: Vec<u128>,
    /// Partners of each position; nothing at the last stage.
    pub partners: Vec<Partners>,
    /// Rows without a null in what is compared.
    pub keyed: usize,
    /// Rows that bounds ruled out.
    pub filtered: usize,
    /// Rows that take part in a tuple.
    pub matched: usize,
}

impl Stage {
    /// Tuples that begin at this stage.
    pub fn total(&self) -> u128 {
        self.before[self.rows.len()]
    }

    /// The position that the way numbered `way` begins at.
    pub fn position_of(&self, way: u128) -> u32 {
        self.before.partition_point(|&before| before <= way) as u32 - 1
    }

    /// Ways to go on from positions `range`.
    pub fn ways(&self, range: &Range<u32>) -> u128 {
        self.before[range.end as usize] - self.before[range.start as usize]
    }

    /// Bytes that are held.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.rows[..])
            + size_of_val(&self.before[..])
            + size_of_val(&self.partners[..])
    }
}

/// Rows of a stage that can go on, in row order until their stage is sorted.
struct Loose {
    rows: Vec<u32>,
    ways: Vec<u128>,
    partners: Vec<Partners>,
}

/// Arranges the stages of a chain.
pub(super) fn arrange(mut chain: ChainKeys) -> Result<Vec<Stage>> {
    let keyed: Vec<usize> = chain.live.iter().map(Vec::len).collect();
    let filtered = propagate(&mut chain);
    let last = chain.inputs.len() - 1;
    let rows = std::mem::take(&mut chain.live[last]);
    let mut loose = Loose { ways: vec![1; rows.len()], partners: vec![], rows };
    let mut stages: Vec<Stage> = Vec::with_capacity(chain.inputs.len());
    for (number, link) in chain.links.iter().enumerate().rev() {
        let rows = std::mem::take(&mut chain.live[number]);
        let mut keys: Vec<_> = link.terms.iter().map(|(keys, _)| keys.take(&rows)).collect();
        keys.push(link.sliced.take(&loose.rows));
        let mut columns = narrow(keys.into_iter());
        let sliced = RankedSide {
            columns: vec![columns.pop().unwrap_or_default()],
            groups: chain.groups_of(number + 1, &loose.rows),
            rows: Arc::new(loose.rows.clone()),
        };
        let order = KeyOrder::new(&sliced, 0, chain.group_count());
        let places: Vec<usize> = order.order.iter().map(|&place| place as usize).collect();
        let input = chain.inputs[number + 1];
        stages.push(stage(loose, places, input, keyed[number + 1], filtered[number + 1])?);
        let next = &stages[stages.len() - 1];

        let groups = chain.groups_of(number, &rows);
        let driving = RankedSide { columns, groups, rows: Arc::new(rows) };
        let comparisons = link.terms.iter().map(|(_, comparison)| *comparison);
        let terms: Vec<(usize, Comparison)> = comparisons.enumerate().collect();
        let found: Vec<(u32, u128, Partners)> = (0..driving.len() as u32)
            .into_par_iter()
            .filter_map(|place| {
                let partners = partners(&driving, place as usize, &order, &terms);
                let ways = partners.iter().map(|range| next.ways(range)).sum();
                (ways > 0).then(|| (driving.rows[place as usize], ways, partners))
            })
            .collect();
        loose = Loose { rows: vec![], ways: vec![], partners: vec![] };
        for (row, ways, partners) in found {
            loose.rows.push(row);
            loose.ways.push(ways);
            loose.partners.push(partners);
        }
    }
    let places = (0..loose.rows.len()).collect();
    stages.push(stage(loose, places, chain.inputs[0], keyed[0], filtered[0])?);
    stages.reverse();
    count_matched(&mut stages);
    Ok(stages)
}

/// The stage with the rows at `places`, in this order.
fn stage(
    loose: Loose,
    places: Vec<usize>,
    input: usize,
    keyed: usize,
    filtered: usize,
) -> Result<Stage> {
    let mut before = Vec::with_capacity(places.len() + 1);
    let mut total = 0_u128;
    before.push(total);
    for &place in &places {
        total = total.checked_add(loose.ways[place]).ok_or_else(|| {
            Error::unsupported(
                "the chain has more than 2^128 - 1 rows, more than can be counted or listed: \
                 join fewer inputs, or ask for less of each",
            )
        })?;
        before.push(total);
    }
    let rows = places.iter().map(|&place| loose.rows[place]).collect();
    let partners = match loose.partners.is_empty() {
        true => vec![],
        false => places.iter().map(|&place| loose.partners[place].clone()).collect(),
    };
    Ok(Stage { input, rows, before, partners, keyed, filtered, matched: 0 })
}

/// Rows of each stage that are reached from the first: all rows that are left can go on.
fn count_matched(stages: &mut [Stage]) {
    let mut reached = vec![true; stages[0].rows.len()];
    for number in 0..stages.len() {
        stages[number].matched = reached.iter().filter(|&&reached| reached).count();
        let Some(next) = stages.get(number + 1) else { return };
        // Ranges begin and end somewhere: a running sum tells how many cover a position.
        let mut steps = vec![0_i64; next.rows.len() + 1];
        let partners = stages[number].partners.iter().zip(&reached);
        for range in partners.filter(|(_, reached)| **reached).flat_map(|(partners, _)| partners) {
            steps[range.start as usize] += 1;
            steps[range.end as usize] -= 1;
        }
        let mut covering = 0;
        let covered = |step: &i64| {
            covering += step;
            covering > 0
        };
        reached = steps[..next.rows.len()].iter().map(covered).collect();
    }
}
