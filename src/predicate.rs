//! What a join is asked for, as plain values: comparisons, conjunctions of them, join kinds.
//!
//! Columns are named here and resolved by the operator; the textual grammar lives in the Python
//! layer, which lowers `between` and `overlaps` to comparisons before anything reaches this crate.

use std::cmp::Ordering;
use std::fmt;

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

/// One term of a predicate: `left_column comparison right_column`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// Column of the left input.
    pub left: String,
    /// How the two are compared.
    pub comparison: Comparison,
    /// Column of the right input.
    pub right: String,
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "left.{} {} right.{}", self.left, self.comparison, self.right)
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
