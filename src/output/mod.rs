//! Matches become record batches: lazily, capped in rows and bytes, padded with nulls.
//!
//! A kernel reports which rows belong together as [`Matches`], in one of two forms: index pairs,
//! or for each row of one table a contiguous slice of the other, which is in key order. An [`Assembler`]
//! turns them into batches of the [`Layout`] that the join promised, each within its [`Caps`].
//! [`BatchStream`] runs a join's tasks and hands batches out one at a time.
//!
//! Output columns: all of the left input, then those of the right input except its equality
//! columns; a right name that is taken gets the suffix.

mod gather;
mod layout;
mod row_bytes;
mod stream;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use arrow_select::zip::zip;

pub use layout::Layout;
pub use stream::{BatchStream, MatchTask};

use crate::Result;
use crate::table::{NO_ROW, Table};
use gather::{Selection, gather};
use layout::Source;
use row_bytes::RowBytes;

/// How large one output batch may be; a single row may exceed the bytes.
#[derive(Clone, Copy, Debug)]
pub struct Caps {
    /// Most rows of a batch.
    pub rows: usize,
    /// Most bytes of a batch.
    pub bytes: u64,
}

impl Default for Caps {
    fn default() -> Self {
        Self { rows: 1 << 17, bytes: 16 << 20 }
    }
}

/// Rows that belong together, in output order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matches {
    /// Row by row; [`NO_ROW`] pads its side with nulls.
    Pairs {
        /// Rows of the left table.
        left: Vec<u32>,
        /// Their partners in the right table.
        right: Vec<u32>,
    },
    /// `rows[i]` goes with every row of `slices[i]`; empty slices give no row.
    Slices {
        /// Rows of the one table.
        rows: Vec<u32>,
        /// Contiguous rows of the other.
        slices: Vec<Range<u32>>,
        /// Whose rows the slices are.
        sliced: Side,
    },
}

