//! Runs on disk: checksummed Arrow IPC blocks in private files that cannot be left behind.
//!
//! ```text
//! SpillSpace ── create_run ─▶ RunWriter ── finish ─▶ Run ── reader, reader_at ─▶ RunReader
//! folder, quota, counters     write = one block      immutable, shared           one block at a time
//! ```
//!
//! - A run gives back the batches it was given, equal and in order, under the schema it was created
//!   with. Order within a run is the writer's business.
//! - A reader may be dropped at any time and another one opened at the same [`Position`]: that is
//!   how a merge pauses, releases its pages and goes on.
//! - Damage (a flipped bit, a short file, another run's block) is an [`Error::Spill`] of kind
//!   [`InvalidData`](io::ErrorKind::InvalidData), found by checksum before anything is decoded:
//!   never a panic, never wrong rows.
//! - A file has no name from its first instant (`O_TMPFILE`, or unlinked on creation), mode 0600:
//!   whatever ends the process, kill -9 included, the system reclaims it.
//! - The quota counts blocks on disk, headers included, until run and readers are dropped. A write
//!   that fails, for the quota or for the disk, leaves run, quota and counters as they were.
//!
//! **Pages** are a unit of account, as in the literature: a block of n bytes costs ⌈n / page size⌉
//! page accesses each time it is written or read. Nothing is aligned to them.
//!
//! **Memory**, which the caller accounts for: a writer keeps one encoded block, a reader one block
//! while it decodes it and nothing between calls; an open run costs 24 bytes per block.
//!
//! **Limits**: arrow-ipc cannot write a dictionary whose values are a dictionary; `create_run`
//! refuses it. Where the default folder is a RAM disk, spilling to it frees no memory.

mod block;
mod compact;
mod file;
mod payload;
mod run;

#[cfg(test)]
mod damage;

use std::fmt;
use std::io;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use arrow_schema::SchemaRef;

use crate::budget::Budget;
use crate::{Error, Result};

pub use run::{Position, Run, RunReader, RunWriter};

/// How blocks are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    /// LZ4: less to write, at memory-like speed.
    #[default]
    Lz4,
    /// None, for experiments whose page counts should follow from row counts.
    None,
}

/// Where and how to spill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpillOptions {
    /// Folder for the files; `None` is the system's folder for temporary files.
    pub folder: Option<PathBuf>,
    /// The most bytes on disk at once; `None` is no limit but the disk's.
    pub quota: Option<u64>,
    /// How blocks are compressed.
    pub compression: Compression,
    /// Bytes that count as one page access.
    pub page_size: NonZeroU64,
}

impl Default for SpillOptions {
    /// System folder, no quota, LZ4, pages of 4 KiB.
    fn default() -> Self {
        Self {
            folder: None,
            quota: None,
            compression: Compression::default(),
            page_size: NonZeroU64::new(4096).unwrap(),
        }
    }
}

/// Block transfers in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Blocks transferred.
    pub blocks: u64,
    /// Page accesses that they cost.
    pub pages: u64,
    /// Their bytes, headers included.
    pub bytes: u64,
}

/// What a space has seen so far. Each number is exact; numbers read while others write need not be
/// of the same instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpillStats {
    /// Blocks written to disk; failed writes do not count.
    pub written: Traffic,
    /// Blocks read back; a block read twice counts twice, a damaged or failed one not at all.
    pub read: Traffic,
    /// Bytes on disk now.
    pub live_bytes: u64,
    /// The most bytes on disk at once, including a block that was being written when it failed.
    pub peak_bytes: u64,
}

/// A step that can fail for reasons outside this program; see [`SpillSpace::with_faults`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A run's file is created.
    Create,
    /// A run's block is written.
    Write {
        /// Its number in the run.
        block: usize,
    },
    /// A run's block is read.
    Read {
        /// Its number in the run.
        block: usize,
    },
}

type Faults = dyn Fn(Operation) -> io::Result<()> + Send + Sync;

/// Where an operator's threads spill to; clones share folder, quota and counters.
#[derive(Clone)]
pub struct SpillSpace {
    shared: Arc<Shared>,
}

struct Shared {
    folder: PathBuf,
    disk: Budget,
    compression: Compression,
    page_size: NonZeroU64,
    written: Counters,
    read: Counters,
    faults: Option<Box<Faults>>,
}

#[derive(Default)]
struct Counters {
    blocks: AtomicU64,
    pages: AtomicU64,
    bytes: AtomicU64,
}

impl SpillSpace {
    /// A space with these options. Nothing is touched on disk before the first run is created.
    pub fn new(options: SpillOptions) -> Self {
        Self::build(options, None)
    }

    /// For tests: `faults` is asked before each operation, and an error it returns stands for that
    /// operation's failure.
    pub fn with_faults(
        options: SpillOptions,
        faults: impl Fn(Operation) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self::build(options, Some(Box::new(faults)))
    }

    fn build(options: SpillOptions, faults: Option<Box<Faults>>) -> Self {
        let SpillOptions { folder, quota, compression, page_size } = options;
        let shared = Shared {
            folder: folder.unwrap_or_else(std::env::temp_dir),
            disk: quota.map_or_else(Budget::unlimited, Budget::bytes),
            compression,
            page_size,
            written: Counters::default(),
            read: Counters::default(),
            faults,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Starts a run of batches with this schema.
    pub fn create_run(&self, schema: &SchemaRef) -> Result<RunWriter> {
        RunWriter::create(self.clone(), schema.clone())
    }

    /// The counters so far.
    pub fn stats(&self) -> SpillStats {
        SpillStats {
            written: self.shared.written.snapshot(),
            read: self.shared.read.snapshot(),
            live_bytes: self.shared.disk.used(),
            peak_bytes: self.shared.disk.peak(),
        }
    }

    /// The folder that files are created in.
    pub fn folder(&self) -> &Path {
        &self.shared.folder
    }

    /// Bytes that count as one page access.
    pub fn page_size(&self) -> NonZeroU64 {
        self.shared.page_size
    }

    /// Does `operation` by calling `perform`, unless a fault was asked for.
    fn attempt<T>(
        &self,
        operation: Operation,
        perform: impl FnOnce() -> io::Result<T>,
    ) -> Result<T> {
        let fault = self.shared.faults.as_ref().map_or(Ok(()), |faults| faults(operation));
        fault.and_then(|()| perform()).map_err(|source| {
            let folder = self.shared.folder.display();
            let doing = match operation {
                Operation::Create => format!("creating a spill file in {folder}"),
                Operation::Write { block } => {
                    format!("writing block {block} of a spilled run in {folder}")
                }
                Operation::Read { block } => {
                    format!("reading block {block} of a spilled run in {folder}")
                }
            };
            Error::Spill { doing, source }
        })
    }
}

impl fmt::Debug for SpillSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpillSpace")
            .field("folder", &self.shared.folder)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl Counters {
    fn count(&self, bytes: u64, page_size: NonZeroU64) {
        self.blocks.fetch_add(1, Relaxed);
        self.pages.fetch_add(bytes.div_ceil(page_size.get()), Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    fn snapshot(&self) -> Traffic {
        Traffic {
            blocks: self.blocks.load(Relaxed),
            pages: self.pages.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
        }
    }
}
