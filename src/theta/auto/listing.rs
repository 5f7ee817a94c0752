//! Tasks that list matches, and the tables they name rows of.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::Schema;

use super::super::ranked::Ranked;
use super::super::slices::{Numbering, SlicePart, SliceTask};
use super::super::sweep::{Accepts, SweepNames, SweepTask};
use super::strategy::{Prepared, Strategy};
use crate::Result;
use crate::control::Control;
use crate::output::{Assembler, Caps, Layout, MatchTask, Matches, Side};
use crate::predicate::JoinKind;
use crate::table::{NO_ROW, Table};

/// Slices of fewer rows than this are spelled out: copying them one by one would cost more.
const LONG_SLICE: u64 = 16;

/// The tables as output is read from them, and what the places of each side are called there.
pub(super) struct Named {
    pub(super) assembler: Arc<Assembler>,
    pub(super) names: Names,
}

pub(super) struct Names {
    /// Row by place.
    pub(super) places: [Arc<Vec<u32>>; 2],
    /// Row by row of the input, where the table was put into another order.
    pub(super) moved: [Option<Vec<u32>>; 2],
}

impl Names {
    /// Rows are called as in the inputs.
    pub(super) fn of_inputs(ranked: &Ranked) -> Self {
        let places = [&ranked.left, &ranked.right].map(|side| Arc::clone(&side.rows));
        Self { places, moved: [None, None] }
    }
}

impl Named {
    /// Puts the sliced tables into key order where that pays: when more is copied than moved.
    pub(super) fn new(
        layout: Layout,
        inputs: [Arc<Table>; 2],
        prepared: &Prepared,
    ) -> Result<Self> {
        let mut tables = inputs.clone();
        let mut names = Names::of_inputs(&prepared.ranked);
        let moves: usize = inputs.iter().map(|table| table.num_rows()).sum();
        if let Strategy::Slices { orders, parts } = &prepared.strategy
            && prepared.pairs().is_some_and(|pairs| {
                let slices: usize = parts.iter().map(|part| part.slices.len()).sum();
                pairs >= (moves as u64).max(LONG_SLICE * slices as u64)
            })
        {
            let sides = [&prepared.ranked.left, &prepared.ranked.right];
            for (side, order) in orders.iter().enumerate() {
                let Some(order) = order else { continue };
                let ranked = sides[side];
                // All rows, so that those without a key have a place too: behind the others.
                let mut rows: Vec<u32> =
                    order.order.iter().map(|&place| ranked.rows[place as usize]).collect();
                let mut moved = vec![NO_ROW; inputs[side].num_rows()];
                rows.iter().zip(0..).for_each(|(&row, at)| moved[row as usize] = at);
                for (row, moved) in moved.iter_mut().enumerate().filter(|(_, at)| **at == NO_ROW) {
                    *moved = rows.len() as u32;
                    rows.push(row as u32);
                }
                tables[side] = Arc::new(reordered(&inputs[side], rows)?);
                let places = ranked.rows.iter().map(|&row| moved[row as usize]).collect();
                names.places[side] = Arc::new(places);
                names.moved[side] = Some(moved);
            }
        }
        let [left, right] = tables;
        Ok(Self { assembler: Arc::new(Assembler::new(layout, left, right)), names })
    }
}

/// The tasks that list matches.
pub(super) fn match_tasks(
    prepared: &Prepared,
    names: &Names,
    at_once: u64,
    control: &Arc<Control>,
) -> Vec<Box<dyn MatchTask>> {
    let index = |side: Side| usize::from(side == Side::Right);
    let mut tasks: Vec<Box<dyn MatchTask>> = Vec::new();
    match &prepared.strategy {
        Strategy::Slices { parts, orders } => {
            for part in parts {
                let (ours, theirs) = (1 - index(part.sliced), index(part.sliced));
                let driving = Arc::clone(&names.places[ours]);
                let other = &names.places[theirs];
                let listed = || {
                    let order = orders[theirs].as_ref().map_or(&[][..], |o| &o.order);
                    order.iter().map(|&place| other[place as usize]).collect::<Vec<_>>()
                };
                let driving_side = if ours == 0 { Side::Left } else { Side::Right };
                if let Some(accepts) = prepared.accepts(driving_side) {
                    let order = orders[theirs].as_ref().map_or(vec![], |o| o.order.clone());
                    let filter = Arc::new(Filter { driving, order, listed: listed(), accepts });
                    for wanted in cut(part.total(), FILTER_AT_ONCE) {
                        let (part, filter) = (Arc::clone(part), Arc::clone(&filter));
                        let control = Arc::clone(control);
                        tasks.push(Box::new(FilterTask { part, filter, wanted, control }));
                    }
                    continue;
                }
                let numbering = Arc::new(if names.moved[theirs].is_some() {
                    Numbering::Slices { driving }
                } else {
                    Numbering::Rows { driving, sliced: Arc::new(listed()) }
                });
                for wanted in cut(part.total(), at_once) {
                    let (part, numbering) = (Arc::clone(part), Arc::clone(&numbering));
                    let control = Arc::clone(control);
                    tasks.push(Box::new(SliceTask { part, numbering, wanted, control }));
                }
            }
        }
        Strategy::Sweep(sweep) => {
            let other = &names.places[1];
            let listed = sweep.order.iter().map(|&place| other[place as usize]).collect();
            let names = Arc::new(SweepNames {
                driving: Arc::clone(&names.places[0]),
                listed,
                accepts: prepared.accepts(Side::Left),
            });
            for turns in cut_turns(&sweep.totals, at_once) {
                let (sweep, names) = (Arc::clone(sweep), Arc::clone(&names));
                let control = Arc::clone(control);
                tasks.push(Box::new(SweepTask { sweep, names, turns, set: None, control }));
            }
        }
    }
    tasks
}

