//! Writing a run block by block, and reading it from any row on.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::iter::FusedIterator;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_schema::SchemaRef;

use super::block::{self, HEADER, Label};
use super::file::SpillFile;
use super::payload::Codec;
use super::{Operation, SpillSpace};
use crate::budget::Reservation;
use crate::{Error, Result};

/// A row of a run: `row` of `block`. A block's end and the next one's beginning are the same place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Number of the block in its run.
    pub block: usize,
    /// Number of the row in its block.
    pub row: usize,
}

impl Position {
    /// The first row of a run.
    pub const START: Self = Self { block: 0, row: 0 };
}

/// A run being written. Dropped before [`finish`](Self::finish), it leaves nothing.
pub struct RunWriter {
    run: Contents,
    /// The encoded block: each is written in one call, so nothing else is buffered.
    encoded: Vec<u8>,
}

/// A finished run: immutable; clones and readers share it. With the last of them its disk space
/// goes back to the quota.
#[derive(Clone)]
pub struct Run {
    pub(super) run: Arc<Contents>,
}

/// The batches of a run from some position on, one block in memory at a time. It ends after an
/// error; `run.reader_at(reader.position())` tries that block again.
pub struct RunReader {
    run: Run,
    next: Position,
    failed: bool,
}

pub(super) struct Contents {
    pub(super) space: SpillSpace,
    codec: Codec,
    /// In every header, so that no other file's block passes for one of this run's.
    id: u64,
    pub(super) blocks: Vec<Block>,
    rows: u64,
    // Dropped in this order: the quota is free again only once the disk is.
    pub(super) file: SpillFile,
    disk: Reservation,
}

pub(super) struct Block {
    offset: u64,
    bytes: u64,
    rows: usize,
}

impl RunWriter {
    pub(super) fn create(space: SpillSpace, schema: SchemaRef) -> Result<Self> {
        let codec = Codec::new(schema, space.shared.compression)?;
        let folder = &space.shared.folder;
        let disk =
            space.shared.disk.reserve(format!("a run spilled to {}", folder.display()), 0)?;
        let file = space.attempt(Operation::Create, || SpillFile::create(folder))?;
        let id = RandomState::new().hash_one(());
        let run = Contents { space, codec, id, blocks: Vec::new(), rows: 0, file, disk };
        Ok(Self { run, encoded: Vec::new() })
    }

    /// Appends `batch` as one block. If that fails, the run is as long as before, and both writing
    /// on and finishing are possible.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let Self { run, encoded } = self;
        encoded.clear();
        encoded.resize(HEADER, 0);
        run.codec.encode(batch, encoded)?;
        let next =
            Block { offset: run.disk.bytes(), bytes: encoded.len() as u64, rows: batch.num_rows() };
        block::seal(encoded, run.label(run.blocks.len(), &next));

        run.disk.try_grow(next.bytes)?;
        let operation = Operation::Write { block: run.blocks.len() };
        let written = run.space.attempt(operation, || run.file.write_all_at(encoded, next.offset));
        if let Err(error) = written {
            // What did get written must not stay on disk uncounted. Should even this fail, the
            // next block overwrites it, or the file goes away.
            let _ = run.file.truncate(next.offset);
            run.disk.shrink(next.bytes);
            return Err(error);
        }
        run.space.shared.written.count(next.bytes, run.space.shared.page_size);
        run.rows += next.rows as u64;
        run.blocks.push(next);
        Ok(())
    }

    /// Rows written so far.
    pub fn rows(&self) -> u64 {
        self.run.rows
    }

    /// Blocks written so far.
    pub fn blocks(&self) -> usize {
        self.run.blocks.len()
    }

    /// Bytes on disk so far.
    pub fn bytes(&self) -> u64 {
        self.run.disk.bytes()
    }

    /// The run of all blocks that were written.
    pub fn finish(self) -> Run {
        Run { run: Arc::new(self.run) }
    }
}

