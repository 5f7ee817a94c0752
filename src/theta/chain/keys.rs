//! The keys of a chain, link by link, in the order in which the chain is walked.

use std::sync::Arc;

use super::super::plan::BoundTerm;
use super::plan::{ChainPlan, Way};
use crate::key::{Groups, KeyColumn, Keys, NO_GROUP, equality_groups, ordered_keys};
use crate::predicate::Comparison;
use crate::table::Table;
use crate::{Error, Result};

/// The inputs of a chain as *stages*: stage 0 is where the chain begins, and link i compares
/// stage i with stage i + 1.
pub(super) struct ChainKeys {
    /// The input that each stage is.
    pub inputs: Vec<usize>,
    /// The rows of each stage that can match at all, ascending.
    pub live: Vec<Vec<u32>>,
    pub links: Vec<Link>,
    /// The group of each row, by stage, where the chain has equality columns.
    groups: Option<Groups>,
}

/// The keys that are compared between two stages: all terms with one column of the later one.
pub(super) struct Link {
    /// Keys of the earlier stage, and how they compare with the later one's.
    pub terms: Vec<(Keys, Comparison)>,
    /// Keys of the later stage.
    pub sliced: Keys,
}

impl ChainKeys {
    pub fn new(plan: &ChainPlan, tables: &[Arc<Table>]) -> Result<Self> {
        let mut inputs: Vec<usize> = (0..tables.len()).collect();
        if plan.way == Way::Up {
            inputs.reverse();
        }
        let column = |input: usize, index: usize| {
            tables[input].key_column(index, plan.label(tables, input, index))
        };
        let groups = match plan.spec.by.is_empty() {
            true => None,
            false => {
                let columns = |&input: &usize| {
                    plan.by[input].iter().map(|&index| column(input, index)).collect()
                };
                Some(equality_groups(&inputs.iter().map(columns).collect::<Vec<_>>())?)
            }
        };
        let mut lives: Vec<Vec<bool>> = match &groups {
            Some(groups) => {
                let has_group = |ids: &Vec<u32>| ids.iter().map(|&id| id != NO_GROUP).collect();
                groups.ids.iter().map(has_group).collect()
            }
            None => inputs.iter().map(|&input| vec![true; tables[input].num_rows()]).collect(),
        };
        let mut links = Vec::with_capacity(inputs.len() - 1);
        for stage in 0..inputs.len() - 1 {
            let (earlier, later) = (inputs[stage], inputs[stage + 1]);
            let terms: Vec<BoundTerm> = match plan.way {
                Way::Down => plan.links[earlier].clone(),
                Way::Up => plan.links[later].iter().map(BoundTerm::turned).collect(),
            };
            let mut columns: Vec<_> = terms.iter().map(|term| column(earlier, term.left)).collect();
            columns.push(column(later, terms[0].right));
            let mut keys = ordered_keys(&columns)?;
            let sliced = keys.pop().ok_or_else(|| Error::internal("a link without keys"))?;
            keys.iter().for_each(|keys| strike_nulls(&mut lives[stage], keys));
            strike_nulls(&mut lives[stage + 1], &sliced);
            let comparisons = terms.iter().map(|term| term.comparison);
            links.push(Link {
                terms: keys.into_iter().map(|keys| keys.keys).zip(comparisons).collect(),
                sliced: sliced.keys,
            });
        }
        let rows =
            |lives: Vec<bool>| (0..lives.len() as u32).filter(|&row| lives[row as usize]).collect();
        Ok(Self { inputs, live: lives.into_iter().map(rows).collect(), links, groups })
    }

    /// How many groups there are; one where the chain has no equality columns.
    pub fn group_count(&self) -> usize {
        self.groups.as_ref().map_or(1, |groups| groups.count as usize)
    }

    /// The group of each of `rows` of a stage, where the chain has equality columns.
    pub fn groups_of(&self, stage: usize, rows: &[u32]) -> Option<Vec<u32>> {
        let ids = &self.groups.as_ref()?.ids[stage];
        Some(rows.iter().map(|&row| ids[row as usize]).collect())
    }

    /// The group of a row; 0 where the chain has no equality columns.
    pub fn group(&self, stage: usize, row: u32) -> usize {
        self.groups.as_ref().map_or(0, |groups| groups.ids[stage][row as usize] as usize)
    }
}

fn strike_nulls(lives: &mut [bool], keys: &KeyColumn) {
    if let Some(nulls) = &keys.nulls {
        lives.iter_mut().zip(nulls).for_each(|(lives, valid)| *lives &= valid);
    }
}
