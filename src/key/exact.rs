//! Integers, decimals, dates, times and durations: whole multiples of a common unit.
//!
//! A value is its stored integer times the column's [`Factor`]. Whatever fits 64 or 128 bits is
//! multiplied modulo 2^64 or 2^128, which is exact because the product is known to fit; the rest
//! is ranked by its decimal digits.

use arrow_array::cast::AsArray;
use arrow_buffer::{NullBuffer, i256};
use arrow_schema::DataType;

use super::domain::{Factor, Unit};
use super::plain::{PlainColumn, gather, leaves};
use super::position::Reading;
use super::{Encoded, bytes, digits};
use crate::error::Result;

/// A stored integer of any width.
pub(super) trait Integer: Copy + PartialOrd {
    /// Least and greatest value of a type of up to 64 bits.
    const BOUNDS: Option<(i128, i128)>;
    /// The value modulo 2^64.
    fn low64(self) -> u64;
    /// The value modulo 2^128.
    fn low128(self) -> u128;
    /// The value, if it fits.
    fn to_i128(self) -> Option<i128>;
    /// The value.
    fn wide(self) -> i256;
    /// The value modulo two to the width of the type.
    fn wrapping_from(value: i256) -> Self;
}

macro_rules! narrow_integer {
    ($($native:ty),*) => {$(
        impl Integer for $native {
            const BOUNDS: Option<(i128, i128)> =
                Some((<$native>::MIN as i128, <$native>::MAX as i128));
            fn low64(self) -> u64 {
                self as u64
            }
            fn low128(self) -> u128 {
                self as u128
            }
            fn to_i128(self) -> Option<i128> {
                Some(self as i128)
            }
            fn wide(self) -> i256 {
                i256::from_i128(self as i128)
            }
            fn wrapping_from(value: i256) -> Self {
                value.low64() as Self
            }
        }
    )*};
}

narrow_integer!(i8, i16, i32, i64, u8, u16, u32, u64);

impl Integer for i128 {
    const BOUNDS: Option<(i128, i128)> = None;
    fn low64(self) -> u64 {
        self as u64
    }
    fn low128(self) -> u128 {
        self as u128
    }
    fn to_i128(self) -> Option<i128> {
        Some(self)
    }
    fn wide(self) -> i256 {
        i256::from_i128(self)
    }
    fn wrapping_from(value: i256) -> Self {
        value.low128() as Self
    }
}

impl Integer for i256 {
    const BOUNDS: Option<(i128, i128)> = None;
    fn low64(self) -> u64 {
        self.low128() as u64
    }
    fn low128(self) -> u128 {
        self.to_parts().0
    }
    fn to_i128(self) -> Option<i128> {
        self.to_i128()
    }
    fn wide(self) -> i256 {
        self
    }
    fn wrapping_from(value: i256) -> Self {
        value
    }
}

/// Runs `$body` with `$values` bound to the slice of integers that `$array` stores.
macro_rules! with_integers {
    ($array:expr, $values:ident => $body:expr) => {{
        use arrow_array::types::*;
        use arrow_schema::DataType::*;
        use arrow_schema::{IntervalUnit, TimeUnit};
        macro_rules! typed {
            ($arrow_type:ty) => {{
                let $values: &[_] = $array.as_primitive::<$arrow_type>().values();
                $body
            }};
        }
        match $array.data_type() {
            Int8 => typed!(Int8Type),
            Int16 => typed!(Int16Type),
            Int32 => typed!(Int32Type),
            Int64 => typed!(Int64Type),
            UInt8 => typed!(UInt8Type),
            UInt16 => typed!(UInt16Type),
            UInt32 => typed!(UInt32Type),
            UInt64 => typed!(UInt64Type),
            Decimal32(..) => typed!(Decimal32Type),
            Decimal64(..) => typed!(Decimal64Type),
            Decimal128(..) => typed!(Decimal128Type),
            Decimal256(..) => typed!(Decimal256Type),
            Date32 => typed!(Date32Type),
            Date64 => typed!(Date64Type),
            Timestamp(TimeUnit::Second, _) => typed!(TimestampSecondType),
            Timestamp(TimeUnit::Millisecond, _) => typed!(TimestampMillisecondType),
            Timestamp(TimeUnit::Microsecond, _) => typed!(TimestampMicrosecondType),
            Timestamp(TimeUnit::Nanosecond, _) => typed!(TimestampNanosecondType),
            Time32(TimeUnit::Second) => typed!(Time32SecondType),
            Time32(TimeUnit::Millisecond) => typed!(Time32MillisecondType),
            Time64(TimeUnit::Microsecond) => typed!(Time64MicrosecondType),
            Time64(TimeUnit::Nanosecond) => typed!(Time64NanosecondType),
            Duration(TimeUnit::Second) => typed!(DurationSecondType),
            Duration(TimeUnit::Millisecond) => typed!(DurationMillisecondType),
            Duration(TimeUnit::Microsecond) => typed!(DurationMicrosecondType),
            Duration(TimeUnit::Nanosecond) => typed!(DurationNanosecondType),
            Interval(IntervalUnit::YearMonth) => typed!(IntervalYearMonthType),
            other => return Err($crate::key::unexpected(other)),
        }
    }};
}
pub(super) use with_integers;

/// Turns a two's complement number into an unsigned one of the same order.
const SIGN_64: u64 = 1 << 63;
const SIGN_128: u128 = 1 << 127;

