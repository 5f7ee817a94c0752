//! Floats of all widths as 64-bit ones.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_schema::DataType;

use super::plain::{PlainColumn, gather};
use super::position::Reading;
use super::{Encoded, unexpected};
use crate::error::Result;

pub(super) fn encode(columns: &[PlainColumn]) -> Result<Encoded> {
    let keys = gather(columns, |array, out| append(array, order_key, out))?;
    Ok(Encoded::U64(keys, Reading::Float))
}

/// Appends what `convert` makes of each float of an array.
pub(super) fn append<K>(
    array: &dyn Array,
    convert: impl Fn(f64) -> K,
    out: &mut Vec<K>,
) -> Result<()> {
    match array.data_type() {
        DataType::Float16 => {
            let values = array.as_primitive::<Float16Type>().values();
            out.extend(values.iter().map(|&value| convert(value.into())));
        }
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>().values();
            out.extend(values.iter().map(|&value| convert(value.into())));
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>().values();
            out.extend(values.iter().map(|&value| convert(value)));
        }
        other => return Err(unexpected(other)),
    }
    Ok(())
}

/// A key of the same order, which is never zero: -inf < numbers < inf < NaN, and -0.0 = 0.0.
pub(super) fn order_key(value: f64) -> u64 {
    // Adding 0.0 turns -0.0 into 0.0 and leaves every other number alone.
    let value = if value.is_nan() { f64::NAN } else { value + 0.0 };
    let bits = value.to_bits();
    // Negative numbers grow towards zero: flip all their bits, else only the sign.
    let negative = (bits as i64 >> 63) as u64;
    bits ^ (negative | 1 << 63)
}

/// The number whose [`order_key`] this is.
pub(super) fn key_value(key: u64) -> f64 {
    let positive = key >> 63 == 1;
    f64::from_bits(if positive { key ^ 1 << 63 } else { !key })
}
