//! Floats against integers and decimals, exactly.
//!
//! Neither side can be rounded to the other's type. Instead a float is cut at the whole units of
//! the exact side: it becomes the pair (floor, tie), where tie is zero if it is a whole number of
//! units, and else its own order key, which is not. An exact value is (value, 0). Pairs compare
//! as the numbers do:
//!
//! ```text
//!   exact     (7, 0)                 (8, 0)
//!   floats    (7, 0)  (7, k) (7, l)  (8, 0)      7.0 < 7.25 < 7.5 < 8.0
//! ```
//!
//! Floats outside the span of exact values need no exact floor: the nearest one outside will do,
//! with their order key for tie. So pairs fit 128 bits if the span fits 64, and are ranked if not.

use arrow_array::Array;
use arrow_array::cast::AsArray;

use super::domain::Unit;
use super::exact::{Integer, Span, measured_span, with_integers};
use super::float::{self, order_key};
use super::plain::{PlainColumn, gather};
use super::position::Reading;
use super::{Encoded, bytes, digits, intern};
use crate::error::Result;

/// Up to here every integer is a float.
const EXACT_FLOATS: i128 = 1 << 53;

/// A 53-bit mantissa times 10^22 fits 127 bits.
const MAX_SCALE: i8 = 22;

pub(super) fn encode(columns: &[PlainColumn], unit: Unit) -> Result<Encoded> {
    let span = measured_span(columns, unit)?;
    match (span, unit) {
        (Some(span), Unit::Decimal(0))
            if span.least >= -EXACT_FLOATS && span.greatest <= EXACT_FLOATS =>
        {
            let keys = gather(columns, |array, out| append_as_floats(array, unit, out))?;
            Ok(Encoded::U64(keys, Reading::Float))
        }
        // Below the least 128-bit number there would be no floor to clamp to.
        (Some(span), Unit::Decimal(scale @ 0..=MAX_SCALE)) if span.least > i128::MIN => {
            let grid = Grid { span, units: 10u128.pow(scale.unsigned_abs().into()) };
            Ok(match grid.packing() {
                Some(base) => {
                    let keys = gather(columns, |array, out| {
                        grid.append(array, unit, |pair| pack(pair, base), out)
                    })?;
                    Encoded::U128(keys, Reading::Order)
                }
                None => {
                    let keys = intern::ranks(columns, |array, out| {
                        grid.append(array, unit, |pair| pair, out)
                    })?;
                    Encoded::U64(keys, Reading::Order)
                }
            })
        }
        _ => bytes::encode(&digits::of_columns(columns)?),
    }
}

fn append_as_floats(array: &dyn Array, unit: Unit, out: &mut Vec<u64>) -> Result<()> {
    if array.data_type().is_floating() {
        return float::append(array, order_key, out);
    }
    let factor = unit.factor(array.data_type()).low as u64;
    with_integers!(array, values => {
        out.extend(values.iter().map(|value| {
            order_key(value.low64().wrapping_mul(factor) as i64 as f64)
        }))
    });
    Ok(())
}

/// Floor in units, and what tells floats of the same floor apart.
type Pair = (i128, u64);

struct Grid {
    /// Of the exact values.
    span: Span,
    /// Units in 1.0.
    units: u128,
}

impl Grid {
    /// Appends what `convert` makes of the pair of each number.
    fn append<K>(
        &self,
        array: &dyn Array,
        unit: Unit,
        convert: impl Fn(Pair) -> K,
        out: &mut Vec<K>,
    ) -> Result<()> {
        if array.data_type().is_floating() {
            return float::append(array, |value| convert(self.pair(value)), out);
        }
        let factor = unit.factor(array.data_type()).low;
        with_integers!(array, values => {
            out.extend(values.iter().map(|value| {
                convert((value.low128().wrapping_mul(factor) as i128, 0))
            }))
        });
        Ok(())
    }

    fn pair(&self, value: f64) -> Pair {
        let Span { least, greatest } = self.span;
        match floor(value, self.units) {
            Floor::Whole(floor) if (least..=greatest).contains(&floor) => (floor, 0),
            Floor::Whole(floor) | Floor::Between(floor) => {
                (floor.clamp(least - 1, greatest.saturating_add(1)), order_key(value))
            }
        }
    }

    /// What to subtract from floors so that they fit 64 bits, if they can.
    fn packing(&self) -> Option<i128> {
        let base = self.span.least - 1;
        let top = self.span.greatest.checked_add(1)?;
        (top.checked_sub(base)? <= u64::MAX.into()).then_some(base)
    }
}

/// Slots of nulls may hold anything, hence wrapping.
fn pack((floor, tie): Pair, base: i128) -> u128 {
    (floor.wrapping_sub(base) as u128) << 64 | u128::from(tie)
}

enum Floor {
    /// The float is exactly this.
    Whole(i128),
    /// The float is above this and below the next, or beyond all of 128 bits.
    Between(i128),
}

/// The floor of `value * units`, where `units` is below 2^74.
fn floor(value: f64, units: u128) -> Floor {
    let beyond = if value < 0.0 { i128::MIN } else { i128::MAX };
    if !value.is_finite() {
        return Floor::Between(beyond);
    }
    // value = mantissa * 2^exponent
    let bits = value.to_bits();
    let (fraction, exponent) = (bits & ((1 << 52) - 1), (bits >> 52 & 0x7ff) as i32);
    let (mantissa, exponent) = match exponent {
        0 => (fraction, -1074),
        _ => (fraction | 1 << 52, exponent - 1075),
    };
    let product = u128::from(mantissa) * units;
    let shift = exponent.unsigned_abs();
    let (whole, rest) = if product == 0 {
        (0, false)
    } else if exponent >= 0 {
        if shift >= product.leading_zeros() {
            return Floor::Between(beyond);
        }
        (product << shift, false)
    } else if shift >= u128::BITS {
        (0, true)
    } else {
        (product >> shift, product & ((1 << shift) - 1) != 0)
    };
    // Below 2^127 either way, as the product is and shifts left are checked.
    let whole = whole as i128;
    match (value < 0.0, rest) {
        (false, false) => Floor::Whole(whole),
        (false, true) => Floor::Between(whole),
        (true, false) => Floor::Whole(-whole),
        (true, true) => Floor::Between(-whole - 1),
    }
}
