//! Matches become record batches: lazily, capped in rows and bytes, padded with nulls.
//!
//! A kernel reports which rows belong together as [`Matches`], in one of two forms: index pairs,
//! or for each row of one table a contiguous slice of the other, which is in key order; and in
//! the same two forms for more than two inputs. An
//! [`Assembler`] turns them into batches of the [`Layout`] that the join promised, each within
//! [`Caps`]. [`BatchStream`] runs a join's tasks and hands batches out one at a time.
//!
//! Output columns: all of the left input, then those of the right input except its equality
//! columns; a right name that the left input has too gets the suffix.

mod assembler;
mod gather;
mod layout;
mod matches;
mod picker;
mod row_bytes;
mod stream;

pub use assembler::Assembler;
pub use layout::Layout;
pub use matches::{Cursor, Matches, Side};
pub(crate) use picker::Picker;
pub(crate) use stream::BatchTask;
pub use stream::{BatchStream, MatchTask};

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
