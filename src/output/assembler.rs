//! Builds output batches from matches, one at a time.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use arrow_select::zip::zip;

use super::gather::{Picked, Selection, gather};
use super::layout::Source;
use super::row_bytes::RowBytes;
use super::{Caps, Cursor, Layout, Matches};
use crate::Result;
use crate::table::{NO_ROW, Table};

/// Builds output batches from matches. Made once per join: it measures the rows of its inputs.
pub struct Assembler {
    layout: Layout,
    inlets: Vec<Inlet>,
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
        Self::of_many(layout, vec![left, right])
    }

    /// An assembler for `layout` over its inputs.
    pub fn of_many(layout: Layout, inputs: Vec<Arc<Table>>) -> Self {
        let inlet = |(input, table): (usize, Arc<Table>)| {
            Inlet::new(table, layout.sources().filter_map(|source| source.of(input)))
        };
        let inlets = inputs.into_iter().enumerate().map(inlet).collect();
        Self { layout, inlets }
    }

    /// The schema of every batch.
    pub fn schema(&self) -> &SchemaRef {
        self.layout.schema()
    }

    /// How many matches are worth asking for at once: what a batch of average rows can hold.
    pub fn batch_rows(&self, caps: Caps) -> usize {
        let row: u64 = self.inlets.iter().map(|inlet| inlet.row_bytes.average()).sum();
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
            Matches::Pairs { left, right } => self.next_rows(&[left, right], at, caps),
            Matches::Tuples { rows } => {
                let rows: Vec<&[u32]> = rows.iter().map(Vec::as_slice).collect();
                self.next_rows(&rows, at, caps)
            }
            Matches::Slices { rows, slices, sliced } => {
                let mut all: [&[u32]; 2] = [rows, rows];
                all[sliced.number()] = &[];
                self.next_slices(&all, slices, sliced.number(), at, caps)
            }
            Matches::Runs { rows, slices, sliced } => {
                let rows: Vec<&[u32]> = rows.iter().map(Vec::as_slice).collect();
                self.next_slices(&rows, slices, *sliced, at, caps)
            }
        }
    }

    /// All batches of `matches`.
    pub fn assemble(&self, matches: &Matches, caps: Caps) -> Result<Vec<RecordBatch>> {
        let mut at = Cursor::default();
        std::iter::from_fn(|| self.next_batch(matches, &mut at, caps).transpose()).collect()
    }

    /// The next batch of rows that belong together one by one, `rows` having those of each input.
    fn next_rows(
        &self,
        rows: &[&[u32]],
        at: &mut Cursor,
        caps: Caps,
    ) -> Result<Option<RecordBatch>> {
        let (begin, len) = (at.entry, rows.first().map_or(0, |rows| rows.len()));
        if begin == len {
            return Ok(None);
        }
        let most = (len - begin).min(caps.rows);
        let row_bytes = |at: usize| -> u64 {
            self.inlets.iter().zip(rows).map(|(inlet, rows)| inlet.row_bytes.of(rows[at])).sum()
        };
        let widths = self.inlets.iter().map(|inlet| inlet.row_bytes.fixed());
        let fits = match widths.sum::<Option<u64>>() {
            Some(width) => (caps.bytes / width.max(1)).min(most as u64) as usize,
            None => {
                let mut bytes = 0;
                let fitting = (begin..begin + most).take_while(|&at| {
                    bytes += row_bytes(at);
                    bytes <= caps.bytes
                });
                fitting.count()
            }
        };
        let range = begin..begin + fits.max(1);
        at.entry = range.end;
        let picked = rows.iter().map(|rows| Picked::new(&rows[range.clone()]));
        let selections: Vec<Selection> = picked.map(Selection::Rows).collect();
        self.build(range.len(), &selections).map(Some)
    }

    /// The next batch of slices of the input numbered `sliced`, beside rows of the others.
    fn next_slices(
        &self,
        rows: &[&[u32]],
        slices: &[Range<u32>],
        sliced: usize,
        at: &mut Cursor,
        caps: Caps,
    ) -> Result<Option<RecordBatch>> {
        let mut picked = vec![Vec::new(); rows.len()];
        let mut parts = Vec::new();
        let (mut len, mut bytes) = (0, 0);
        while at.entry < slices.len() {
            let slice = &slices[at.entry];
            let rest = slice.start + at.within..slice.end;
            if rest.is_empty() {
                *at = Cursor { entry: at.entry + 1, within: 0 };
                continue;
            }
            let beside = self.inlets.iter().zip(rows).filter(|(_, rows)| !rows.is_empty());
            let beside = beside.map(|(inlet, rows)| inlet.row_bytes.of(rows[at.entry])).sum();
            let space = caps.rows.max(1) - len;
            let free = caps.bytes.saturating_sub(bytes);
            let mut fits = self.fitting(&rest, sliced, beside, space, free);
            if fits == 0 {
                if len > 0 {
                    break;
                }
                fits = 1;
            }
            let part = rest.start..rest.start + fits as u32;
            bytes += self.slice_bytes(&part, sliced, beside);
            len += fits;
            at.within += fits as u32;
            for (picked, rows) in picked.iter_mut().zip(rows).filter(|(_, rows)| !rows.is_empty()) {
                picked.push(rows[at.entry]);
            }
            parts.push(part);
        }
        if len == 0 {
            return Ok(None);
        }
        let selection = |(input, rows): (usize, _)| match input == sliced {
            true => Selection::Slices(&parts),
            false => Selection::Repeated { rows, slices: &parts },
        };
        let selections: Vec<Selection> =
            picked.iter().map(Vec::as_slice).enumerate().map(selection).collect();
        self.build(len, &selections).map(Some)
    }

    /// Bytes of `slice` of the input numbered `sliced`, with `beside` bytes beside each row.
    fn slice_bytes(&self, slice: &Range<u32>, sliced: usize, beside: u64) -> u64 {
        slice.len() as u64 * beside + self.inlets[sliced].row_bytes.of_range(slice)
    }

    /// How many rows of `slice`, with `beside` bytes beside each, fit into `space` rows and
    /// `bytes`.
    fn fitting(
        &self,
        slice: &Range<u32>,
        sliced: usize,
        beside: u64,
        space: usize,
        bytes: u64,
    ) -> usize {
        let size = |rows: usize| {
            self.slice_bytes(&(slice.start..slice.start + rows as u32), sliced, beside)
        };
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

    /// A batch of what is selected of each input.
    fn build(&self, rows: usize, selections: &[Selection]) -> Result<RecordBatch> {
        let column = |source: &Source| match *source {
            Source::Column { input, index } => self.column(input, index, selections, rows),
            Source::Either(ours, theirs) => {
                let of_left = self.column(0, ours, selections, rows)?;
                let Selection::Rows(picked) = &selections[0] else { return Ok(of_left) };
                if !picked.rows.contains(&NO_ROW) {
                    return Ok(of_left);
                }
                let of_right = self.column(1, theirs, selections, rows)?;
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
        input: usize,
        index: usize,
        selections: &[Selection],
        rows: usize,
    ) -> Result<ArrayRef> {
        let Inlet { table, columns, .. } = &self.inlets[input];
        let field = table.schema().field(index);
        gather(field, &columns[index], table, &selections[input], rows)
    }
}
