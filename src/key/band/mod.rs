//! Bands, `abs(left - right) <= width`, as intervals: the least and the greatest value of the right
//! column that lie within the band around each left value.
//!
//! So a band is two comparisons with one column, `low <= right` and `high >= right`, and whoever
//! joins by comparisons joins by bands:
//!
//! ```text
//! width 2    left 3: 1 to 5     left 8: 6 to 10
//! right      2 5 9
//! ends       3: [2, 5]          8: [6, 9]
//! ```
//!
//! - **Integers, decimals and times** are subtracted exactly, whatever their widths, scales and
//!   units; nothing wraps. A date is its midnight. Times take a length of time for width, numbers
//!   take a number.
//! - **Floats**, and integers against floats, are subtracted as 64-bit floats: a pair is within the
//!   band exactly if `(left as f64 - right as f64).abs() <= width as f64` in IEEE arithmetic. NaN
//!   and infinities are within no band. Integers that no float equals are an error, decimals
//!   against floats are refused.
//! - **Nulls**: where the left value is null, or no right value lies within its band, both ends are
//!   null, so that the row matches nothing.
//!
//! Ends have the type of the right column (floats are `Float64`) and lie between its least and its
//! greatest value, so that their keys are no wider than its own.
//!
//! Cost: one pass over each column.

mod exact;
mod float;

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, NullArray};
use arrow_schema::DataType;
use num_bigint::{BigInt, BigUint};

use super::Column;
use super::domain::{Domain, Family, Unit, look_through, per_second};
use crate::error::{Error, Result};
use crate::predicate::Width;

/// Whether columns of these labels and types, left and right, have a difference that can be
/// compared with `width`.
///
/// For use when a join is described, before data is read.
pub fn check_band(left: (&str, &DataType), right: (&str, &DataType), width: &Width) -> Result<()> {
    Measure::of(left, right, width, false).map(drop)
}

/// The low and the high end of the band around each row of `left`: `right` lies in between, ends
/// included, exactly if it is at most `width` away or, if `strict`, less.
pub fn band_ends(
    left: &Column,
    right: &Column,
    width: &Width,
    strict: bool,
) -> Result<[Column; 2]> {
    let (ours, theirs) = ((&*left.label, &left.data_type), (&*right.label, &right.data_type));
    let ends: [ArrayRef; 2] = match Measure::of(ours, theirs, width, strict)? {
        Measure::Nothing => [0, 1].map(|_| Arc::new(NullArray::new(left.len())) as ArrayRef),
        Measure::Exact { unit, steps } => exact::ends(left, right, unit, steps)?,
        Measure::Float { width } => float::ends(left, right, width, strict)?,
    };
    Ok(ends.map(|end| Column::new(left.label.clone(), end.data_type().clone(), vec![end])))
}

/// How the differences of two columns are measured.
enum Measure {
    /// One side has no values.
    Nothing,
    /// In whole units: so many at most, or, if `None`, not even zero.
    Exact { unit: Unit, steps: Option<BigInt> },
    /// As floats.
    Float { width: f64 },
}

impl Measure {
    fn of(
        left: (&str, &DataType),
        right: (&str, &DataType),
        width: &Width,
        strict: bool,
    ) -> Result<Self> {
        let domain = Domain::unify(&[left, right])?;
        check_width(left, width)?;
        check_width(right, width)?;
        let types = [left.1, right.1].map(look_through);
        if types.contains(&&DataType::Null) {
            return Ok(Self::Nothing);
        }
        match (domain, width) {
            (Domain::Exact(unit), _) => Ok(Self::Exact { unit, steps: steps(width, unit, strict) }),
            (_, Width::Number { digits, exponent })
                if types.iter().all(|plain| plain.is_floating() || plain.is_integer()) =>
            {
                // Reading text rounds to the nearest float; what is too large becomes infinite.
                match format!("{digits}e{exponent}").parse() {
                    Ok(width) if f64::is_finite(width) => Ok(Self::Float { width }),
                    _ => Err(Error::invalid(format!(
                        "the band of {} ({}) and {} ({}) is measured in Float64, which cannot \
                         hold its width {width}",
                        left.0, left.1, right.0, right.1
                    ))),
                }
            }
            _ => Err(Error::invalid(format!(
                "the difference of {} ({}) and {} ({}) would be rounded: cast one of them to the \
                 type of the other",
                left.0, left.1, right.0, right.1
            ))),
        }
    }
}

