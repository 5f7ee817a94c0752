//! What is asked for, checked against a schema.

use std::collections::HashSet;
use std::fmt;

use arrow_schema::{DataType, Field, Schema};

use crate::key::{NumberType, check_ordered};
use crate::{Error, Result};

/// How values become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// How many rows, or how many values that are not null.
    Count,
    /// All values added up.
    Sum,
    /// Their average.
    Mean,
    /// The least one.
    Min,
    /// The greatest one.
    Max,
    /// Variance of a sample.
    Var,
    /// Standard deviation of a sample.
    Std,
}

impl Function {
    /// All functions, for tests and tables.
    pub const ALL: [Self; 7] =
        [Self::Count, Self::Sum, Self::Mean, Self::Min, Self::Max, Self::Var, Self::Std];

    /// The function called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|function| function.name() == name)
    }

    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Sum => "sum",
            Self::Mean => "mean",
            Self::Min => "min",
            Self::Max => "max",
            Self::Var => "var",
            Self::Std => "std",
        }
    }
}

/// One output column: `name = function(column)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aggregate {
    /// Name of the output column.
    pub name: String,
    /// How values become one.
    pub function: Function,
    /// Whose values; only `count` does without.
    pub column: Option<String>,
}

impl fmt::Display for Aggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = self.column.as_deref().unwrap_or_default();
        write!(f, "{} = {}({column})", self.name, self.function.name())
    }
}

/// Aggregates that fit the input whose rows they are of.
#[derive(Clone, Debug)]
pub(crate) struct Aggregates {
    pub(super) list: Vec<Resolved>,
}

/// An aggregate, its column by number and its output field.
#[derive(Clone, Debug)]
pub(super) struct Resolved {
    pub(super) aggregate: Aggregate,
    pub(super) column: Option<usize>,
    pub(super) field: Field,
    /// How the column is called in errors.
    pub(super) label: String,
}

impl Aggregates {
    /// Checks `aggregates` against the `schema` of the `side` input; `taken` are the other output
    /// columns.
    pub(crate) fn new(
        aggregates: Vec<Aggregate>,
        schema: &Schema,
        side: &str,
        taken: &Schema,
    ) -> Result<Self> {
        if aggregates.is_empty() {
            return Err(Error::invalid("no aggregates; expected at least one"));
        }
        let mut names: HashSet<&str> = taken.fields().iter().map(|f| f.name().as_str()).collect();
        for aggregate in &aggregates {
            if !names.insert(&aggregate.name) {
                return Err(Error::invalid(format!(
                    "aggregate {:?} has a name that is taken by another output column: choose \
                     another one",
                    aggregate.name
                )));
            }
        }
        let resolve = |aggregate| Resolved::new(aggregate, schema, side);
        let list = aggregates.into_iter().map(resolve).collect::<Result<_>>()?;
        Ok(Self { list })
    }

    /// How many there are: at least one.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// The output columns.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &Field> {
        self.list.iter().map(|resolved| &resolved.field)
    }
}

impl fmt::Display for Aggregates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, resolved) in self.list.iter().enumerate() {
            write!(f, "{}{}", if position == 0 { "" } else { ", " }, resolved.aggregate)?;
        }
        Ok(())
    }
}

impl Resolved {
    fn new(aggregate: Aggregate, schema: &Schema, side: &str) -> Result<Self> {
        let Some(name) = &aggregate.column else {
            if aggregate.function != Function::Count {
                return Err(Error::invalid(format!(
                    "aggregate {:?}: {} needs a column of the {side} input",
                    aggregate.name,
                    aggregate.function.name()
                )));
            }
            let field = Field::new(&aggregate.name, DataType::Int64, false);
            return Ok(Self { aggregate, column: None, field, label: String::new() });
        };
        let column = schema.index_of(name).map_err(|_| {
            let names: Vec<_> = schema.fields().iter().map(|field| field.name()).collect();
            Error::invalid(format!(
                "aggregate {:?}: the {side} input has no column {name:?}; its columns are {names:?}",
                aggregate.name
            ))
        })?;
        let input = schema.field(column);
        let label = format!("{side} column {name:?}");
        let number = || {
            NumberType::of(input.data_type()).ok_or_else(|| {
                Error::invalid(format!(
                    "aggregate {:?}: {} of {label}, which has type {}; expected a number: an \
                     integer, decimal or float",
                    aggregate.name,
                    aggregate.function.name(),
                    input.data_type()
                ))
            })
        };
        let field = match aggregate.function {
            Function::Count => Field::new(&aggregate.name, DataType::Int64, false),
            Function::Sum => {
                let data_type = match number()? {
                    NumberType::Integer => DataType::Int64,
                    NumberType::Float => DataType::Float64,
                    NumberType::Decimal { scale, wide: false } => DataType::Decimal128(38, scale),
                    NumberType::Decimal { scale, wide: true } => DataType::Decimal256(76, scale),
                };
                Field::new(&aggregate.name, data_type, true)
            }
            Function::Mean | Function::Var | Function::Std => {
                number()?;
                Field::new(&aggregate.name, DataType::Float64, true)
            }
            Function::Min | Function::Max => {
                check_ordered(&[(&label, input.data_type())])?;
                // With its metadata: extension types live there.
                input.clone().with_name(&aggregate.name).with_nullable(true)
            }
        };
        Ok(Self { aggregate, column: Some(column), field, label })
    }
}
