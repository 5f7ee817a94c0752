//! Numbers of any size as byte strings of the same order: the slow path that always works.
//!
//! A number is ±0.d₁d₂…dₙ · 10^e with d₁ and dₙ not zero, which is unique. Its bytes are a class,
//! the exponent, and the digits; those of negative numbers are inverted and closed by 0xff, so
//! that more digits are less.

use std::fmt::Write;
use std::sync::Arc;

use arrow_array::builder::LargeBinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};

use super::domain::decimal_scale;
use super::exact::with_integers;
use super::float;
use super::plain::PlainColumn;
use crate::error::Result;

const NEGATIVE_INFINITY: u8 = 0;
const NEGATIVE: u8 = 1;
const ZERO: u8 = 2;
const POSITIVE: u8 = 3;
const INFINITY: u8 = 4;
const NAN: u8 = 5;

/// No 64-bit float has more significant digits.
const FLOAT_DIGITS: usize = 767;

/// The columns, which are of the family of numbers, with every number as its digits.
pub(super) fn of_columns(columns: &[PlainColumn]) -> Result<Vec<PlainColumn>> {
    columns.iter().map(|column| column.map_values(of_array)).collect()
}

fn of_array(array: &dyn Array) -> Result<ArrayRef> {
    if array.data_type().is_floating() {
        let mut values = Vec::with_capacity(array.len());
        float::append(array, |value| value, &mut values)?;
        return Ok(build(array, &values, push_float));
    }
    let exponent = -i32::from(decimal_scale(array.data_type()).unwrap_or(0));
    Ok(with_integers!(array, values => build(array, values, |value, text, key| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{value}");
        push_number(text, exponent, key);
    })))
}

/// `push` appends the key of a value, and may use the empty string it is given for its text.
fn build<T: Copy>(
    array: &dyn Array,
    values: &[T],
    push: impl Fn(T, &mut String, &mut Vec<u8>),
) -> ArrayRef {
    let mut builder = LargeBinaryBuilder::with_capacity(values.len(), 0);
    let (mut text, mut key) = (String::new(), Vec::new());
    for (row, &value) in values.iter().enumerate() {
        if array.is_null(row) {
            builder.append_null();
            continue;
        }
        text.clear();
        key.clear();
        push(value, &mut text, &mut key);
        builder.append_value(&key);
    }
    Arc::new(builder.finish())
}

fn push_float(value: f64, text: &mut String, key: &mut Vec<u8>) {
    if value.is_nan() {
        key.push(NAN);
    } else if value == f64::INFINITY {
        key.push(INFINITY);
    } else if value == f64::NEG_INFINITY {
        key.push(NEGATIVE_INFINITY);
    } else {
        // Formatting with a precision rounds correctly, and with this one nothing is left to round.
        let _ = write!(text, "{value:.*e}", FLOAT_DIGITS - 1);
        let (number, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let number: String = number.chars().filter(|&c| c != '.').collect();
        push_number(&number, exponent - (FLOAT_DIGITS as i32 - 1), key);
    }
}

/// Appends the key of the integer `text` times 10^`exponent`.
fn push_number(text: &str, exponent: i32, key: &mut Vec<u8>) {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return key.push(ZERO);
    }
    // Exponents of ten stay within ±2000, so 16 bits hold them.
    let exponent = (exponent + digits.len() as i32 + (1 << 15)) as u16;
    let digits = digits.trim_end_matches('0').as_bytes();
    if negative {
        key.push(NEGATIVE);
        key.extend((!exponent).to_be_bytes());
        key.extend(digits.iter().map(|digit| !digit));
        key.push(0xff);
    } else {
        key.push(POSITIVE);
        key.extend(exponent.to_be_bytes());
        key.extend(digits);
    }
}
