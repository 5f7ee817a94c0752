//! Ends of bands against exact arithmetic, and against IEEE arithmetic for floats: for every pair of
//! types that have a difference, and every layout, a value lies between the ends exactly if it lies
//! within the band.

mod support;

use std::sync::Arc;

use arrow_array::*;
use arrow_buffer::i256;
use arrow_schema::{DataType, TimeUnit};
use dovetail::Error;
use dovetail::key::{Column, KeyColumn, Keys, band_ends, check_band, ordered_keys};
use dovetail::predicate::Width;
use num_bigint::{BigInt, BigUint};
use num_rational::Ratio;
use proptest::prelude::*;
use support::columns::{magnitude, recipe};
use support::exact::{self, Value};
use support::property::check;

type Exact = Ratio<BigInt>;

/// Types with differences, family by family.
fn families() -> Vec<Vec<DataType>> {
    use DataType::*;
    let units =
        [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond];
    let zones = ["UTC", "+02:00", "Europe/Berlin", "America/New_York"];
    let mut local: Vec<_> = units.map(|unit| Timestamp(unit, None)).to_vec();
    local.extend([Date32, Date64]);
    vec![
        vec![
            Int8,
            Int16,
            Int32,
            Int64,
            UInt8,
            UInt16,
            UInt32,
            UInt64,
            Decimal32(9, 2),
            Decimal32(9, -1),
            Decimal64(18, 18),
            Decimal128(38, 10),
            Decimal128(38, -128),
            Decimal256(76, 0),
            Decimal256(76, 76),
        ],
        vec![Float16, Float32, Float64, Int8, Int64, UInt64],
        local,
        units.iter().zip(zones).map(|(&u, zone)| Timestamp(u, Some(zone.into()))).collect(),
        vec![
            Time32(TimeUnit::Second),
            Time32(TimeUnit::Millisecond),
            Time64(TimeUnit::Microsecond),
            Time64(TimeUnit::Nanosecond),
        ],
        units.map(Duration).to_vec(),
    ]
}

fn column(label: &str, chunks: Vec<ArrayRef>) -> Column {
    Column::new(label, chunks[0].data_type().clone(), chunks)
}

/// What a pair is asked, and what it should answer.
enum Oracle {
    Exact(Exact),
    Float(f64),
}

impl Oracle {
    fn within(&self, left: &Value, right: &Value, strict: bool) -> bool {
        match self {
            Self::Exact(width) => {
                let (Value::Number(a), Value::Number(b)) = (left, right) else { return false };
                let difference = if a > b { a - b } else { b - a };
                if strict { difference < *width } else { difference <= *width }
            }
            Self::Float(width) => {
                if *left == Value::Null || *right == Value::Null {
                    return false;
                }
                let difference = (float(left).unwrap() - float(right).unwrap()).abs();
                if strict { difference < *width } else { difference <= *width }
            }
        }
    }
}

/// The float that a value is, if it is one.
fn float(value: &Value) -> Option<f64> {
    let number = match value {
        Value::NaN => return Some(f64::NAN),
        Value::Infinity => return Some(f64::INFINITY),
        Value::NegativeInfinity => return Some(f64::NEG_INFINITY),
        Value::Number(number) => number,
        Value::Null | Value::Bytes(_) => panic!("{value:?} is no number"),
    };
    // mantissa * 2^exponent
    let mut mantissa = number.numer().clone();
    let mut exponent = 1 - number.denom().bits() as i32;
    while mantissa != BigInt::ZERO && &mantissa % 2 == BigInt::ZERO {
        mantissa /= 2;
        exponent += 1;
    }
    let mantissa = i64::try_from(mantissa).ok().filter(|m| m.unsigned_abs() < 1 << 53)?;
    // In two steps, neither of which rounds: the least float is half of nothing.
    let first = exponent / 2;
    Some(mantissa as f64 * 2f64.powi(first) * 2f64.powi(exponent - first))
}

fn between(low: &KeyColumn, high: &KeyColumn, i: usize, right: &KeyColumn, j: usize) -> bool {
    let there = !low.is_null(i) && !high.is_null(i) && !right.is_null(j);
    there
        && match (&low.keys, &high.keys, &right.keys) {
            (Keys::U64(l), Keys::U64(h), Keys::U64(r)) => (l[i]..=h[i]).contains(&r[j]),
            (Keys::U128(l), Keys::U128(h), Keys::U128(r)) => (l[i]..=h[i]).contains(&r[j]),
            _ => panic!("keys of different widths"),
        }
}

