//! Builds output batches from matches, one at a time.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use arrow_select::zip::zip;

use super::gather::{Picked, Selection, gather};
use super::layout::Source;
use super::row_bytes::RowBytes;
use super::{Caps, Cursor, Layout, Matches, Side};
use crate::Result;
use crate::table::{NO_ROW, Table};

/// Builds output batches from matches. Made once per join: it measures the rows of its inputs.
pub struct Assembler {
    layout: Layout,
    left: Inlet,
    right: Inlet,
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
    pub fn new(layout: Layout, left: Arc<Table>, right: Arc<Table>) -> Self {
        let of_left = layout.sources().filter_map(Source::left);
        let of_right = layout.sources().filter_map(Source::right);
        let (left, right) = (Inlet::new(left, of_left), Inlet::new(right, of_right));
        Self { layout, left, right }
    }

    /// The schema of every batch.
    pub fn schema(&self) -> &SchemaRef {
        self.layout.schema()
    }

    /// How many matches are worth asking for at once: what a batch of average rows can hold.
    pub fn batch_rows(&self, caps: Caps) -> usize {
        let row = self.left.row_bytes.average() + self.right.row_bytes.average();
        ((caps.bytes / row.max(1)) as usize).clamp(1, caps.rows.max(1))
    }

    /// The next batch of `matches` from `at` on, within `caps`; `None` when there are no more.
    pub fn next_batch(
        &self,
        matches: &Matches,
        at: &mut Cursor,
        caps: Caps,
    ) -> Result<Option<RecordBatch>> {
        match matches {
            Matches::Pairs { left, right } => self.next_pairs(left, right, at, caps),
            Matches::Slices { rows, slices, sliced } => {
                self.next_slices(rows, slices, *sliced, at, caps)
            }
        }
    }

    /// All batches of `matches`.
    pub fn assemble(&self, matches: &Matches, caps: Caps) -> Result<Vec<RecordBatch>> {
        let mut at = Cursor::default();
        std::iter::from_fn(|| self.next_batch(matches, &mut at, caps).transpose()).collect()
    }

    fn next_pairs(
        &self,
        left: &[u32],
        right: &[u32],
        at: &mut Cursor,
        caps: Caps,
    ) -> Result<Option<RecordBatch>> {
        let begin = at.entry;
        if begin == left.len() {
            return Ok(None);
        }
        let most = (left.len() - begin).min(caps.rows);
        let mut bytes = 0;
        let fits = (begin..begin + most).take_while(|&i| {
            bytes += self.left.row_bytes.of(left[i]) + self.right.row_bytes.of(right[i]);
            bytes <= caps.bytes
        });
        let rows = begin..begin + fits.count().max(1);
        at.entry = rows.end;
        let left = Selection::Rows(Picked::new(&left[rows.clone()]));
        let right = Selection::Rows(Picked::new(&right[rows.clone()]));
        self.build(rows.len(), &left, &right).map(Some)
    }

    fn next_slices(
        &self,
        rows: &[u32],
        slices: &[Range<u32>],
        sliced: Side,
        at: &mut Cursor,
        caps: Caps,
    ) -> Result<Option<RecordBatch>> {
        let (mut picked, mut parts) = (Vec::new(), Vec::new());
        let (mut len, mut bytes) = (0, 0);
        while at.entry < rows.len() {
            let (row, slice) = (rows[at.entry], &slices[at.entry]);
            let rest = slice.start + at.within..slice.end;
            if rest.is_empty() {
                *at = Cursor { entry: at.entry + 1, within: 0 };
                continue;
            }
            let free = caps.bytes.saturating_sub(bytes);
            let mut fits = self.fitting(row, &rest, sliced, caps.rows.max(1) - len, free);
            if fits == 0 {
                if len > 0 {
                    break;
                }
                fits = 1;
            }
            let part = rest.start..rest.start + fits as u32;
            bytes += self.slice_bytes(row, &part, sliced);
            len += fits;
            at.within += fits as u32;
            picked.push(row);
            parts.push(part);
        }
        if len == 0 {
            return Ok(None);
        }
        let repeated = Selection::Repeated { rows: &picked, slices: &parts };
        let copied = Selection::Slices(&parts);
        let batch = match sliced {
            Side::Right => self.build(len, &repeated, &copied),
            Side::Left => self.build(len, &copied, &repeated),
        };
        batch.map(Some)
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

    fn build(&self, rows: usize, left: &Selection, right: &Selection) -> Result<RecordBatch> {
        let column = |source: &Source| match *source {
            Source::Left(index) => self.column(&self.left, index, left, rows),
            Source::Right(index) => self.column(&self.right, index, right, rows),
            Source::Either(ours, theirs) => {
                let of_left = self.column(&self.left, ours, left, rows)?;
                let Selection::Rows(picked) = left else { return Ok(of_left) };
                if !picked.rows.contains(&NO_ROW) {
                    return Ok(of_left);
                }
                let of_right = self.column(&self.right, theirs, right, rows)?;
                let has_left: BooleanArray =
                    picked.rows.iter().map(|&row| Some(row != NO_ROW)).collect();
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
