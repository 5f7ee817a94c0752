//! Ends of bands of floats: the outermost floats whose rounded difference is within the width.
//!
//! A rounded difference `fl(b - a)` only grows with `b`, so those within the band are an interval.
//! Its end is near `a + w`, mostly the float next to it or the sum itself; but where `a` and `w`
//! cancel out, many floats round to the same difference, so the end is searched for, in steps that
//! double, and then by bisection.

use std::slice;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, Float64Array};

use super::super::Column;
use super::super::domain::look_through;
use super::super::exact::{Integer, with_integers};
use super::super::float::{append, key_value, order_key};
use super::super::plain::{PlainColumn, gather};
use crate::error::{Error, Result};

pub(super) fn ends(
    left: &Column,
    right: &Column,
    width: f64,
    strict: bool,
) -> Result<[ArrayRef; 2]> {
    let values = floats(left, right)?;
    // The right column is compared as it is: only that floats can hold it is to be found out.
    floats(right, left)?;
    let within = |difference: f64| if strict { difference < width } else { difference <= width };
    let around = |value: Option<f64>| {
        let value = value.filter(|value| value.is_finite() && within(0.0))?;
        Some([-farthest(-value, width, within), farthest(value, width, within)])
    };
    let ends: Vec<_> = values.into_iter().map(around).collect();
    let end = |which: usize| -> ArrayRef {
        Arc::new(ends.iter().map(|ends| ends.map(|ends| ends[which])).collect::<Float64Array>())
    };
    Ok([end(0), end(1)])
}

/// The values of a column of floats or integers; `other` is the one they are subtracted from.
fn floats(column: &Column, other: &Column) -> Result<Vec<Option<f64>>> {
    let plain = PlainColumn::new(column)?;
    let nulls = plain.nulls();
    let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
    let columns = slice::from_ref(&plain);
    if look_through(&column.data_type).is_floating() {
        let mut values = gather(columns, |array, out| append(array, |value| value, out))?;
        let values = values.pop().unwrap_or_default().into_iter().enumerate();
        return Ok(values.map(|(row, value)| (!is_null(row)).then_some(value)).collect());
    }
    let mut values = gather(columns, |array, out: &mut Vec<i128>| {
        with_integers!(array, values => out.extend(values.iter().map(|value| value.low128() as i128)));
        Ok(())
    })?;
    let values = values.pop().unwrap_or_default().into_iter().enumerate();
    let float = |(row, value): (usize, i128)| match value as f64 {
        _ if is_null(row) => Ok(None),
        float if float as i128 == value => Ok(Some(float)),
        _ => Err(Error::invalid(format!(
            "{} ({}) holds {value}, which no Float64 equals, so its difference from {} ({}) would \
             be rounded: cast one of them to the type of the other",
            column.label, column.data_type, other.label, other.data_type
        ))),
    };
    values.map(float).collect()
}

/// The greatest finite float `b` for which `within(b - value)`; it is `value` at least.
fn farthest(value: f64, width: f64, within: impl Fn(f64) -> bool) -> f64 {
    let holds = |key: u64| within(key_value(key) - value);
    let (first, last) = (order_key(value), order_key(f64::MAX));
    let guess = order_key(value + width).clamp(first, last);
    // From here on it holds for `inside` and for nothing from `outside` on.
    let (mut inside, mut outside) = (first, last + 1);
    let mut step = 1;
    if holds(guess) {
        inside = guess;
        while let Some(next) = inside.checked_add(step).filter(|&next| next < outside) {
            if !holds(next) {
                outside = next;
                break;
            }
            inside = next;
            step *= 2;
        }
    } else {
        outside = guess;
        while let Some(next) = outside.checked_sub(step).filter(|&next| next > inside) {
            if holds(next) {
                inside = next;
                break;
            }
            outside = next;
            step *= 2;
        }
    }
    while inside + 1 < outside {
        let middle = inside.midpoint(outside);
        if holds(middle) { inside = middle } else { outside = middle }
    }
    key_value(inside)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn interesting() -> impl Strategy<Value = f64> {
        let edges =
            [0.0, 1.0, 0.1, 0.3, 1e16, 1e-300, 5e-324, 2.3e-308, f64::MAX, f64::MIN_POSITIVE];
        let near = (prop::sample::select(edges.to_vec()), -3..4_i64, any::<bool>());
        prop_oneof![
            near.prop_map(|(edge, ulps, negative)| {
                let near = f64::from_bits(edge.to_bits().saturating_add_signed(ulps));
                let near = if near.is_finite() { near } else { edge };
                if negative { -near } else { near }
            }),
            (-20..20_i32).prop_map(|tenths| f64::from(tenths) / 10.0),
            any::<f64>().prop_filter("finite", |value| value.is_finite()),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5000))]
        #[test]
        fn the_end_is_the_last_within(value in interesting(), width in interesting(), strict: bool) {
            let width = width.abs();
            let within = |d: f64| if strict { d < width } else { d <= width };
            prop_assume!(within(0.0));
            let end = farthest(value, width, within);
            prop_assert!(end.is_finite() && end >= value);
            prop_assert!(within((value - end).abs()));
            prop_assert!(end == f64::MAX || !within((value - end.next_up()).abs()));
        }
    }
}