fn is_narrow(column: &KeyColumn) -> bool {
    matches!(column.keys, Keys::U64(_))
}

/// Panics unless the ends say what the oracle says.
fn assert_band(left: &Column, right: &Column, width: &Width, strict: bool, oracle: &Oracle) {
    let lefts = exact::values(&left.chunks);
    let rights = exact::values(&right.chunks);
    let ends = band_ends(left, right, width, strict);
    let unequalled = |value: &Value| *value != Value::Null && float(value).is_none();
    if matches!(oracle, Oracle::Float(_)) && lefts.iter().chain(&rights).any(unequalled) {
        let Err(Error::Invalid(message)) = ends else { panic!("{left:?} {right:?}") };
        assert!(message.contains("no Float64 equals"), "{message}");
        return;
    }
    let [low, high] = ends.unwrap();
    let keys = ordered_keys(&[low, high, right.clone()]).unwrap();
    let [low, high, keys] = &keys[..] else { panic!() };
    // Beyond 128 bits keys are ranks, whose width says nothing.
    let is_256 = right.data_type.to_string().contains("Decimal256");
    if matches!(oracle, Oracle::Exact(_)) && !is_256 {
        let alone = ordered_keys(std::slice::from_ref(right)).unwrap();
        assert_eq!(is_narrow(keys), is_narrow(&alone[0]), "ends need no wider keys");
    }
    for (i, a) in lefts.iter().enumerate() {
        for (j, b) in rights.iter().enumerate() {
            let expected = oracle.within(a, b, strict);
            let found = between(low, high, i, keys, j);
            assert_eq!(found, expected, "{a:?} and {b:?}, {width}, {strict}: {left:?} {right:?}");
        }
    }
}

/// A width near the difference of two of the values, so that pairs lie at the ends of the band.
fn exact_width(lefts: &[Value], rights: &[Value], pick: usize, tweak: i64) -> Exact {
    let numbers = |values: &[Value]| {
        let number = |value: &Value| match value {
            Value::Number(number) => Some(number.clone()),
            _ => None,
        };
        values.iter().filter_map(number).collect::<Vec<_>>()
    };
    let (a, b) = (numbers(lefts), numbers(rights));
    let zero = Exact::from_integer(0.into());
    let one = |values: &[Exact], pick: usize| match values.len() {
        0 => zero.clone(),
        count => values[pick % count].clone(),
    };
    let difference = one(&a, pick) - one(&b, pick / 16);
    let tweak = Exact::new(tweak.into(), BigInt::from(10).pow(90));
    let width = if difference < zero { -difference } else { difference } + tweak;
    if width < zero { zero } else { width }
}

#[test]
fn oracle_bands_of_every_type_pair() {
    let families = families();
    for (family, types) in families.iter().enumerate() {
        let is_floating = |types: [&DataType; 2]| types.iter().any(|t| t.is_floating());
        for left in types {
            for right in types {
                if family == 1 && !is_floating([left, right]) {
                    continue;
                }
                let strategy =
                    (recipe(), recipe(), magnitude(), any::<usize>(), -1..2_i64, any::<bool>());
                check(48, strategy, |(a, b, magnitude, pick, tweak, strict)| {
                    let ours = column("left", a.chunks(left, magnitude));
                    let theirs = column("right", b.chunks(right, magnitude));
                    let lefts = exact::values(&ours.chunks);
                    let rights = exact::values(&theirs.chunks);
                    if family == 1 {
                        let (width, oracle) = float_width(&lefts, &rights, pick, tweak);
                        assert_band(&ours, &theirs, &width, strict, &oracle);
                        return;
                    }
                    let wanted = exact_width(&lefts, &rights, pick, tweak);
                    let (width, oracle) = if family == 0 {
                        // Whole at this scale: no type here has more decimals.
                        let digits = (wanted.clone() * BigInt::from(10).pow(90)).to_integer();
                        let digits = digits.to_biguint().unwrap();
                        (Width::Number { digits, exponent: -90 }, wanted)
                    } else {
                        let count = (wanted * BigInt::from(1_000_000_000)).to_integer();
                        let count = u64::try_from(count).unwrap_or(u64::MAX);
                        let seconds = Exact::new(count.into(), 1_000_000_000.into());
                        (Width::Nanoseconds(count), seconds)
                    };
                    assert_band(&ours, &theirs, &width, strict, &Oracle::Exact(oracle));
                });
            }
        }
    }
}

