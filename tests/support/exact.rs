//! The oracle for keys: what every value of an Arrow array is, as an exact number or as bytes.
//!
//! Values are read one by one through Arrow's typed accessors and compared as rational numbers of
//! unlimited precision. Nothing here is shared with the crate.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::i256;
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use num_bigint::BigInt;
use num_rational::Ratio;

/// A value, ordered as keys must be. Times are in seconds, months in months.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    Null,
    NegativeInfinity,
    Number(Ratio<BigInt>),
    Infinity,
    NaN,
    Bytes(Vec<u8>),
}

/// The values of a column's chunks, one after the other.
pub fn values(chunks: &[ArrayRef]) -> Vec<Value> {
    chunks.iter().flat_map(|chunk| (0..chunk.len()).map(|row| value(chunk, row))).collect()
}

fn value(array: &dyn Array, row: usize) -> Value {
    use DataType::*;
    if array.is_null(row) {
        return Value::Null;
    }
    macro_rules! stored {
        ($arrow_type:ty) => {
            array.as_primitive::<$arrow_type>().value(row)
        };
    }
    match array.data_type() {
        Null => Value::Null,
        Boolean => whole(u8::from(array.as_boolean().value(row))),
        Int8 => whole(stored!(Int8Type)),
        Int16 => whole(stored!(Int16Type)),
        Int32 => whole(stored!(Int32Type)),
        Int64 => whole(stored!(Int64Type)),
        UInt8 => whole(stored!(UInt8Type)),
        UInt16 => whole(stored!(UInt16Type)),
        UInt32 => whole(stored!(UInt32Type)),
        UInt64 => whole(stored!(UInt64Type)),
        Float16 => float(stored!(Float16Type).to_f64()),
        Float32 => float(f64::from(stored!(Float32Type))),
        Float64 => float(stored!(Float64Type)),
        Decimal32(_, scale) => decimal(stored!(Decimal32Type), *scale),
        Decimal64(_, scale) => decimal(stored!(Decimal64Type), *scale),
        Decimal128(_, scale) => decimal(stored!(Decimal128Type), *scale),
        Decimal256(_, scale) => decimal(big(stored!(Decimal256Type)), *scale),
        Date32 => fraction(BigInt::from(stored!(Date32Type)) * 86_400, 1),
        Date64 => fraction(stored!(Date64Type), 1_000),
        Timestamp(TimeUnit::Second, _) => whole(stored!(TimestampSecondType)),
        Timestamp(TimeUnit::Millisecond, _) => fraction(stored!(TimestampMillisecondType), 1_000),
        Timestamp(TimeUnit::Microsecond, _) => {
            fraction(stored!(TimestampMicrosecondType), 1_000_000)
        }
        Timestamp(TimeUnit::Nanosecond, _) => {
            fraction(stored!(TimestampNanosecondType), 1_000_000_000)
        }
        Time32(TimeUnit::Second) => whole(stored!(Time32SecondType)),
        Time32(TimeUnit::Millisecond) => fraction(stored!(Time32MillisecondType), 1_000),
        Time64(TimeUnit::Microsecond) => fraction(stored!(Time64MicrosecondType), 1_000_000),
        Time64(TimeUnit::Nanosecond) => fraction(stored!(Time64NanosecondType), 1_000_000_000),
        Duration(TimeUnit::Second) => whole(stored!(DurationSecondType)),
        Duration(TimeUnit::Millisecond) => fraction(stored!(DurationMillisecondType), 1_000),
        Duration(TimeUnit::Microsecond) => fraction(stored!(DurationMicrosecondType), 1_000_000),
        Duration(TimeUnit::Nanosecond) => fraction(stored!(DurationNanosecondType), 1_000_000_000),
        Interval(IntervalUnit::YearMonth) => whole(stored!(IntervalYearMonthType)),
        Utf8 => bytes(array.as_string::<i32>().value(row)),
        LargeUtf8 => bytes(array.as_string::<i64>().value(row)),
        Utf8View => bytes(array.as_string_view().value(row)),
        Binary => bytes(array.as_binary::<i32>().value(row)),
        LargeBinary => bytes(array.as_binary::<i64>().value(row)),
        BinaryView => bytes(array.as_binary_view().value(row)),
        FixedSizeBinary(_) => bytes(array.as_fixed_size_binary().value(row)),
        Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            value(dictionary.values(), dictionary.normalized_keys()[row])
        }
        RunEndEncoded(..) => {
            let runs = array.as_run::<Int32Type>();
            let at = row + runs.run_ends().offset();
            let run = runs.run_ends().values().iter().position(|&end| end as usize > at).unwrap();
            value(runs.values(), run)
        }
        other => panic!("no oracle for {other}"),
    }
}

fn bytes(value: impl AsRef<[u8]>) -> Value {
    Value::Bytes(value.as_ref().to_vec())
}

fn whole(value: impl Into<BigInt>) -> Value {
    fraction(value, 1)
}

fn fraction(value: impl Into<BigInt>, per_one: i64) -> Value {
    Value::Number(Ratio::new(value.into(), per_one.into()))
}

fn decimal(value: impl Into<BigInt>, scale: i8) -> Value {
    let power = BigInt::from(10).pow(scale.unsigned_abs().into());
    Value::Number(match scale < 0 {
        true => Ratio::from_integer(value.into() * power),
        false => Ratio::new(value.into(), power),
    })
}

fn big(value: i256) -> BigInt {
    BigInt::from_signed_bytes_le(&value.to_le_bytes())
}

/// The value of a float.
pub fn float(value: f64) -> Value {
    if value.is_nan() {
        return Value::NaN;
    }
    if value.is_infinite() {
        return if value > 0.0 { Value::Infinity } else { Value::NegativeInfinity };
    }
    // Scaling by two is exact in this direction; 1074 halvings make the least float a whole one.
    let (mut value, mut halvings) = (value, 0);
    while value.fract() != 0.0 {
        value *= 2.0;
        halvings += 1;
    }
    let mut doublings = 0;
    while value.abs() >= (1u64 << 53) as f64 {
        value /= 2.0;
        doublings += 1;
    }
    let numerator = BigInt::from(value as i64) * BigInt::from(2).pow(doublings);
    Value::Number(Ratio::new(numerator, BigInt::from(2).pow(halvings)))
}
