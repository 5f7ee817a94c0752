//! What a join is asked for, as plain values: comparisons, bands, conjunctions of them, join kinds.
//!
//! Columns are named here and resolved by the operator; the textual grammar lives in the Python
//! layer, which lowers `between` and `overlaps` to comparisons before anything reaches this crate.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use num_bigint::BigUint;

use crate::{Error, Result};

/// An order comparison between a left and a right value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `left < right`
    Less,
    /// `left <= right`
    LessOrEqual,
    /// `left > right`
    Greater,
    /// `left >= right`
    GreaterOrEqual,
    /// `left != right`
    NotEqual,
}

impl Comparison {
    /// All comparisons, for tests and tables.
    pub const ALL: [Self; 5] =
        [Self::Less, Self::LessOrEqual, Self::Greater, Self::GreaterOrEqual, Self::NotEqual];

    /// The comparison written as `symbol`.
    pub fn from_symbol(symbol: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|comparison| comparison.symbol() == symbol)
    }

    /// How it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::NotEqual => "!=",
        }
    }

    /// The comparison that holds with the two sides exchanged.
    pub fn turned(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            Self::NotEqual => Self::NotEqual,
        }
    }

    /// Whether values that compare as `ordering` satisfy it.
    pub fn accepts(self, ordering: Ordering) -> bool {
        match self {
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
            Self::NotEqual => ordering.is_ne(),
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.symbol())
    }
}

/// One term of a predicate, between a column of the left and one of the right input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term {
    /// `left comparison right`
    Compare {
        /// Column of the left input.
        left: String,
        /// How the two are compared.
        comparison: Comparison,
        /// Column of the right input.
        right: String,
    },
    /// `abs(left - right) <= width`, or `<`
    Band {
        /// Column of the left input.
        left: String,
        /// Column of the right input.
        right: String,
        /// How far apart they may be.
        width: Width,
        /// Whether they must be less than `width` apart.
        strict: bool,
    },
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compare { left, comparison, right } => {
                write!(f, "left.{left} {comparison} right.{right}")
            }
            Self::Band { left, right, width, strict } => {
                let symbol = if *strict { "<" } else { "<=" };
                write!(f, "abs(left.{left} - right.{right}) {symbol} {width}")
            }
        }
    }
}

/// Widths beyond these mean nothing for any type of column, and would only cost time.
const MAX_EXPONENT: i32 = 1000;
const MAX_BITS: u64 = 4000;

/// How wide a band is: exact, and never negative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Width {
    /// `digits` * 10^`exponent`, for columns of numbers.
    Number {
        /// Without the decimal point.
        digits: BigUint,
        /// Where that is.
        exponent: i32,
    },
    /// A length of time, for columns of times.
    Nanoseconds(u64),
}

/// Reads `5`, `0.25` and `1E-3` as numbers, and `10000ns` as a length of time.
impl FromStr for Width {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let read = || {
            if let Some(count) = text.strip_suffix("ns") {
                return count.parse().ok().map(Self::Nanoseconds);
            }
            let (number, exponent) = match text.split_once(['e', 'E']) {
                Some((number, exponent)) => (number, exponent.parse().ok()?),
                None => (text, 0),
            };
            let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
            let digits = format!("{whole}{fraction}");
            // `BigUint` would take a sign or an underscore, too.
            let plain = digits.bytes().all(|digit| digit.is_ascii_digit());
            let digits = BigUint::parse_bytes(digits.as_bytes(), 10).filter(|_| plain)?;
            let decimals = i32::try_from(fraction.len()).ok()?;
            let exponent = i32::checked_sub(exponent, decimals)?;
            let fits = exponent.abs() <= MAX_EXPONENT && digits.bits() <= MAX_BITS;
            fits.then_some(Self::Number { digits, exponent })
        };
        read().ok_or_else(|| Error::invalid(format!("{text:?} is no width of a band")))
    }
}

impl fmt::Display for Width {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number { digits, exponent } => {
                let digits = digits.to_string();
                let decimals = usize::try_from(-i64::from(*exponent)).unwrap_or(0);
                match *exponent {
                    0 => f.write_str(&digits),
                    // As people write it, unless that takes many zeros.
                    _ if (1..=digits.len() + 6).contains(&decimals) => {
                        let padded = format!("{digits:0>width$}", width = decimals + 1);
                        let (whole, fraction) = padded.split_at(padded.len() - decimals);
                        write!(f, "{whole}.{fraction}")
                    }
                    exponent => write!(f, "{digits}e{exponent}"),
                }
            }
            Self::Nanoseconds(count) => {
                let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
                match units.into_iter().find(|(_, length)| count.is_multiple_of(*length)) {
                    Some((unit, length)) => write!(f, "{}{unit}", count / length),
                    None => write!(f, "{count}ns"),
                }
            }
        }
    }
}

/// Which rows of the two inputs come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JoinKind {
    /// Matching pairs.
    Inner,
    /// Matching pairs, and left rows without a match.
    Left,
    /// Matching pairs, and right rows without a match.
    Right,
    /// Matching pairs, and the rows of both sides without a match.
    Full,
    /// Left rows that have a match, once each.
    Semi,
    /// Left rows that have none.
    Anti,
}

impl JoinKind {
    /// All kinds, for tests and tables.
    pub const ALL: [Self; 6] =
        [Self::Inner, Self::Left, Self::Right, Self::Full, Self::Semi, Self::Anti];

    /// The kind called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inner => "inner",
            Self::Left => "left",
            Self::Right => "right",
            Self::Full => "full",
            Self::Semi => "semi",
            Self::Anti => "anti",
        }
    }
}

impl fmt::Display for JoinKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_read_and_write() {
        let cases = [
            ("5", "5"),
            ("0", "0"),
            ("0.25", "0.25"),
            ("12.50", "12.50"),
            ("1E-3", "0.001"),
            ("1e+3", "1e3"),
            ("1e-300", "1e-300"),
            (
                "123456789012345678901234567890123456789012",
                "123456789012345678901234567890123456789012",
            ),
            ("10000000000ns", "10s"),
            ("1500000ns", "1500us"),
            ("7ns", "7ns"),
            ("0ns", "0s"),
        ];
        for (text, shown) in cases {
            let width: Width = text.parse().unwrap();
            assert_eq!(width.to_string(), shown);
        }
        for text in ["", "-1", "+1", ".", "1.2.3", "e5", "1e", "ns", "-1ns", "1e99999999999"] {
            assert!(text.parse::<Width>().is_err(), "{text:?}");
        }
    }
}