fn float_width(lefts: &[Value], rights: &[Value], pick: usize, tweak: i64) -> (Width, Oracle) {
    let finite = |values: &[Value], pick: usize| {
        let floats: Vec<f64> = values
            .iter()
            .filter(|value| **value != Value::Null)
            .filter_map(float)
            .filter(|f| f.is_finite())
            .collect();
        if floats.is_empty() { 0.5 } else { floats[pick % floats.len()] }
    };
    let difference = (finite(lefts, pick) - finite(rights, pick / 16)).abs().min(f64::MAX);
    let near = f64::from_bits(difference.to_bits().saturating_add_signed(tweak));
    let width = if near.is_finite() { near } else { f64::MAX };
    // The shortest text of a float reads back as that float.
    (format!("{width:e}").parse().unwrap(), Oracle::Float(width))
}

// ---- named cases ------------------------------------------------------------------------------

fn ints(values: &[i64]) -> Column {
    column("left column \"a\"", vec![Arc::new(Int64Array::from(values.to_vec()))])
}

fn floats(values: &[f64]) -> Column {
    column("floats", vec![Arc::new(Float64Array::from(values.to_vec()))])
}

fn width(text: &str) -> Width {
    text.parse().unwrap()
}

/// The pairs (left row, right row) within the band.
fn pairs(left: &Column, right: &Column, text: &str, strict: bool) -> Vec<(usize, usize)> {
    let [low, high] = band_ends(left, right, &width(text), strict).unwrap();
    let keys = ordered_keys(&[low, high, right.clone()]).unwrap();
    let all = (0..left.len()).flat_map(|i| (0..right.len()).map(move |j| (i, j)));
    all.filter(|&(i, j)| between(&keys[0], &keys[1], i, &keys[2], j)).collect()
}

#[test]
fn nothing_wraps_at_the_edges() {
    let (least, greatest) = (i64::MIN, i64::MAX);
    let edges = [least, least + 1, greatest - 1, greatest];
    let near = vec![(0, 0), (0, 1), (1, 0), (1, 1), (2, 2), (2, 3), (3, 2), (3, 3)];
    assert_eq!(pairs(&ints(&edges), &ints(&edges), "1", false), near);
    let everything = "18446744073709551615";
    assert_eq!(pairs(&ints(&edges), &ints(&edges), everything, false).len(), 16);
    assert_eq!(pairs(&ints(&edges), &ints(&edges), everything, true).len(), 14);
    assert_eq!(pairs(&ints(&edges), &ints(&edges), "1e75", true).len(), 16);
}

#[test]
fn times_of_different_units_meet_exactly() {
    let seconds = column("s", vec![Arc::new(TimestampSecondArray::from(vec![0, 1, i64::MAX]))]);
    let stamps = vec![0, 999_999_999, 1_000_000_001, 1_500_000_000, i64::MAX];
    let nanos = column("ns", vec![Arc::new(TimestampNanosecondArray::from(stamps))]);
    assert_eq!(pairs(&seconds, &nanos, "1ns", false), vec![(0, 0), (1, 1), (1, 2)]);
    assert_eq!(pairs(&seconds, &nanos, "1ns", true), vec![(0, 0)]);
    assert_eq!(pairs(&nanos, &seconds, "1ns", false), vec![(0, 0), (1, 1), (2, 1)]);
    let days = column("day", vec![Arc::new(Date32Array::from(vec![0, 1, i32::MAX]))]);
    assert_eq!(pairs(&seconds, &days, "86399000000000ns", false), vec![(0, 0), (1, 0), (1, 1)]);
    assert_eq!(pairs(&seconds, &days, "86399000000000ns", true), vec![(0, 0), (1, 0)]);
}

#[test]
fn decimals_beyond_128_bits() {
    let ten_to_76 = i256::from_i128(10).wrapping_pow(76);
    let wide = |values: Vec<i256>, scale| {
        let array = Decimal256Array::from(values).with_precision_and_scale(76, scale).unwrap();
        column("wide", vec![Arc::new(array)])
    };
    let nines = ten_to_76.wrapping_sub(i256::ONE);
    let large = wide(vec![nines, nines.wrapping_neg(), i256::ZERO], 0);
    let fine = wide(vec![nines, i256::ONE, i256::ZERO], 76);
    assert_eq!(pairs(&large, &fine, "1", false), vec![(2, 0), (2, 1), (2, 2)]);
    assert_eq!(pairs(&large, &large, "19999999999999999e60", false).len(), 7);
    let exactly = format!("{}", BigUint::from(10u8).pow(76) * 2u8 - 2u8);
    assert_eq!(pairs(&large, &large, &exactly, false).len(), 9);
    assert_eq!(pairs(&large, &large, &exactly, true).len(), 7);
}

