//! Partials become output columns.

use std::sync::Arc;

use arrow_array::types::{Decimal128Type, Decimal256Type, DecimalType};
use arrow_array::{
    ArrayRef, Decimal128Array, Decimal256Array, Float64Array, Int64Array, PrimitiveArray,
};
use arrow_buffer::i256;
use arrow_schema::DataType;

use super::fold::{NONE_LEAST, OVERFLOWED};
use super::measure::{Measures, Partials, scaled, wide_to_f64};
use super::request::{Aggregates, Resolved};
use crate::table::NO_ROW;
use crate::{Error, Result};

/// How an output column is made of measures, which it names by number; `values` is the count of
/// values, where some are null.
pub(super) enum Recipe {
    Count { values: Option<usize> },
    Sum { sum: usize, values: Option<usize> },
    Mean { sum: usize, values: Option<usize>, scale: i8 },
    Spread { moments: usize, root: bool },
    Pick { rank: usize, least: bool, rows: Arc<Vec<u32>>, column: usize },
}

/// An output column, or where its values are.
pub(crate) enum Finished {
    /// The column itself.
    Values(ArrayRef),
    /// These rows of that column of the aggregated input; [`NO_ROW`] for null.
    Picked { column: usize, rows: Vec<u32> },
}

impl Measures {
    /// The columns of the output rows whose partials are at `slots`; [`NO_ROW`] for a row that has
    /// no matches. `matches` says how many there are at each slot, `left_row` names an output row
    /// in errors.
    pub(crate) fn finish(
        &self,
        aggregates: &Aggregates,
        partials: &[Partials],
        matches: &[u32],
        slots: &[u32],
        left_row: impl Fn(usize) -> u32,
    ) -> Result<Vec<Finished>> {
        let rows = Slots { partials, matches, slots };
        let column = |(recipe, resolved)| rows.finish(recipe, resolved, &left_row);
        self.recipes.iter().zip(&aggregates.list).map(column).collect()
    }
}

/// The partials of some output rows.
struct Slots<'a> {
    partials: &'a [Partials],
    matches: &'a [u32],
    slots: &'a [u32],
}