/// One of the two inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The left one.
    Left,
    /// The right one.
    Right,
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

    /// Adds `more` behind these, or gives it back if it has the other form.
    fn append(&mut self, more: Self) -> Option<Self> {
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

/// Builds output batches from matches.
pub struct Assembler {
    layout: Layout,
    left: Inlet,
    right: Inlet,
    caps: Caps,
}

/// One input as the assembler needs it: columns by number, each in its chunks.
struct Inlet {
    table: Arc<Table>,
    columns: Vec<Vec<ArrayRef>>,
    row_bytes: RowBytes,
}

impl Inlet {
    fn new(table: Arc<Table>, used: impl Iterator<Item = usize>) -> Self {
        let columns = (0..table.schema().fields().len()).map(|i| table.chunks(i)).collect();
        let row_bytes = RowBytes::new(&table, used);
        Self { table, columns, row_bytes }
    }
}

impl Assembler {
    /// An assembler for `layout` over its two inputs.
    pub fn new(layout: Layout, left: Arc<Table>, right: Arc<Table>, caps: Caps) -> Self {
        let of_left = layout.sources().filter_map(Source::left);
        let of_right = layout.sources().filter_map(Source::right);
        let (left, right) = (Inlet::new(left, of_left), Inlet::new(right, of_right));
        Self { layout, left, right, caps }
    }

    /// The schema of every batch.
    pub fn schema(&self) -> &SchemaRef {
        self.layout.schema()
    }

    /// How many matches are worth asking for at once: what a batch can hold.
    pub fn batch_rows(&self) -> usize {
        let row = self.left.row_bytes.average() + self.right.row_bytes.average();
        ((self.caps.bytes / row.max(1)) as usize).clamp(1, self.caps.rows)
    }

    /// The batches that `matches` make, none of them empty, each within the caps.
    pub fn assemble(&self, matches: &Matches) -> Result<Vec<RecordBatch>> {
        match matches {
            Matches::Pairs { left, right } => self.cut_pairs(left, right),
            Matches::Slices { rows, slices, sliced } => self.cut_slices(rows, slices, *sliced),
        }
    }

    fn cut_pairs(&self, left: &[u32], right: &[u32]) -> Result<Vec<RecordBatch>> {
        let mut batches = Vec::new();
        let mut begin = 0;
        while begin < left.len() {
            let most = (left.len() - begin).min(self.caps.rows);
            let mut bytes = 0;
            let fits = (begin..begin + most).take_while(|&i| {
                bytes += self.left.row_bytes.of(left[i]) + self.right.row_bytes.of(right[i]);
                bytes <= self.caps.bytes
            });
            let rows = begin..begin + fits.count().max(1);
            batches.push(self.build(
                rows.len(),
                &Selection::Rows(&left[rows.clone()]),
                &Selection::Rows(&right[rows.clone()]),
            )?);
            begin = rows.end;
        }
        Ok(batches)
    }

    fn cut_slices(
        &self,
        rows: &[u32],
        slices: &[Range<u32>],
        sliced: Side,
    ) -> Result<Vec<RecordBatch>> {
        let mut batches = Vec::new();
        let mut batch = SliceBatch::default();
        for (&row, slice) in rows.iter().zip(slices) {
            let mut rest = slice.clone();
            while !rest.is_empty() {
                let space = self.caps.rows - batch.len;
                let bytes = self.caps.bytes.saturating_sub(batch.bytes);
                let fits = self.fitting(row, &rest, sliced, space, bytes);
                if fits == 0 && batch.len > 0 {
                    batches.push(self.build_slices(std::mem::take(&mut batch), sliced)?);
                    continue;
                }
                let part = rest.start..rest.start + fits.max(1) as u32;
                batch.bytes += self.slice_bytes(row, &part, sliced);
                rest.start = part.end;
                batch.push(row, part);
            }
        }
        if batch.len > 0 {
            batches.push(self.build_slices(batch, sliced)?);
        }
        Ok(batches)
    }

    /// Bytes of `row` repeated beside `slice`.
    fn slice_bytes(&self, row: u32, slice: &Range<u32>, sliced: Side) -> u64 {
        let (repeated, copied) = match sliced {
            Side::Right => (&self.left, &self.right),
            Side::Left => (&self.right, &self.left),
        };
        slice.len() as u64 * repeated.row_bytes.of(row) + copied.row_bytes.of_range(slice)
    }

    /// How many rows of `slice`, each beside `row`, fit into `space` rows and `bytes`.
    fn fitting(
        &self,
        row: u32,
        slice: &Range<u32>,
        sliced: Side,
        space: usize,
        bytes: u64,
    ) -> usize {
        let size =
            |rows: usize| self.slice_bytes(row, &(slice.start..slice.start + rows as u32), sliced);
        let most = slice.len().min(space);
        if size(most) <= bytes {
            return most;
        }
        // The largest number of rows that still fits, by bisection: size() only grows.
        let (mut fits, mut too_many) = (0, most);
        while fits + 1 < too_many {
            let middle = fits.midpoint(too_many);
            if size(middle) <= bytes { fits = middle } else { too_many = middle }
        }
        fits
    }

    fn build_slices(&self, batch: SliceBatch, sliced: Side) -> Result<RecordBatch> {
        let repeated = Selection::Repeated { rows: &batch.rows, slices: &batch.slices };
        let copied = Selection::Slices(&batch.slices);
        match sliced {
            Side::Right => self.build(batch.len, &repeated, &copied),
            Side::Left => self.build(batch.len, &copied, &repeated),
        }
    }

    fn build(&self, rows: usize, left: &Selection, right: &Selection) -> Result<RecordBatch> {
        let column = |source: &Source| match *source {
            Source::Left(index) => self.column(&self.left, index, left, rows),
            Source::Right(index) => self.column(&self.right, index, right, rows),
            Source::Either(ours, theirs) => {
                let of_left = self.column(&self.left, ours, left, rows)?;
                let Selection::Rows(picked) = left else { return Ok(of_left) };
                if !picked.contains(&NO_ROW) {
                    return Ok(of_left);
                }
                let of_right = self.column(&self.right, theirs, right, rows)?;
                let has_left: BooleanArray = picked.iter().map(|&r| Some(r != NO_ROW)).collect();
                Ok(zip(&has_left, &of_left, &of_right)?)
            }
        };
        let columns = self.layout.sources().map(column).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(self.schema()), columns, &options)?)
    }

    fn column(
        &self,
        side: &Inlet,
        index: usize,
        selection: &Selection,
        rows: usize,
    ) -> Result<ArrayRef> {
        let field = side.table.schema().field(index);
        gather(field, &side.columns[index], &side.table, selection, rows)
    }
}

/// Slices that will make one batch.
#[derive(Default)]
struct SliceBatch {
    rows: Vec<u32>,
    slices: Vec<Range<u32>>,
    len: usize,
    bytes: u64,
}

impl SliceBatch {
    fn push(&mut self, row: u32, slice: Range<u32>) {
        self.len += slice.len();
        self.rows.push(row);
        self.slices.push(slice);
    }
}
