//! Ends of bands of integers, decimals and times: whole numbers of steps of the right column.
//!
//! Sums are taken in 128 bits where they fit, and else in as many as it takes.

use std::slice;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, make_array, new_empty_array};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer, i256};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use num_bigint::BigInt;

use super::super::Column;
use super::super::domain::{Unit, decimal_scale, look_through};
use super::super::exact::{Integer, extremes, with_integers};
use super::super::plain::{PlainColumn, gather, leaves};
use crate::error::Result;

pub(super) fn ends(
    left: &Column,
    right: &Column,
    unit: Unit,
    steps: Option<BigInt>,
) -> Result<[ArrayRef; 2]> {
    let target = look_through(&right.data_type);
    let (left, right) = (PlainColumn::new(left)?, PlainColumn::new(right)?);
    let reach = match (steps, span(&right)?) {
        (Some(steps), Some(span)) => Some(Reach::new(steps, Scale::new(unit, target), span)),
        _ => None,
    };
    match reach {
        Some(reach) if !reach.is_narrow() => ends_in::<i256>(&left, unit, target, Some(&reach)),
        reach => ends_in::<i64>(&left, unit, target, reach.as_ref()),
    }
}

/// The ends as arrays of type `target`, whose values fit `N`.
fn ends_in<N: Integer + Default>(
    left: &PlainColumn,
    unit: Unit,
    target: &DataType,
    reach: Option<&Reach>,
) -> Result<[ArrayRef; 2]> {
    let mut found = gather(slice::from_ref(left), |array, out: &mut Vec<Option<[N; 2]>>| {
        let Some(reach) = reach else {
            out.resize(out.len() + array.len(), None);
            return Ok(());
        };
        let scale = Scale::new(unit, array.data_type());
        with_integers!(array, values => {
            out.extend(values.iter().map(|&value| reach.around(value, &scale)))
        });
        Ok(())
    })?;
    let found = found.pop().unwrap_or_default();
    let matching: NullBuffer = found.iter().map(Option::is_some).collect();
    let nulls = NullBuffer::union(left.nulls().as_ref(), Some(&matching));
    let model = new_empty_array(target);
    let end = |which: usize| {
        let values = found.iter().map(|ends| ends.unwrap_or_default()[which]);
        let values = with_integers!(model, values_of => buffer_of(values_of, values));
        let data = ArrayData::builder(target.clone()).len(found.len()).add_buffer(values);
        Ok(make_array(data.nulls(nulls.clone()).build()?))
    };
    Ok([end(0)?, end(1)?])
}

/// `values`, which fit, as integers like those of `_model`.
fn buffer_of<T: Integer + ArrowNativeType, N: Integer>(
    _model: &[T],
    values: impl Iterator<Item = N>,
) -> Buffer {
    Buffer::from_vec(values.map(|value| T::wrapping_from(value.wide())).collect::<Vec<_>>())
}

/// Least and greatest stored integer of a column; `None` if it has no values.
fn span(column: &PlainColumn) -> Result<Option<[i256; 2]>> {
    let mut span: Option<[i256; 2]> = None;
    for array in leaves(slice::from_ref(column)) {
        let found = with_integers!(array, values => {
            extremes(values, array.nulls()).map(|(low, high)| [low.wide(), high.wide()])
        });
        span = match (span, found) {
            (Some(span), Some(found)) => Some([span[0].min(found[0]), span[1].max(found[1])]),
            (span, found) => span.or(found),
        };
    }
    Ok(span)
}

/// How many units one step of a column is.
struct Scale {
    exact: BigInt,
    narrow: Option<i128>,
}

impl Scale {
    fn new(unit: Unit, data_type: &DataType) -> Self {
        let narrow = unit.factor(data_type).exact;
        let exact = match (narrow, unit, decimal_scale(data_type)) {
            (None, Unit::Decimal(finest), Some(scale)) => {
                let exponent = i32::from(finest) - i32::from(scale);
                BigInt::from(10).pow(exponent.unsigned_abs())
            }
            (narrow, ..) => narrow.unwrap_or(1).into(),
        };
        Self { exact, narrow }
    }
}

/// How far a band reaches, and what there is to be reached.
struct Reach {
    /// In units.
    steps: BigInt,
    narrow_steps: Option<i128>,
    /// Of the right column.
    scale: Scale,
    /// Least and greatest value of the right column, in its steps.
    span: [i256; 2],
}

impl Reach {
    fn new(steps: BigInt, scale: Scale, span: [i256; 2]) -> Self {
        Self { narrow_steps: i128::try_from(&steps).ok(), steps, scale, span }
    }

    /// Whether the right column fits 64 bits.
    fn is_narrow(&self) -> bool {
        let [least, greatest] = self.span;
        least >= i256::from_i128(i64::MIN.into()) && greatest <= i256::from_i128(i64::MAX.into())
    }

    /// The ends around a value of the left column, in steps of the right one, if there are any.
    fn around<A: Integer, N: Integer>(&self, value: A, scale: &Scale) -> Option<[N; 2]> {
        let [low, high] = match self.narrow(value, scale) {
            Some(ends) => ends.map(i256::from_i128),
            None => self.exact(value, scale),
        };
        let [least, greatest] = self.span;
        let (low, high) = (low.max(least), high.min(greatest));
        (low <= high).then(|| [low, high].map(N::wrapping_from))
    }

    /// The ends, if 128 bits suffice all the way.
    fn narrow<A: Integer>(&self, value: A, scale: &Scale) -> Option<[i128; 2]> {
        let (steps, per_step) = (self.narrow_steps?, self.scale.narrow?);
        let value = value.to_i128()?.checked_mul(scale.narrow?)?;
        let (low, high) = (value.checked_sub(steps)?, value.checked_add(steps)?);
        if per_step == 1 {
            return Some([low, high]);
        }
        let below = low.div_euclid(per_step);
        let ceiling = below + i128::from(low.rem_euclid(per_step) != 0);
        Some([ceiling, high.div_euclid(per_step)])
    }

    /// The ends; beyond 256 bits, in which the right column fits, just beyond it.
    fn exact<A: Integer>(&self, value: A, scale: &Scale) -> [i256; 2] {
        let value = big(value.wide()) * &scale.exact;
        let (low, high) = (&value - &self.steps, &value + &self.steps);
        // The ceiling of a number is the floor of its opposite, turned round.
        [saturated(&-floor(&-low, &self.scale.exact)), saturated(&floor(&high, &self.scale.exact))]
    }
}

fn floor(value: &BigInt, divisor: &BigInt) -> BigInt {
    let cut = value / divisor;
    if cut.clone() * divisor > *value { cut - 1 } else { cut }
}

fn big(value: i256) -> BigInt {
    BigInt::from_signed_bytes_le(&value.to_le_bytes())
}

fn saturated(value: &BigInt) -> i256 {
    let (least, greatest) = (big(i256::MIN), big(i256::MAX));
    let value = value.clamp(&least, &greatest);
    let sign = if *value < BigInt::ZERO { 0xff } else { 0 };
    let mut bytes = [sign; 32];
    for (to, from) in bytes.iter_mut().zip(value.to_signed_bytes_le()) {
        *to = from;
    }
    i256::from_le_bytes(bytes)
}
