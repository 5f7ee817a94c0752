//! Equality of one or more columns as dense group ids.
//!
//! Each column is numbered by hashing, strings by their bytes and everything else by its ordered
//! key, which brings the rules for NaN, -0.0 and mixed types with it. Several columns are
//! numbered pair by pair. Ids are in the order of first appearance, sides one after the other.

use std::hash::Hash;

use arrow_schema::DataType;

use super::bytes::BytesInterner;
use super::domain::Domain;
use super::intern::Interner;
use super::plain::{PlainColumn, gather};
use super::{Column, Encoded, check_ordered, encode, unify};
use crate::error::{Error, Result};

/// The group of rows with a null in a key column: they match nothing, not even each other.
pub const NO_GROUP: u32 = u32::MAX;

/// Equality groups of the rows of all sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// Per side, the group of each row: below `count`, or [`NO_GROUP`].
    pub ids: Vec<Vec<u32>>,
    /// Number of groups; each has at least one row.
    pub count: u32,
}

/// Whether sides with key columns of these labels and types can be compared, column by column.
///
/// For use when a join is described, before data is read.
pub fn check_equality(sides: &[Vec<(&str, &DataType)>]) -> Result<()> {
    check_widths(sides.iter().map(Vec::len))?;
    for position in 0..sides.first().map_or(0, Vec::len) {
        check_ordered(&sides.iter().map(|side| side[position]).collect::<Vec<_>>())?;
    }
    Ok(())
}

/// Numbers the rows of all sides so that two have the same id exactly if their keys are equal in
/// all columns, and none is null.
pub fn equality_groups(sides: &[Vec<Column>]) -> Result<Groups> {
    check_widths(sides.iter().map(Vec::len))?;
    check_lengths(sides)?;
    let mut all: Option<Groups> = None;
    for position in 0..sides.first().map_or(0, Vec::len) {
        let columns: Vec<_> = sides.iter().map(|side| &side[position]).collect();
        let groups = column_groups(&columns)?;
        all = Some(match all {
            None => groups,
            Some(earlier) => combine(earlier, groups)?,
        });
    }
    Ok(all.unwrap_or(Groups { ids: Vec::new(), count: 0 }))
}

fn column_groups(columns: &[&Column]) -> Result<Groups> {
    let domain = unify(columns)?;
    let plain =
        columns.iter().map(|column| PlainColumn::new(column)).collect::<Result<Vec<_>>>()?;
    match domain {
        Domain::Bytes => {
            let mut interner = BytesInterner::default();
            let mut ids = gather(&plain, |array, out| interner.append(array, out))?;
            let count = interner.count();
            drop_nulls(&plain, &mut ids);
            Ok(match plain.iter().any(PlainColumn::is_indirect) {
                true => renumber(ids, count),
                false => Groups { ids, count },
            })
        }
        domain => match encode(&plain, domain)? {
            Encoded::U64(keys, _) => number(&plain, keys),
            Encoded::U128(keys, _) => number(&plain, keys),
        },
    }
}

/// Numbers keys, rows of nulls left out.
fn number<K: Copy + Eq + Hash>(columns: &[PlainColumn], keys: Vec<Vec<K>>) -> Result<Groups> {
    let mut interner = Interner::default();
    let mut number_column = |(keys, column): (Vec<K>, &PlainColumn)| match column.nulls() {
        None => keys.into_iter().map(|key| interner.id(key)).collect(),
        Some(nulls) => keys
            .into_iter()
            .zip(&nulls)
            .map(|(key, valid)| if valid { interner.id(key) } else { Ok(NO_GROUP) })
            .collect(),
    };
    let ids = keys.into_iter().zip(columns).map(&mut number_column).collect::<Result<_>>()?;
    Ok(Groups { ids, count: interner.count() })
}

fn drop_nulls(columns: &[PlainColumn], ids: &mut [Vec<u32>]) {
    for (column, ids) in columns.iter().zip(ids) {
        if let Some(nulls) = column.nulls() {
            for (id, valid) in ids.iter_mut().zip(&nulls) {
                *id = if valid { *id } else { NO_GROUP };
            }
        }
    }
}

/// Makes ids dense again: a dictionary may have values that no row refers to.
fn renumber(mut ids: Vec<Vec<u32>>, count: u32) -> Groups {
    let mut new_ids = vec![NO_GROUP; count as usize];
    let mut next = 0;
    for id in ids.iter_mut().flatten().filter(|id| **id != NO_GROUP) {
        let new_id = &mut new_ids[*id as usize];
        if *new_id == NO_GROUP {
            *new_id = next;
            next += 1;
        }
        *id = *new_id;
    }
    Groups { ids, count: next }
}

/// Groups of rows that are equal in both.
fn combine(a: Groups, b: Groups) -> Result<Groups> {
    let mut interner = Interner::default();
    let mut combine_row = |pair| match pair {
        (NO_GROUP, _) | (_, NO_GROUP) => Ok(NO_GROUP),
        (a, b) => interner.id(u64::from(a) << 32 | u64::from(b)),
    };
    let mut combine_side =
        |(a, b): (Vec<u32>, Vec<u32>)| a.into_iter().zip(b).map(&mut combine_row).collect();
    let ids = a.ids.into_iter().zip(b.ids).map(&mut combine_side).collect::<Result<_>>()?;
    Ok(Groups { ids, count: interner.count() })
}

fn check_widths(mut widths: impl Iterator<Item = usize>) -> Result<()> {
    let Some(first) = widths.next() else { return Ok(()) };
    if first == 0 {
        return Err(Error::invalid("no key column; expected at least one on each side"));
    }
    match widths.find(|&width| width != first) {
        None => Ok(()),
        Some(width) => Err(Error::invalid(format!(
            "{first} key columns on one side and {width} on another; expected as many on each"
        ))),
    }
}

fn check_lengths(sides: &[Vec<Column>]) -> Result<()> {
    for side in sides {
        for column in side {
            if column.len() != side[0].len() {
                return Err(Error::invalid(format!(
                    "{} has {} rows and {} has {}; expected columns of the same length",
                    side[0].label,
                    side[0].len(),
                    column.label,
                    column.len()
                )));
            }
        }
    }
    Ok(())
}
