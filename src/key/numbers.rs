//! The numbers of a column as they are, for whoever adds them up.

use arrow_array::cast::AsArray;
use arrow_buffer::{NullBuffer, i256};
use arrow_schema::DataType;

use super::domain::{decimal_scale, look_through};
use super::exact::{Integer, with_integers};
use super::plain::{PlainColumn, gather};
use super::{Column, float, unexpected};
use crate::error::Result;

/// What a column of numbers is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberType {
    /// Integers, signed or not.
    Integer,
    /// Decimals: integers to be divided by a power of ten.
    Decimal {
        /// Which power.
        scale: i8,
        /// Whether 128 bits may be too few for a value.
        wide: bool,
    },
    /// Floats of any width.
    Float,
}

impl NumberType {
    /// The kind of numbers that a column of this type holds; `None` if it holds none.
    pub fn of(data_type: &DataType) -> Option<Self> {
        let plain = look_through(data_type);
        match (plain, decimal_scale(plain)) {
            (DataType::Decimal256(..), Some(scale)) => Some(Self::Decimal { scale, wide: true }),
            (_, Some(_)) if plain.is_integer() => Some(Self::Integer),
            (_, Some(scale)) => Some(Self::Decimal { scale, wide: false }),
            _ => plain.is_floating().then_some(Self::Float),
        }
    }
}

/// One number per row, arbitrary where the row is null; decimals without their point.
#[derive(Clone, Debug)]
pub enum Numbers {
    /// What 64 bits hold.
    Long(Vec<i64>),
    /// What 128 bits hold.
    Wide(Vec<i128>),
    /// What 256 bits hold.
    Widest(Vec<i256>),
    /// Floats.
    Float(Vec<f64>),
}

/// The numbers of a column of a [`NumberType`], and which rows are null, if any.
pub fn numbers(column: &Column) -> Result<(Numbers, Option<NullBuffer>)> {
    use DataType::*;
    let columns = [PlainColumn::new(column)?];
    let numbers = match look_through(&column.data_type) {
        Float16 | Float32 | Float64 => {
            let read = |array: &_, out: &mut _| float::append(array, |value| value, out);
            Numbers::Float(one(gather(&columns, read)?))
        }
        Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | Decimal32(..) | Decimal64(..) => {
            Numbers::Long(one(gather(&columns, |array, out: &mut Vec<i64>| {
                with_integers!(array, values => out.extend(values.iter().map(|v| v.low64() as i64)));
                Ok(())
            })?))
        }
        UInt64 | Decimal128(..) => {
            Numbers::Wide(one(gather(&columns, |array, out: &mut Vec<i128>| {
                with_integers!(array, values => {
                    out.extend(values.iter().map(|v| v.low128() as i128));
                });
                Ok(())
            })?))
        }
        Decimal256(..) => Numbers::Widest(one(gather(&columns, |array, out: &mut Vec<i256>| {
            let values = array.as_primitive::<arrow_array::types::Decimal256Type>().values();
            out.extend_from_slice(values);
            Ok(())
        })?)),
        other => return Err(unexpected(other)),
    };
    let [column] = columns;
    Ok((numbers, column.nulls()))
}

fn one<T>(columns: Vec<Vec<T>>) -> Vec<T> {
    columns.into_iter().next().unwrap_or_default()
}
