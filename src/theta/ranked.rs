//! Both sides of a join as numbers: the rows that can match at all, and one key per row and column.
//!
//! Columns that are compared with each other, directly or through a third, are encoded together (a
//! *space*). Two inequalities in opposite directions over columns of one type share a space too, so
//! that the kernels can see whether they ask for overlapping intervals. Keys of more than 64 bits
//! are replaced by their ranks: the kernels know one width.

use std::sync::Arc;

use crate::key::{KeyColumn, Keys, NO_GROUP, equality_groups, ordered_keys};
use crate::predicate::Comparison;
use crate::table::Table;
use crate::{Error, Result};

use super::operands::Operands;
use super::plan::{BoundTerm, ThetaPlan};
use super::ranks::rank_together;

/// The keys of a join.
pub(super) struct Ranked {
    pub(super) left: RankedSide,
    pub(super) right: RankedSide,
    pub(super) terms: Vec<RankedTerm>,
    /// How many equality groups there are; one where the join has no equality columns.
    pub(super) groups: usize,
}

/// One side: rows whose keys are all there, numbered by *place*, and their keys.
pub(super) struct RankedSide {
    /// The row of each place, ascending.
    pub(super) rows: Arc<Vec<u32>>,
    /// The group of each place, where the join has equality columns.
    pub(super) groups: Option<Vec<u32>>,
    /// Keys by place, one entry per column that is compared.
    pub(super) columns: Vec<Vec<u64>>,
}

impl RankedSide {
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }
}

/// `left.columns[left] comparison right.columns[right]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RankedTerm {
    pub(super) left: usize,
    pub(super) comparison: Comparison,
    pub(super) right: usize,
    /// Keys of one space compare with each other.
    pub(super) space: usize,
}

/// A column by side and index, and its keys.
type RankedColumn = ((usize, usize), Vec<u64>);

impl Ranked {
    pub(super) fn new(plan: &ThetaPlan, left: &Table, right: &Table) -> Result<Self> {
        let tables = [left, right];
        let operands = Operands::new(plan, left, right)?;
        let column = |side: usize, index: usize| operands.get(side, index);
        let spaces = spaces(plan, tables);
        let mut keys: Vec<Vec<KeyColumn>> = Vec::new();
        for members in &spaces {
            let columns: Vec<_> =
                members.iter().map(|&(side, index)| column(side, index)).collect();
            keys.push(ordered_keys(&columns)?);
        }
        let mut groups = [None, None];
        let mut group_count = 1;
        if !plan.by.is_empty() {
            let sides = [
                plan.by.iter().map(|&(index, _)| column(0, index)).collect(),
                plan.by.iter().map(|&(_, index)| column(1, index)).collect(),
            ];
            let found = equality_groups(&sides)?;
            group_count = found.count as usize;
            let ids: [Vec<u32>; 2] = found.ids.try_into().map_err(|_| two_sides())?;
            groups = ids.map(Some);
        }
        let mut rows = [Vec::new(), Vec::new()];
        for side in 0..2 {
            let of_side = spaces.iter().zip(&keys).flat_map(|(members, keys)| {
                members.iter().zip(keys).filter(|((owner, _), _)| *owner == side)
            });
            let of_side: Vec<&KeyColumn> = of_side.map(|(_, keys)| keys).collect();
            let lives = |row: &u32| {
                let row = *row as usize;
                of_side.iter().all(|keys| !keys.is_null(row))
                    && groups[side].as_ref().is_none_or(|ids: &Vec<u32>| ids[row] != NO_GROUP)
            };
            let all = 0..tables[side].num_rows() as u32;
            let nulls = of_side.iter().any(|keys| keys.nulls.is_some())
                || groups[side].as_ref().is_some_and(|ids| ids.contains(&NO_GROUP));
            rows[side] = if nulls { all.filter(lives).collect() } else { all.collect() };
        }
        let mut columns: [Vec<RankedColumn>; 2] = [Vec::new(), Vec::new()];
        for (members, keys) in spaces.iter().zip(keys) {
            let live = members.iter().zip(keys).map(|(&(side, _), keys)| {
                let all = rows[side].len() == keys.len();
                if all { keys.keys } else { keys.keys.take(&rows[side]) }
            });
            for (&member, keys) in members.iter().zip(narrow(live)) {
                columns[member.0].push((member, keys));
            }
        }
        let terms = plan.terms.iter().map(|term| ranked_term(term, &spaces, &columns));
        let mut terms = terms.collect::<Result<Vec<_>>>()?;
        let mut seen: Vec<RankedTerm> = Vec::new();
        terms.retain(|term| {
            !seen.contains(term) && {
                seen.push(*term);
                true
            }
        });
        let [left_rows, right_rows] = rows;
        let [left_groups, right_groups] = groups;
        let [left_columns, right_columns] = columns;
        let side = |rows: Vec<u32>, groups: Option<Vec<u32>>, columns: Vec<(_, Vec<u64>)>| {
            let live = |ids: Vec<u32>| match rows.len() == ids.len() {
                true => ids,
                false => rows.iter().map(|&row| ids[row as usize]).collect(),
            };
            let groups = groups.map(live);
            let columns = columns.into_iter().map(|(_, keys)| keys).collect();
            RankedSide { rows: Arc::new(rows), groups, columns }
        };
        Ok(Self {
            left: side(left_rows, left_groups, left_columns),
            right: side(right_rows, right_groups, right_columns),
            terms,
            groups: group_count,
        })
    }
}