/// `table` with its rows in another order.
pub(in crate::theta) fn reordered(table: &Arc<Table>, rows: Vec<u32>) -> Result<Table> {
    let schema = table.schema();
    let nothing = Arc::new(Table::new("no", Arc::new(Schema::empty()), vec![])?);
    let layout = Layout::new(schema, nothing.schema(), &[], JoinKind::Semi, "")?;
    let assembler = Assembler::new(layout, Arc::clone(table), nothing);
    let caps = Caps { rows: 1 << 20, bytes: 1 << 28 };
    let wanted = Matches::Pairs { right: vec![NO_ROW; rows.len()], left: rows };
    Table::new("reordered", Arc::clone(schema), assembler.assemble(&wanted, caps)?)
}

/// 0..total in pieces of `size`.
fn cut(total: u64, size: u64) -> impl Iterator<Item = Range<u64>> {
    let size = size.max(1);
    (0..total.div_ceil(size)).map(move |i| i * size..((i + 1) * size).min(total))
}

/// Turns in stretches of about `size` candidates each.
fn cut_turns(totals: &[u64], size: u64) -> Vec<Range<usize>> {
    let mut stretches = Vec::new();
    let mut begin = 0;
    while begin < totals.len() {
        let before = if begin == 0 { 0 } else { totals[begin - 1] };
        let end = totals.partition_point(|&total| total < before + size.max(1));
        let end = (end + 1).min(totals.len()).max(begin + 1);
        stretches.push(begin..end);
        begin = end;
    }
    stretches
}

/// Candidates that one task checks.
const FILTER_AT_ONCE: u64 = 1 << 20;

/// What it takes to check the candidates of slices.
struct Filter {
    driving: Arc<Vec<u32>>,
    /// Places of the sliced side by position.
    order: Vec<u32>,
    /// Rows of the sliced side by position.
    listed: Vec<u32>,
    accepts: Accepts,
}

/// Checks the candidates numbered `wanted` of a part.
struct FilterTask {
    part: Arc<SlicePart>,
    filter: Arc<Filter>,
    wanted: Range<u64>,
    control: Arc<Control>,
}

impl MatchTask for FilterTask {
    fn next(&mut self, _limit: usize) -> Result<Option<Matches>> {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let wanted = std::mem::replace(&mut self.wanted, 0..0);
        self.control.check()?;
        self.control.advance(wanted.end - wanted.start);
        let filter = &*self.filter;
        self.part.for_each(wanted, |place, slice| {
            for at in slice.start as usize..slice.end as usize {
                if (filter.accepts)(place, filter.order[at]) {
                    ours.push(filter.driving[place as usize]);
                    theirs.push(filter.listed[at]);
                }
            }
        });
        Ok((!ours.is_empty()).then_some(match self.part.sliced {
            Side::Right => Matches::Pairs { left: ours, right: theirs },
            Side::Left => Matches::Pairs { left: theirs, right: ours },
        }))
    }
}

/// Rows that come out by themselves.
pub(super) struct Alone {
    pub(super) rows: Vec<u32>,
    pub(super) left: bool,
}

impl MatchTask for Alone {
    fn next(&mut self, _limit: usize) -> Result<Option<Matches>> {
        let rows = std::mem::take(&mut self.rows);
        let none = vec![NO_ROW; rows.len()];
        Ok((!rows.is_empty()).then_some(if self.left {
            Matches::Pairs { left: rows, right: none }
        } else {
            Matches::Pairs { left: none, right: rows }
        }))
    }
}
