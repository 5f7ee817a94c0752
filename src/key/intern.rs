//! Distinct values numbered densely, and ranks made of such numbers.

use std::hash::Hash;

use arrow_array::Array;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use super::plain::{PlainColumn, gather};
use crate::error::{Error, Result};

/// Ids stay below this, so that one is left to mean none.
const LIMIT: u32 = u32::MAX;

/// Numbers values in the order in which they first appear.
pub(super) struct Interner<T> {
    ids: HashMap<T, u32>,
    distinct: Vec<T>,
    limit: u32,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { ids: HashMap::new(), distinct: Vec::new(), limit: LIMIT }
    }
}

impl<T: Copy + Eq + Hash> Interner<T> {
    /// The id of a value, a new one if it has not been seen.
    pub fn id(&mut self, value: T) -> Result<u32> {
        let next = self.distinct.len() as u32;
        match self.ids.entry(value) {
            Entry::Occupied(entry) => Ok(*entry.get()),
            Entry::Vacant(_) if next == self.limit => Err(Error::unsupported(format!(
                "the key columns hold more than {} distinct keys",
                self.limit
            ))),
            Entry::Vacant(entry) => {
                entry.insert(next);
                self.distinct.push(value);
                Ok(next)
            }
        }
    }

    /// How many distinct values there are.
    pub fn count(&self) -> u32 {
        self.distinct.len() as u32
    }

    /// The values by id.
    pub fn into_distinct(self) -> Vec<T> {
        self.distinct
    }
}

/// Keys of values that fit no integer: their ranks among the distinct values of all columns.
pub(super) fn ranks<'a, T: Copy + Default + Eq + Hash + Ord>(
    columns: &'a [PlainColumn],
    mut append: impl FnMut(&'a dyn Array, &mut Vec<T>) -> Result<()>,
) -> Result<Vec<Vec<u64>>> {
    let mut interner = Interner::default();
    let mut values = Vec::new();
    let ids = gather(columns, |array, out| {
        values.clear();
        append(array, &mut values)?;
        for &value in &values {
            out.push(interner.id(value)?);
        }
        Ok(())
    })?;
    let values = interner.into_distinct();
    let mut order: Vec<u32> = (0..values.len() as u32).collect();
    order.sort_unstable_by_key(|&id| values[id as usize]);
    Ok(rank_ids(ids, order))
}

/// Turns ids into their positions in `order`, which lists every id once.
pub(super) fn rank_ids(
    ids: Vec<Vec<u32>>,
    order: impl IntoIterator<Item = u32, IntoIter: ExactSizeIterator>,
) -> Vec<Vec<u64>> {
    let order = order.into_iter();
    // Slots of nulls hold id 0, even if no value has an id.
    let mut ranks = vec![0; order.len().max(1)];
    for (rank, id) in (0..).zip(order) {
        ranks[id as usize] = rank;
    }
    let rank_column = |ids: Vec<u32>| ids.into_iter().map(|id| ranks[id as usize]).collect();
    ids.into_iter().map(rank_column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_distinct_values_are_an_error() {
        let mut interner = Interner { limit: 2, ..Interner::default() };
        assert_eq!((interner.id(7).unwrap(), interner.id(8).unwrap()), (0, 1));
        assert_eq!(interner.id(7).unwrap(), 0);
        let error = interner.id(9).unwrap_err();
        assert_eq!(error.to_string(), "the key columns hold more than 2 distinct keys");
    }
}