pub(super) fn encode(columns: &[PlainColumn], unit: Unit) -> Result<Encoded> {
    let fits = match Width::of(declared_span(columns, unit)?) {
        Some(width @ (Width::Signed64 | Width::Unsigned64)) => Some(width),
        _ => Width::of(measured_span(columns, unit)?),
    };
    match fits {
        Some(Width::Signed64) => encode64(columns, unit, SIGN_64),
        Some(Width::Unsigned64) => encode64(columns, unit, 0),
        Some(Width::Signed128) => encode128(columns, unit),
        None => bytes::encode(&digits::of_columns(columns)?),
    }
}

fn encode64(columns: &[PlainColumn], unit: Unit, flip: u64) -> Result<Encoded> {
    let keys = gather(columns, |array, out: &mut Vec<u64>| {
        if *array.data_type() == DataType::Boolean {
            out.extend(array.as_boolean().values().iter().map(|value| u64::from(value) ^ flip));
            return Ok(());
        }
        match unit.factor(array.data_type()).low as u64 {
            1 => with_integers!(array, values => {
                out.extend(values.iter().map(|value| value.low64() ^ flip))
            }),
            factor => with_integers!(array, values => {
                out.extend(values.iter().map(|value| value.low64().wrapping_mul(factor) ^ flip))
            }),
        }
        Ok(())
    })?;
    let reading = if flip == 0 { Reading::unsigned(unit) } else { Reading::signed(unit) };
    Ok(Encoded::U64(keys, reading))
}

fn encode128(columns: &[PlainColumn], unit: Unit) -> Result<Encoded> {
    let keys = gather(columns, |array, out| {
        let factor = unit.factor(array.data_type()).low;
        with_integers!(array, values => {
            out.extend(values.iter().map(|value| value.low128().wrapping_mul(factor) ^ SIGN_128))
        });
        Ok(())
    })?;
    Ok(Encoded::U128(keys, Reading::signed(unit)))
}

#[derive(Clone, Copy)]
enum Width {
    Signed64,
    Unsigned64,
    Signed128,
}

impl Width {
    /// The narrowest one; `None` if 128 bits are too few.
    fn of(span: Option<Span>) -> Option<Self> {
        let Span { least, greatest } = span?;
        Some(if least >= i64::MIN.into() && greatest <= i64::MAX.into() {
            Self::Signed64
        } else if least >= 0 && greatest <= u64::MAX.into() {
            Self::Unsigned64
        } else {
            Self::Signed128
        })
    }
}

/// What values lie between, in units. Always contains zero, which spares a case for no values.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub least: i128,
    pub greatest: i128,
}

impl Span {
    const ZERO: Self = Self { least: 0, greatest: 0 };

    fn include(self, value: i128, factor: Factor) -> Option<Self> {
        let value = match value {
            0 => 0,
            _ => value.checked_mul(factor.exact?)?,
        };
        Some(Self { least: self.least.min(value), greatest: self.greatest.max(value) })
    }
}

/// What the columns' types allow; `None` if that may exceed 128 bits.
fn declared_span(columns: &[PlainColumn], unit: Unit) -> Result<Option<Span>> {
    let mut span = Span::ZERO;
    for array in leaves(columns) {
        let bounds = match array.data_type() {
            DataType::Boolean => Some((0, 1)),
            _ => with_integers!(array, values => bounds_of(values)),
        };
        let factor = unit.factor(array.data_type());
        let wider = bounds
            .and_then(|(least, greatest)| span.include(least, factor)?.include(greatest, factor));
        match wider {
            Some(wider) => span = wider,
            None => return Ok(None),
        }
    }
    Ok(Some(span))
}

fn bounds_of<T: Integer>(_: &[T]) -> Option<(i128, i128)> {
    T::BOUNDS
}

/// What the values of the columns lie between, floats left out; `None` if that exceeds 128 bits.
pub(super) fn measured_span(columns: &[PlainColumn], unit: Unit) -> Result<Option<Span>> {
    let mut span = Span::ZERO;
    for array in leaves(columns).filter(|array| !array.data_type().is_floating()) {
        let factor = unit.factor(array.data_type());
        let wider = with_integers!(array, values => match extremes(values, array.nulls()) {
            None => Some(span),
            Some((least, greatest)) => least
                .to_i128()
                .and_then(|least| span.include(least, factor))
                .and_then(|span| span.include(greatest.to_i128()?, factor)),
        });
        match wider {
            Some(wider) => span = wider,
            None => return Ok(None),
        }
    }
    Ok(Some(span))
}

/// Least and greatest of the values that are not null; what is under a null may be anything.
pub(super) fn extremes<T: Integer>(values: &[T], nulls: Option<&NullBuffer>) -> Option<(T, T)> {
    let Some(nulls) = nulls else { return extremes_of(values) };
    let runs = nulls.valid_slices().filter_map(|(start, end)| extremes_of(&values[start..end]));
    runs.reduce(|(least, greatest), (low, high)| {
        (if low < least { low } else { least }, if high > greatest { high } else { greatest })
    })
}

fn extremes_of<T: Integer>(values: &[T]) -> Option<(T, T)> {
    let (&first, rest) = values.split_first()?;
    Some(rest.iter().fold((first, first), |(least, greatest), &value| {
        (if value < least { value } else { least }, if value > greatest { value } else { greatest })
    }))
}
