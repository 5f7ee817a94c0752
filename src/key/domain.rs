//! Type unification: which columns compare with each other, and in which common domain.

use arrow_schema::{DataType, IntervalUnit, TimeUnit};

use crate::error::{Error, Result};

/// Where columns of different types meet without loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Domain {
    /// Only columns of nulls.
    Null,
    /// Whole multiples of a unit.
    Exact(Unit),
    /// 64-bit floats, which hold the narrower ones.
    Float,
    /// Floats against whole multiples of a unit that is one or a fraction of it.
    Mixed(Unit),
    /// Byte strings.
    Bytes,
}

/// What an exact value of 1 stands for: the finest of the columns' own units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// 10^-scale.
    Decimal(i8),
    Time(TimeUnit),
}

/// How many units one step of a column is. It may exceed 128 bits, and then only zero fits them;
/// `low` is right modulo 2^128 in any case.
#[derive(Clone, Copy, Debug)]
pub(super) struct Factor {
    pub exact: Option<i128>,
    pub low: u128,
}

/// Columns compare within their family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Null,
    Boolean,
    Number,
    LocalTime,
    Instant,
    TimeOfDay,
    Duration,
    Months,
    String,
    Binary,
}

impl Domain {
    /// The common domain of these columns, given as label and type.
    pub fn unify(columns: &[(&str, &DataType)]) -> Result<Self> {
        let mut first = None;
        for &(label, data_type) in columns {
            let family = Family::of(data_type).ok_or_else(|| no_order(label, data_type))?;
            match first {
                _ if family == Family::Null => {}
                None => first = Some((label, data_type, family)),
                Some((_, _, expected)) if expected == family => {}
                Some(expected) => return Err(mismatch(expected, (label, data_type, family))),
            }
        }
        let Some((_, _, family)) = first else { return Ok(Self::Null) };

        let types: Vec<_> = columns.iter().map(|(_, data_type)| look_through(data_type)).collect();
        Ok(match family {
            Family::Null => Self::Null,
            Family::Boolean | Family::Months => Self::Exact(Unit::Decimal(0)),
            Family::Number => Self::of_numbers(&types),
            Family::LocalTime | Family::Instant | Family::TimeOfDay | Family::Duration => {
                let finest = types.iter().filter_map(|data_type| time_unit(data_type)).max();
                Self::Exact(Unit::Time(finest.unwrap_or(TimeUnit::Second)))
            }
            Family::String | Family::Binary => Self::Bytes,
        })
    }

    fn of_numbers(types: &[&DataType]) -> Self {
        let floats = types.iter().any(|data_type| data_type.is_floating());
        let scale = types.iter().filter_map(|data_type| decimal_scale(data_type)).max();
        match (floats, scale) {
            (false, scale) => Self::Exact(Unit::Decimal(scale.unwrap_or(0))),
            (true, None) => Self::Float,
            // Floats are cut into whole units, so the unit should be no coarser than one.
            (true, Some(scale)) => Self::Mixed(Unit::Decimal(scale.max(0))),
        }
    }
}

impl Unit {
    /// Units per step of a column of this type.
    pub fn factor(self, data_type: &DataType) -> Factor {
        match self {
            Self::Decimal(scale) => {
                let steps = i32::from(scale) - i32::from(decimal_scale(data_type).unwrap_or(scale));
                Factor::power_of_ten(steps.unsigned_abs())
            }
            Self::Time(unit) => {
                let days = if *data_type == DataType::Date32 { 86_400 } else { 1 };
                let from = time_unit(data_type).unwrap_or(unit);
                let factor = days * (per_second(unit) / per_second(from));
                Factor { exact: Some(factor), low: factor as u128 }
            }
        }
    }
}

impl Factor {
    fn power_of_ten(exponent: u32) -> Self {
        Self { exact: 10i128.checked_pow(exponent), low: 10u128.wrapping_pow(exponent) }
    }
}

impl Family {
    fn of(data_type: &DataType) -> Option<Self> {
        use DataType::*;
        Some(match look_through(data_type) {
            Null => Self::Null,
            Boolean => Self::Boolean,
            Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 => Self::Number,
            Float16 | Float32 | Float64 => Self::Number,
            Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..) => Self::Number,
            Date32 | Date64 | Timestamp(_, None) => Self::LocalTime,
            Timestamp(_, Some(_)) => Self::Instant,
            Time32(TimeUnit::Second | TimeUnit::Millisecond) => Self::TimeOfDay,
            Time64(TimeUnit::Microsecond | TimeUnit::Nanosecond) => Self::TimeOfDay,
            Duration(_) => Self::Duration,
            Interval(IntervalUnit::YearMonth) => Self::Months,
            Utf8 | LargeUtf8 | Utf8View => Self::String,
            Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => Self::Binary,
            _ => return None,
        })
    }
}

/// The type of the values behind dictionaries and run-end encoding.
pub(super) fn look_through(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => look_through(values),
        DataType::RunEndEncoded(_, values) => look_through(values.data_type()),
        plain => plain,
    }
}

/// The power of ten that a number of this type is divided by; `None` for floats.
pub(super) fn decimal_scale(data_type: &DataType) -> Option<i8> {
    use DataType::*;
    match data_type {
        Decimal32(_, scale) | Decimal64(_, scale) => Some(*scale),
        Decimal128(_, scale) | Decimal256(_, scale) => Some(*scale),
        _ if data_type.is_integer() => Some(0),
        _ => None,
    }
}

fn time_unit(data_type: &DataType) -> Option<TimeUnit> {
    use DataType::*;
    match data_type {
        Timestamp(unit, _) | Time32(unit) | Time64(unit) | Duration(unit) => Some(*unit),
        Date32 => Some(TimeUnit::Second),
        Date64 => Some(TimeUnit::Millisecond),
        _ => None,
    }
}

fn per_second(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

fn no_order(label: &str, data_type: &DataType) -> Error {
    Error::invalid(format!(
        "{label} has type {data_type}, which has no order; expected a number, boolean, date, \
         time, timestamp, duration, year-month interval, string or binary, plain, \
         dictionary-encoded or run-end encoded"
    ))
}

fn mismatch(left: (&str, &DataType, Family), right: (&str, &DataType, Family)) -> Error {
    let why = match (left.2, right.2) {
        (Family::LocalTime, Family::Instant) | (Family::Instant, Family::LocalTime) => {
            ": only one of them has a time zone"
        }
        _ => "",
    };
    Error::invalid(format!(
        "cannot compare {} ({}) with {} ({}){why}",
        left.0, left.1, right.0, right.1
    ))
}
