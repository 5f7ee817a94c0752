//! The nested loop: every left row against every right row. The baseline, and the oracle's twin.
//!
//! Output order: left row, then right row. Cost: |left| × |right| comparisons.

use std::iter;
use std::sync::Arc;

use arrow_schema::SchemaRef;

use super::operands::Operands;
use super::plan::ThetaPlan;
use super::scan::{self, Given, PairKeys, Product, SideKeys, Tally};
use crate::Result;
use crate::key::{KeyColumn, equality_groups, ordered_keys};
use crate::operator::{Operator, Run};
use crate::output::{Assembler, BatchStream};
use crate::table::Table;

/// A nested-loop join over two tables.
pub(super) struct NestedLoop {
    plan: ThetaPlan,
    left: Arc<Table>,
    right: Arc<Table>,
    keys: Arc<PairKeys>,
    assembler: Arc<Assembler>,
}

impl NestedLoop {
    pub(super) fn new(plan: ThetaPlan, left: Arc<Table>, right: Arc<Table>) -> Result<Self> {
        let keys = Arc::new(pair_keys(&plan, &left, &right)?);
        let layout = plan.layout.clone();
        let assembler = Arc::new(Assembler::new(layout, Arc::clone(&left), Arc::clone(&right)));
        Ok(Self { plan, left, right, keys, assembler })
    }

    /// All rows against all rows.
    fn product(&self) -> Product {
        let (left, right) = (self.keys.left.rows.len(), self.keys.right.rows.len());
        Product { left: 0..left, right: 0..right, worker: 0 }
    }

    fn begin(&self, run: &Run) -> Arc<Tally> {
        let pairs = self.product().pairs();
        log::debug!("{}: nested_loop, {pairs} comparisons on {} threads", self.plan, run.threads);
        let given = [&self.left, &self.right].map(|t| Given { rows: t.num_rows(), filtered: None });
        Tally::new(run, &self.keys, given, pairs, None)
    }
}

impl Operator for NestedLoop {
    fn schema(&self) -> &SchemaRef {
        self.plan.layout.schema()
    }

    fn stream(&self, run: &Run) -> Result<BatchStream> {
        let assembler = Arc::clone(&self.assembler);
        let (keys, products) = (Arc::clone(&self.keys), iter::once(self.product()));
        scan::stream(keys, products, self.begin(run), assembler, run)
    }

    fn count(&self, run: &Run) -> Result<u128> {
        let (keys, products) = (Arc::clone(&self.keys), iter::once(self.product()));
        scan::count(keys, products, self.begin(run), run)
    }

    fn explain(&self, run: &Run) -> Result<String> {
        let side = |name: &str, table: &Table, keys: &SideKeys| {
            let (rows, null) = (table.num_rows(), table.num_rows() - keys.rows.len());
            format!("  {name:<10} {rows} rows, {null} of them with a null key\n")
        };
        Ok(format!(
            "{}\n  algorithm  nested_loop: {} comparisons\n{}{}  threads    {}\n  \
             order      left row, then right row\n",
            self.plan,
            self.product().pairs(),
            side("left", &self.left, &self.keys.left),
            side("right", &self.right, &self.keys.right),
            run.threads,
        ))
    }
}

pub(super) fn pair_keys(plan: &ThetaPlan, left: &Table, right: &Table) -> Result<PairKeys> {
    let operands = Operands::new(plan, left, right)?;
    let mut left_terms = Vec::new();
    let mut right_terms = Vec::new();
    for term in &plan.terms {
        let pair = [operands.get(0, term.left), operands.get(1, term.right)];
        let [l, r] = <[KeyColumn; 2]>::try_from(ordered_keys(&pair)?)
            .map_err(|_| crate::Error::internal("two columns in, not two out"))?;
        left_terms.push(l);
        right_terms.push(r);
    }
    let groups = if plan.by.is_empty() {
        [None, None]
    } else {
        let sides = [
            plan.by.iter().map(|&(l, _)| operands.get(0, l)).collect(),
            plan.by.iter().map(|&(_, r)| operands.get(1, r)).collect(),
        ];
        let [l, r] = <[Vec<u32>; 2]>::try_from(equality_groups(&sides)?.ids)
            .map_err(|_| crate::Error::internal("two sides in, not two out"))?;
        [Some(l), Some(r)]
    };
    let [left_groups, right_groups] = groups;
    Ok(PairKeys {
        left: SideKeys::new(left.num_rows(), &left_terms, left_groups),
        right: SideKeys::new(right.num_rows(), &right_terms, right_groups),
        comparisons: plan.terms.iter().map(|term| term.comparison).collect(),
    })
}