#[test]
fn floats_are_subtracted_as_floats() {
    // 0.3 - 0.1 is 0.19999999999999998, 1.1 - 1.0 is 0.10000000000000009.
    assert_eq!(
        pairs(&floats(&[0.3, 1.1]), &floats(&[0.1, 1.0]), "0.2", true),
        vec![(0, 0), (1, 1)]
    );
    assert_eq!(pairs(&floats(&[1.1]), &floats(&[1.0]), "0.1", false), vec![]);
    // What is swallowed by rounding counts as not there.
    assert_eq!(pairs(&floats(&[1e16]), &floats(&[1e16 + 2.0, 0.4]), "1e16", false).len(), 2);
    let least = f64::from_bits(1);
    assert_eq!(pairs(&floats(&[least]), &floats(&[0.0, 2.0 * least]), "0", false), vec![]);
    assert_eq!(pairs(&floats(&[least]), &floats(&[0.0, -least]), "5e-324", false), vec![(0, 0)]);
    let wild = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX];
    assert_eq!(pairs(&floats(&wild), &floats(&wild), "1e308", false), vec![(3, 3)]);
}

#[test]
fn integers_are_subtracted_from_floats_where_that_is_exact() {
    let even = ints(&[1 << 53, (1 << 53) + 2, -3]);
    let near = floats(&[9_007_199_254_740_992.0, -2.5]);
    assert_eq!(pairs(&even, &near, "0.5", false), vec![(0, 0), (2, 1)]);
    assert_eq!(pairs(&near, &even, "2", false), vec![(0, 0), (0, 1), (1, 2)]);
    let odd = ints(&[1, (1 << 53) + 1]);
    for (left, right) in [(&odd, &near), (&near, &odd)] {
        let error = band_ends(left, right, &width("1"), false).unwrap_err().to_string();
        assert_eq!(
            error.split(',').next().unwrap(),
            "left column \"a\" (Int64) holds 9007199254740993"
        );
        assert!(error.contains("floats (Float64)") && error.contains("cast"), "{error}");
    }
}

#[test]
fn what_has_no_difference_is_refused() {
    use DataType::*;
    let stamp = Timestamp(TimeUnit::Second, None);
    let zoned = Timestamp(TimeUnit::Second, Some("UTC".into()));
    let cases = [
        (&Utf8, &Utf8, "1", "left column \"a\" has type Utf8, which has no difference"),
        (&Null, &Boolean, "1", "right column \"b\" has type Boolean, which has no difference"),
        (&Binary, &Null, "1", "left column \"a\" has type Binary, which has no difference"),
        (&Int64, &Int64, "10ns", "expects a number for width, found the duration 10ns"),
        (&stamp, &Date32, "5", "expects a duration such as '10s' for width, found the number 5"),
        (&stamp, &zoned, "10ns", "only one of them has a time zone"),
        (&Int64, &Utf8, "1", "cannot compare left column \"a\" (Int64)"),
        (&Float64, &Decimal128(9, 2), "1", "would be rounded: cast one of them"),
        (&Decimal32(9, 0), &Float16, "1", "would be rounded: cast one of them"),
        (&Float64, &Int8, "1e400", "Float64, which cannot hold its width 1e400"),
    ];
    for (left, right, text, expected) in cases {
        let checked =
            check_band(("left column \"a\"", left), ("right column \"b\"", right), &width(text));
        let Err(Error::Invalid(message)) = checked else { panic!("{left} {right}: {checked:?}") };
        assert!(message.contains(expected), "{message}");
    }
    check_band(("a", &Int64), ("b", &Decimal256(76, 5)), &width("1e400")).unwrap();
    check_band(("a", &Null), ("b", &Null), &width("1")).unwrap();
}

#[test]
fn columns_of_nulls_match_nothing() {
    let nulls = column("nulls", vec![Arc::new(NullArray::new(2))]);
    assert_eq!(pairs(&nulls, &ints(&[1]), "1", false), vec![]);
    assert_eq!(pairs(&ints(&[1]), &nulls, "1", false), vec![]);
    let none = Column::new("none", DataType::Int64, vec![]);
    assert_eq!(pairs(&ints(&[1]), &none, "1", false), vec![]);
    assert_eq!(pairs(&none, &ints(&[1]), "1", false), vec![]);
}
