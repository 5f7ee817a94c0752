//! Keys read back as places on a number line, for whoever cuts a range into equal widths.
//!
//! A place is a 64-bit float: numbers lie at their value, times at their count of the finest unit
//! among the columns, everything else (strings, binaries, ranked values) at its key. Rounding may
//! put different keys in one place, but never in the wrong order: each key is rounded once, and
//! rounding keeps order. NaN, which is greater than every number, lies at infinity.

use super::domain::Unit;
use super::float::key_value;

/// What the keys of one call stand for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Reading {
    /// Nothing but their order.
    Order,
    /// Whole numbers of units, the sign bit flipped; so many units are 1.0.
    Signed(f64),
    /// Whole numbers of units, none of them negative; so many units are 1.0.
    Unsigned(f64),
    /// Floats.
    Float,
}

impl Reading {
    pub fn signed(unit: Unit) -> Self {
        Self::Signed(units_in_one(unit))
    }

    pub fn unsigned(unit: Unit) -> Self {
        Self::Unsigned(units_in_one(unit))
    }

    pub fn place64(self, key: u64) -> f64 {
        match self {
            Self::Order => key as f64,
            Self::Signed(units) => (key ^ 1 << 63) as i64 as f64 / units,
            Self::Unsigned(units) => key as f64 / units,
            Self::Float => {
                let value = key_value(key);
                if value.is_nan() { f64::INFINITY } else { value }
            }
        }
    }

    pub fn place128(self, key: u128) -> f64 {
        match self {
            Self::Signed(units) => (key ^ 1 << 127) as i128 as f64 / units,
            Self::Unsigned(units) => key as f64 / units,
            Self::Order | Self::Float => key as f64,
        }
    }
}

fn units_in_one(unit: Unit) -> f64 {
    match unit {
        Unit::Decimal(scale) => 10_f64.powi(scale.into()),
        Unit::Time(_) => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::float::order_key;
    use super::*;

    #[test]
    fn floats_lie_at_their_value() {
        for value in [0.0, 1.5, -2.25, 1e300, -1e-300, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Reading::Float.place64(order_key(value)), value);
        }
        assert_eq!(Reading::Float.place64(order_key(f64::NAN)), f64::INFINITY);
    }

    #[test]
    fn decimals_lie_at_their_value() {
        let cents = Reading::signed(Unit::Decimal(2));
        assert_eq!(cents.place64((-125_i64 as u64) ^ 1 << 63), -1.25);
        assert_eq!(cents.place128((125_i128 as u128) ^ 1 << 127), 1.25);
    }
}