impl Run {
    /// The schema that it was created with.
    pub fn schema(&self) -> &SchemaRef {
        self.run.codec.schema()
    }

    /// Rows in all blocks.
    pub fn rows(&self) -> u64 {
        self.run.rows
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.run.blocks.len()
    }

    /// Bytes on disk.
    pub fn bytes(&self) -> u64 {
        self.run.disk.bytes()
    }

    /// All batches, as written.
    pub fn reader(&self) -> RunReader {
        RunReader { run: self.clone(), next: Position::START, failed: false }
    }

    /// What follows from `position` on: the rest of its block, then all further blocks.
    pub fn reader_at(&self, position: Position) -> Result<RunReader> {
        let rows = match self.run.blocks.get(position.block) {
            Some(block) => block.rows,
            None if position.block == self.blocks() => 0,
            None => {
                return Err(Error::invalid(format!(
                    "a spilled run has no block {}, only {} blocks",
                    position.block,
                    self.blocks()
                )));
            }
        };
        if position.row > rows {
            return Err(Error::invalid(format!(
                "block {} of a spilled run has no row {}, only {rows} rows",
                position.block, position.row
            )));
        }
        // Row 0 is the beginning even of an empty block, which is then read like any other.
        let next = if position.row == rows && rows > 0 {
            Position { block: position.block + 1, row: 0 }
        } else {
            position
        };
        Ok(RunReader { run: self.clone(), next, failed: false })
    }
}

impl RunReader {
    /// Where the next batch begins. Before `next` it is thus the place of the batch to come: with
    /// `row` increased by the rows used of that batch, it is where to go on later.
    pub fn position(&self) -> Position {
        self.next
    }

    /// The run being read.
    pub fn run(&self) -> &Run {
        &self.run
    }
}

impl Iterator for RunReader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let Position { block, row } = self.next;
        if self.failed || block == self.run.blocks() {
            return None;
        }
        let batch = self.run.run.read(block);
        match &batch {
            Ok(_) => self.next = Position { block: block + 1, row: 0 },
            Err(_) => self.failed = true,
        }
        Some(batch.map(|batch| match row {
            0 => batch,
            row => batch.slice(row, batch.num_rows() - row),
        }))
    }
}

impl FusedIterator for RunReader {}

impl Contents {
    pub(super) fn label(&self, number: usize, block: &Block) -> Label {
        Label {
            run: self.id,
            block: number as u64,
            rows: block.rows as u64,
            payload: block.bytes - HEADER as u64,
        }
    }

    fn read(&self, number: usize) -> Result<RecordBatch> {
        let block = &self.blocks[number];
        let operation = Operation::Read { block: number };
        let batch = self.space.attempt(operation, || {
            let bytes = self.read_bytes(block)?;
            block::check(&bytes, self.label(number, block)).map_err(invalid_data)?;
            self.codec.decode(bytes.slice(HEADER), block.rows).map_err(invalid_data)
        })?;
        self.space.shared.read.count(block.bytes, self.space.shared.page_size);
        Ok(batch)
    }

    fn read_bytes(&self, block: &Block) -> io::Result<Buffer> {
        let mut bytes = MutableBuffer::from_len_zeroed(block.bytes as usize);
        self.file.read_exact_at(&mut bytes, block.offset).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                let (found, expected) = (self.file.len(), block.offset + block.bytes);
                let found = found.map_or("fewer".to_owned(), |length| length.to_string());
                invalid_data(format!("found {found} bytes in the file, expected {expected}"))
            }
            _ => error,
        })?;
        Ok(bytes.into())
    }
}

fn invalid_data(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl fmt::Debug for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("run")
            .field("rows", &self.rows)
            .field("blocks", &self.blocks.len())
            .field("bytes", &self.disk.bytes())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RunWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RunWriter").field(&self.run).finish()
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Run").field(&self.run).finish()
    }
}

impl fmt::Debug for RunReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RunReader").field(&self.run.run).field(&self.next).finish()
    }
}
