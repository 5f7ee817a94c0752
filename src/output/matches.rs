//! What a kernel reports: which rows belong together.

use std::ops::Range;

/// One of the two inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The left one.
    Left,
    /// The right one.
    Right,
}

/// Rows that belong together, in output order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matches {
    /// Row by row; [`NO_ROW`](crate::table::NO_ROW) pads its side with nulls.
    Pairs {
        /// Rows of the left table.
        left: Vec<u32>,
        /// Their partners in the right table.
        right: Vec<u32>,
    },
    /// `rows[i]`, which is a row, goes with every row of `slices[i]`; empty slices give no row.
    Slices {
        /// Rows of the one table.
        rows: Vec<u32>,
        /// Contiguous rows of the other.
        slices: Vec<Range<u32>>,
        /// Whose rows the slices are.
        sliced: Side,
    },
}

impl Matches {
    /// How many output rows these are.
    pub fn len(&self) -> usize {
        match self {
            Self::Pairs { left, .. } => left.len(),
            Self::Slices { slices, .. } => slices.iter().map(ExactSizeIterator::len).sum(),
        }
    }

    /// Whether there is no output row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds `more` behind these, or gives it back if it has another form.
    pub(super) fn append(&mut self, more: Self) -> Option<Self> {
        match (self, more) {
            (Self::Pairs { left, right }, Self::Pairs { left: more_left, right: more_right }) => {
                left.extend(more_left);
                right.extend(more_right);
            }
            (
                Self::Slices { rows, slices, sliced },
                Self::Slices { rows: more_rows, slices: more_slices, sliced: more_sliced },
            ) if *sliced == more_sliced => {
                rows.extend(more_rows);
                slices.extend(more_slices);
            }
            (_, more) => return Some(more),
        }
        None
    }
}

/// How far matches have been assembled: an entry, and how much of its slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    pub(super) entry: usize,
    pub(super) within: u32,
}
