//! Which input column goes where in the output, and under which name.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};

use crate::predicate::JoinKind;
use crate::{Error, Result};

/// Where an output column comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// This column of an input.
    Column {
        /// The input's number.
        input: usize,
        /// The column's number.
        index: usize,
    },
    /// An equality column: of the left input, and where there is no left row, of the right one.
    Either(usize, usize),
}

impl Source {
    /// Which column of `input` is needed, if any.
    pub(super) fn of(&self, input: usize) -> Option<usize> {
        match *self {
            Self::Column { input: owner, index } => (owner == input).then_some(index),
            Self::Either(left, right) => [left, right].get(input).copied(),
        }
    }
}

/// The schema of a join's output, and the source of each of its columns.
#[derive(Clone, Debug)]
pub struct Layout {
    schema: SchemaRef,
    sources: Vec<Source>,
}

impl Layout {
    /// The layout of a two-input join of `kind`; `by` pairs equality columns, which come out once.
    ///
    /// Field metadata is kept (extension types live there), schema metadata is not: it describes
    /// an input as a whole (the index of a pandas frame, say).
    pub fn new(
        left: &Schema,
        right: &Schema,
        by: &[(usize, usize)],
        kind: JoinKind,
        suffix: &str,
    ) -> Result<Self> {
        let pads_left = matches!(kind, JoinKind::Right | JoinKind::Full);
        let pads_right = matches!(kind, JoinKind::Left | JoinKind::Full);
        let mut taken: HashSet<String> = left.fields().iter().map(|f| f.name().clone()).collect();
        let mut fields = Vec::new();
        let mut sources = Vec::new();
        for (index, field) in left.fields().iter().enumerate() {
            let twin = by.iter().find(|&&(left, _)| left == index).filter(|_| pads_left);
            if let Some(&(_, twin)) = twin {
                let other = right.field(twin);
                if other.data_type() != field.data_type() {
                    return Err(Error::unsupported(format!(
                        "how={kind:?} puts left column {:?} ({}) and right column {:?} ({}) into \
                         one: cast them to the same type first",
                        field.name(),
                        field.data_type(),
                        other.name(),
                        other.data_type(),
                        kind = kind.name(),
                    )));
                }
                fields.push(padded(field, other.is_nullable()));
                sources.push(Source::Either(index, twin));
            } else {
                fields.push(padded(field, pads_left));
                sources.push(Source::Column { input: 0, index });
            }
        }
        let has_right = !matches!(kind, JoinKind::Semi | JoinKind::Anti);
        let dropped: HashSet<usize> = by.iter().map(|&(_, right)| right).collect();
        for (index, field) in right.fields().iter().enumerate() {
            if !has_right || dropped.contains(&index) {
                continue;
            }
            // Only a name of the left input counts: names must not depend on the columns' order.
            let mut name = field.name().clone();
            if left.index_of(&name).is_ok() {
                name.push_str(suffix);
            }
            if !taken.insert(name.clone()) {
                return Err(Error::invalid(format!(
                    "right column {:?} would come out as {name:?}, a name that is taken: \
                     choose another suffix (now {suffix:?}) or rename the column",
                    field.name()
                )));
            }
            fields.push(padded(field, pads_right).with_name(name));
            sources.push(Source::Column { input: 1, index });
        }
        Ok(Self { schema: Arc::new(Schema::new(fields)), sources })
    }

    /// The layout of an inner join of any number of inputs. `by` has the equality columns of each
    /// input, which come out once, as the first input's. A name that an earlier input has too gets
    /// `suffix` and the number of its input.
    pub fn of_many(inputs: &[SchemaRef], by: &[Vec<usize>], suffix: &str) -> Result<Self> {
        let mut taken = HashSet::new();
        let (mut fields, mut sources) = (Vec::new(), Vec::new());
        for (input, schema) in inputs.iter().enumerate() {
            for (index, field) in schema.fields().iter().enumerate() {
                if input > 0 && by[input].contains(&index) {
                    continue;
                }
                let mut name = field.name().clone();
                if inputs[..input].iter().any(|earlier| earlier.index_of(&name).is_ok()) {
                    name = format!("{name}{suffix}{input}");
                }
                if !taken.insert(name.clone()) {
                    return Err(Error::invalid(format!(
                        "column {:?} of input {input} would come out as {name:?}, a name that is \
                         taken: choose another suffix (now {suffix:?}) or rename the column",
                        field.name()
                    )));
                }
                fields.push(field.as_ref().clone().with_name(name));
                sources.push(Source::Column { input, index });
            }
        }
        Ok(Self { schema: Arc::new(Schema::new(fields)), sources })
    }

    /// The output schema.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(super) fn sources(&self) -> impl Iterator<Item = &Source> {
        self.sources.iter()
    }
}

fn padded(field: &Field, pads: bool) -> Field {
    let nullable = field.is_nullable() || pads;
    field.clone().with_nullable(nullable)
}