/// Whether a column has differences, and `width` is of their kind.
fn check_width((label, data_type): (&str, &DataType), width: &Width) -> Result<()> {
    use Family::{Duration, Instant, LocalTime, Null, Number, TimeOfDay};
    let expected = match (Family::of(data_type), width) {
        (Some(Null), _)
        | (Some(Number), Width::Number { .. })
        | (Some(LocalTime | Instant | TimeOfDay | Duration), Width::Nanoseconds(_)) => {
            return Ok(());
        }
        (Some(Number), Width::Nanoseconds(_)) => {
            format!("; its band expects a number for width, found the duration {width}")
        }
        (Some(LocalTime | Instant | TimeOfDay | Duration), Width::Number { .. }) => format!(
            "; its band expects a duration such as '10s' for width, found the number {width}"
        ),
        _ => ", which has no difference; a band expects a number, date, time, timestamp or \
              duration"
            .to_owned(),
    };
    Err(Error::invalid(format!("{label} has type {data_type}{expected}")))
}

/// The greatest whole number of units within `width`: differences are whole numbers of units.
fn steps(width: &Width, unit: Unit, strict: bool) -> Option<BigInt> {
    let ten = |exponent: i32| BigUint::from(10_u8).pow(exponent.unsigned_abs());
    let (units, per) = match (width, unit) {
        (Width::Number { digits, exponent }, Unit::Decimal(scale)) => {
            match exponent.saturating_add(scale.into()) {
                exponent @ 0.. => (digits * ten(exponent), BigUint::from(1_u8)),
                exponent => (digits.clone(), ten(exponent)),
            }
        }
        (Width::Nanoseconds(count), Unit::Time(unit)) => {
            let units = BigUint::from(*count) * per_second(unit).unsigned_abs();
            (units, BigUint::from(per_second(arrow_schema::TimeUnit::Nanosecond).unsigned_abs()))
        }
        // Refused by `check_width`.
        _ => return None,
    };
    let (whole, rest) = (&units / &per, &units % &per);
    let whole = BigInt::from(whole) - i32::from(strict && rest == BigUint::ZERO);
    (whole >= BigInt::ZERO).then_some(whole)
}

#[cfg(test)]
mod tests {
    use arrow_schema::TimeUnit;

    use super::*;

    #[test]
    fn widths_are_whole_units() {
        let cases = [
            ("5", Unit::Decimal(0), false, Some(5)),
            ("5", Unit::Decimal(0), true, Some(4)),
            ("0", Unit::Decimal(0), false, Some(0)),
            ("0", Unit::Decimal(0), true, None),
            ("0.5", Unit::Decimal(0), false, Some(0)),
            ("0.5", Unit::Decimal(0), true, Some(0)),
            ("2.5", Unit::Decimal(1), true, Some(24)),
            ("2.55", Unit::Decimal(1), true, Some(25)),
            ("250", Unit::Decimal(-2), false, Some(2)),
            ("1e3", Unit::Decimal(2), false, Some(100_000)),
            ("1500ns", Unit::Time(TimeUnit::Microsecond), false, Some(1)),
            ("1500ns", Unit::Time(TimeUnit::Microsecond), true, Some(1)),
            ("2000ns", Unit::Time(TimeUnit::Microsecond), true, Some(1)),
            ("7ns", Unit::Time(TimeUnit::Nanosecond), false, Some(7)),
            ("0ns", Unit::Time(TimeUnit::Second), true, None),
        ];
        for (text, unit, strict, expected) in cases {
            let found = steps(&text.parse().unwrap(), unit, strict);
            assert_eq!(found, expected.map(BigInt::from), "{text} {unit:?} {strict}");
        }
    }
}