/// Keys of one space, which all have one width, in 64 bits.
pub(super) fn narrow(keys: impl Iterator<Item = Keys>) -> Vec<Vec<u64>> {
    let (mut narrow, mut wide) = (Vec::new(), Vec::new());
    for keys in keys {
        match keys {
            Keys::U64(keys) => narrow.push(keys),
            Keys::U128(keys) => wide.push(keys),
        }
    }
    if wide.is_empty() { narrow } else { rank_together(&wide) }
}

fn two_sides() -> Error {
    Error::internal("two sides in, not two out")
}

/// The columns (side, index) that are encoded together, set by set.
fn spaces(plan: &ThetaPlan, tables: [&Table; 2]) -> Vec<Vec<(usize, usize)>> {
    let mut spaces: Vec<Vec<(usize, usize)>> = Vec::new();
    for term in &plan.terms {
        let pair = [(0, term.left), (1, term.right)];
        let (mut joined, rest): (Vec<_>, Vec<_>) =
            spaces.into_iter().partition(|space| pair.iter().any(|column| space.contains(column)));
        let mut space = joined.drain(..).flatten().collect::<Vec<_>>();
        space.extend(pair.iter().filter(|column| !space.contains(column)).collect::<Vec<_>>());
        spaces = rest;
        spaces.push(space);
    }
    if let [first, second] = &spaces[..]
        && plan.terms.len() == 2
        && rises(&plan.terms[0]) != rises(&plan.terms[1])
    {
        let kind = |&(side, index): &(usize, usize)| tables[side].schema().field(index).data_type();
        let mut all = first.iter().chain(second);
        let wanted = kind(&first[0]);
        if all.all(|column| kind(column) == wanted) {
            spaces = vec![spaces.concat()];
        }
    }
    spaces
}

fn rises(term: &BoundTerm) -> bool {
    matches!(term.comparison, Comparison::Less | Comparison::LessOrEqual)
}

fn ranked_term(
    term: &BoundTerm,
    spaces: &[Vec<(usize, usize)>],
    columns: &[Vec<RankedColumn>; 2],
) -> Result<RankedTerm> {
    let place = |side: usize, index: usize| {
        columns[side].iter().position(|(member, _)| *member == (side, index))
    };
    let space = spaces.iter().position(|space| space.contains(&(0, term.left)));
    match (place(0, term.left), place(1, term.right), space) {
        (Some(left), Some(right), Some(space)) => {
            Ok(RankedTerm { left, comparison: term.comparison, right, space })
        }
        _ => Err(Error::internal("a compared column was not ranked")),
    }
}
