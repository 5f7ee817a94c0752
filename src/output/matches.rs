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

impl Side {
    /// Its number among the inputs.
    pub(super) fn number(self) -> usize {
        match self {
            Self::Left => 0,
            Self::Right => 1,
        }
    }
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
    /// Like pairs, of any number of inputs: `rows[input][i]` belong together, for each `i`.
    Tuples {
        /// Rows of each input; none is padded.
        rows: Vec<Vec<u32>>,
    },
    /// Like slices, of any number of inputs: `rows[input][i]`, for all inputs but one, go with
    /// every row of `slices[i]` of that one.
    Runs {
        /// Rows of each input; the sliced one's are empty.
        rows: Vec<Vec<u32>>,
        /// Contiguous rows of the sliced input.
        slices: Vec<Range<u32>>,
        /// The number of the sliced input.
        sliced: usize,
    },
}

impl Matches {
    /// How many output rows these are.
    pub fn len(&self) -> usize {
        match self {
            Self::Pairs { left, .. } => left.len(),
            Self::Tuples { rows } => rows.first().map_or(0, Vec::len),
            Self::Slices { slices, .. } | Self::Runs { slices, .. } => {
                slices.iter().map(ExactSizeIterator::len).sum()
            }
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
            (Self::Tuples { rows }, Self::Tuples { rows: more }) => extend_each(rows, more),
            (
                Self::Runs { rows, slices, sliced },
                Self::Runs { rows: more_rows, slices: more_slices, sliced: more_sliced },
            ) if *sliced == more_sliced => {
                extend_each(rows, more_rows);
                slices.extend(more_slices);
            }
            (_, more) => return Some(more),
        }
        None
    }
}

fn extend_each(rows: &mut [Vec<u32>], more: Vec<Vec<u32>>) {
    rows.iter_mut().zip(more).for_each(|(rows, more)| rows.extend(more));
}

/// How far matches have been assembled: an entry, and how much of its slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    pub(super) entry: usize,
    pub(super) within: u32,
}
