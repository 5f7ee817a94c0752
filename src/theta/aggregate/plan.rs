//! Aggregates over the matches of left rows, resolved against the schemas of both inputs.

use std::fmt;
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};

use super::super::plan::{Algorithm, ThetaPlan, ThetaSpec};
use super::Aggregated;
use crate::aggregate::{Aggregate, Aggregates};
use crate::operator::{Operator, Plan};
use crate::predicate::JoinKind;
use crate::table::Table;
use crate::{Error, Result};

/// A request for one row per left row, with aggregates over its matches, that fits its inputs.
#[derive(Clone, Debug)]
pub struct AggregatePlan {
    /// The left columns are its layout.
    pub(super) theta: ThetaPlan,
    pub(super) aggregates: Aggregates,
    schema: SchemaRef,
}

impl AggregatePlan {
    /// Checks columns, types and names; reads no data. Columns of `aggregates` are the right
    /// input's. The kind is left (all left rows) or inner (those that have a match).
    pub fn new(
        left: &Schema,
        right: &Schema,
        spec: ThetaSpec,
        aggregates: Vec<Aggregate>,
    ) -> Result<Self> {
        if !matches!(spec.kind, JoinKind::Left | JoinKind::Inner) {
            return Err(Error::unsupported(format!(
                "how={:?} with aggregates; expected \"left\" (every left row) or \"inner\" (left \
                 rows that have a match)",
                spec.kind.name()
            )));
        }
        if !matches!(spec.algorithm, Algorithm::Auto | Algorithm::NestedLoop) {
            return Err(Error::unsupported(format!(
                "algorithm={:?} builds pairs and has no aggregates: use the default algorithm",
                spec.algorithm.name()
            )));
        }
        let kind = spec.kind;
        let semi = ThetaSpec { kind: JoinKind::Semi, ..spec };
        let mut theta = ThetaPlan::resolve(left, right, semi)?;
        theta.spec.kind = kind;
        let columns = theta.layout.schema();
        let aggregates = Aggregates::new(aggregates, right, "right", columns)?;
        let fields = columns.fields().iter().map(|field| field.as_ref().clone());
        let fields: Vec<_> = fields.chain(aggregates.fields().cloned()).collect();
        Ok(Self { theta, aggregates, schema: Arc::new(Schema::new(fields)) })
    }
}

impl Plan for AggregatePlan {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn bind(&self, inputs: &[Arc<Table>]) -> Result<Arc<dyn Operator>> {
        let [left, right] = inputs else {
            return Err(Error::internal("a theta join has two inputs"));
        };
        Ok(Arc::new(Aggregated::new(self.clone(), Arc::clone(left), Arc::clone(right))))
    }
}

impl fmt::Display for AggregatePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  aggregates {}", self.theta, self.aggregates)
    }
}