impl Slots<'_> {
    fn finish(
        &self,
        recipe: &Recipe,
        resolved: &Resolved,
        left_row: &impl Fn(usize) -> u32,
    ) -> Result<Finished> {
        Ok(Finished::Values(match *recipe {
            Recipe::Count { values } => {
                let counts = self.counts(values).map(|(_, count)| i64::from(count));
                Arc::new(counts.collect::<Int64Array>())
            }
            Recipe::Sum { sum, values } => {
                let overflow = |row: usize, sum: i256| beyond(resolved, left_row(row), sum);
                self.sums(sum, values, resolved.field.data_type(), &overflow)?
            }
            Recipe::Mean { sum, values, scale } => {
                let overflow = |row: usize| beyond(resolved, left_row(row), OVERFLOWED);
                self.means(sum, values, scale, &overflow)?
            }
            Recipe::Spread { moments, root } => {
                let Partials::Moments(moments) = &self.partials[moments] else {
                    return Err(mixed_up());
                };
                let value = |&slot: &u32| {
                    let moments = moments.get(slot as usize).filter(|m| m.count >= 2.0)?;
                    let variance = moments.squares / (moments.count - 1.0);
                    Some(if root { variance.sqrt() } else { variance })
                };
                Arc::new(self.slots.iter().map(value).collect::<Float64Array>())
            }
            Recipe::Pick { rank, least, ref rows, column } => {
                let Partials::Small(ranks) = &self.partials[rank] else { return Err(mixed_up()) };
                let none = if least { NONE_LEAST } else { 0 };
                let row = |&slot: &u32| match ranks.get(slot as usize) {
                    Some(&rank) if rank != none => rows[rank as usize - 1],
                    _ => NO_ROW,
                };
                return Ok(Finished::Picked { column, rows: self.slots.iter().map(row).collect() });
            }
        }))
    }

    /// Slot and number of values of each row; a row without a slot has none.
    fn counts(&self, values: Option<usize>) -> impl Iterator<Item = (usize, u32)> {
        let counts = match values.map(|values| &self.partials[values]) {
            Some(Partials::Small(counts)) => counts,
            _ => self.matches,
        };
        let count = |&slot: &u32| (slot as usize, counts.get(slot as usize).copied().unwrap_or(0));
        self.slots.iter().map(count)
    }

    /// Slot of each row; `None` where there is no value.
    fn filled(&self, values: Option<usize>) -> impl Iterator<Item = Option<(usize, u32)>> {
        self.counts(values).map(|(slot, count)| (count > 0).then_some((slot, count)))
    }

    fn sums(
        &self,
        sum: usize,
        values: Option<usize>,
        data_type: &DataType,
        overflow: &impl Fn(usize, i256) -> Error,
    ) -> Result<ArrayRef> {
        let filled = self.filled(values).map(|filled| filled.map(|(slot, _)| slot));
        let exact: Box<dyn Iterator<Item = Option<i256>>> = match &self.partials[sum] {
            Partials::Real(sums) => {
                let totals = filled.map(|slot| slot.map(|slot| sums[slot].total()));
                return Ok(Arc::new(totals.collect::<Float64Array>()));
            }
            // The usual case: no sum can overflow.
            Partials::Long(sums) if *data_type == DataType::Int64 => {
                let sums = filled.map(|slot| slot.map(|slot| sums[slot]));
                return Ok(Arc::new(sums.collect::<Int64Array>()));
            }
            Partials::Long(sums) => Box::new(filled.map(|slot| slot.map(|s| sums[s].into()))),
            Partials::Wide(sums) => Box::new(filled.map(|slot| slot.map(|s| sums[s].into()))),
            Partials::Widest(sums) => Box::new(filled.map(|slot| slot.map(|s| sums[s]))),
            _ => return Err(mixed_up()),
        };
        let fitting = |fits: fn(i256) -> bool| {
            exact.enumerate().map(move |(row, sum)| match sum {
                Some(sum) if !fits(sum) => Err(overflow(row, sum)),
                sum => Ok(sum),
            })
        };
        Ok(match data_type {
            DataType::Int64 => {
                let fits = |sum: i256| sum.to_i128().is_some_and(|s| i64::try_from(s).is_ok());
                let sums = fitting(fits).map(|sum| Ok(sum?.map(|sum| sum.as_i128() as i64)));
                Arc::new(sums.collect::<Result<Int64Array>>()?)
            }
            DataType::Decimal128(precision, scale) => {
                let fits = |sum: i256| magnitude(sum) < power_of_ten(Decimal128Type::MAX_PRECISION);
                let sums = fitting(fits).map(|sum| Ok(sum?.map(i256::as_i128)));
                let sums = sums.collect::<Result<Decimal128Array>>()?;
                Arc::new(sums.with_precision_and_scale(*precision, *scale)?)
            }
            DataType::Decimal256(precision, scale) => {
                let fits = |sum: i256| magnitude(sum) < power_of_ten(Decimal256Type::MAX_PRECISION);
                let sums = fitting(fits).collect::<Result<Decimal256Array>>()?;
                Arc::new(sums.with_precision_and_scale(*precision, *scale)?)
            }
            _ => return Err(mixed_up()),
        })
    }

    fn means(
        &self,
        sum: usize,
        values: Option<usize>,
        scale: i8,
        overflow: &impl Fn(usize) -> Error,
    ) -> Result<ArrayRef> {
        let mut means = PrimitiveArray::builder(self.slots.len());
        for (row, filled) in self.filled(values).enumerate() {
            let mean = filled.map(|(slot, count)| {
                let sum = match &self.partials[sum] {
                    Partials::Real(sums) => sums[slot].total(),
                    Partials::Long(sums) => sums[slot] as f64,
                    Partials::Wide(sums) => sums[slot] as f64,
                    Partials::Widest(sums) if sums[slot] == OVERFLOWED => {
                        return Err(overflow(row));
                    }
                    Partials::Widest(sums) => wide_to_f64(sums[slot]),
                    _ => return Err(mixed_up()),
                };
                Ok(scaled(sum / f64::from(count), scale))
            });
            means.append_option(mean.transpose()?);
        }
        let means: Float64Array = means.finish();
        Ok(Arc::new(means))
    }
}

/// The absolute value; that of [`OVERFLOWED`] is the largest there is.
fn magnitude(sum: i256) -> i256 {
    sum.checked_abs().unwrap_or(i256::MAX)
}

fn power_of_ten(exponent: u8) -> i256 {
    i256::from_i128(10).wrapping_pow(exponent.into())
}

fn beyond(resolved: &Resolved, left_row: u32, sum: i256) -> Error {
    let Resolved { aggregate, field, label, .. } = resolved;
    let found = match (sum, field.data_type()) {
        (OVERFLOWED, _) => "exceeds 256 bits".to_owned(),
        (sum, DataType::Int64) => format!("is {sum}, which Int64 does not hold"),
        (sum, other) => format!("has the digits {sum}, which {other} does not hold"),
    };
    Error::invalid(format!(
        "aggregate {:?} overflows: for left row {left_row} the sum of {label} {found}; cast the \
         column to a wider type or to float64",
        aggregate.name,
    ))
}

fn mixed_up() -> Error {
    Error::internal("partials of another measure")
}
