//! Bounds that travel along a chain: rows that cannot have a partner go before anything is sorted.
//!
//! Whether a row has a partner under one comparison is told by the least and the greatest key of
//! the other side (within its equality group). One pass from the last stage to the first leaves
//! rows that can go on to the end, one pass back those that can be reached from the beginning as
//! well; a third would change nothing, because whatever the second keeps has its partners kept.
//!
//! Where neighbours are compared once, what is left is exactly what takes part in a result. Where
//! they are compared several times, each comparison may be satisfied by another row; what slips
//! through is found out when partners are counted.

use super::keys::{ChainKeys, Link};
use crate::key::Keys;
use crate::predicate::Comparison;

/// Drops the rows that bounds rule out; returns how many of each stage.
pub(super) fn propagate(chain: &mut ChainKeys) -> Vec<usize> {
    let mut live = std::mem::take(&mut chain.live);
    let before: Vec<usize> = live.iter().map(Vec::len).collect();
    for (stage, Link { terms, sliced }) in chain.links.iter().enumerate().rev() {
        let bounds = Bounds::new(chain, stage + 1, &live[stage + 1], sliced);
        live[stage].retain(|&row| {
            let group = chain.group(stage, row);
            terms.iter().all(|(keys, c)| bounds.allow(group, keys.at(row as usize), *c))
        });
    }
    for (stage, Link { terms, sliced }) in chain.links.iter().enumerate() {
        let bounds = |(keys, comparison): &(Keys, Comparison)| {
            (Bounds::new(chain, stage, &live[stage], keys), comparison.turned())
        };
        let bounds: Vec<(Bounds, Comparison)> = terms.iter().map(bounds).collect();
        live[stage + 1].retain(|&row| {
            let (group, key) = (chain.group(stage + 1, row), sliced.at(row as usize));
            bounds.iter().all(|(bounds, comparison)| bounds.allow(group, key, *comparison))
        });
    }
    chain.live = live;
    before.iter().zip(&chain.live).map(|(before, live)| before - live.len()).collect()
}

/// The least and the greatest key of each group that has any.
struct Bounds(Vec<Option<(u128, u128)>>);

impl Bounds {
    fn new(chain: &ChainKeys, stage: usize, rows: &[u32], keys: &Keys) -> Self {
        let mut bounds = vec![None; chain.group_count()];
        for &row in rows {
            let key = keys.at(row as usize);
            let (least, greatest) = bounds[chain.group(stage, row)].get_or_insert((key, key));
            *least = key.min(*least);
            *greatest = key.max(*greatest);
        }
        Self(bounds)
    }

    /// Whether `key` stands in `comparison` to some key of the group.
    fn allow(&self, group: usize, key: u128, comparison: Comparison) -> bool {
        self.0[group].is_some_and(|(least, greatest)| match comparison {
            Comparison::Less => key < greatest,
            Comparison::LessOrEqual => key <= greatest,
            Comparison::Greater => key > least,
            Comparison::GreaterOrEqual => key >= least,
            Comparison::NotEqual => key != least || key != greatest,
        })
    }
}
