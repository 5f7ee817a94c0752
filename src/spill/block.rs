//! A block's header: which block it is, and a checksum over header and payload.
//!
//! ```text
//! 0      4      8     16      24     32        40         64
//! │magic │crc32 │ run │ block │ rows │ payload │ reserved │ payload …
//! │      │      │     │number │      │ length  │ zeros    │
//! ```
//!
//! Little-endian. 64 bytes, so that a block read in one piece has its payload where Arrow wants
//! it and uncompressed columns need no copy. The checksum covers every byte but its own four.
//!
//! A reader knows what it should find, because the run's index is in memory. An intact block that
//! is another one (a write or read that went astray) therefore differs in its label.

/// Bytes of a header.
pub(super) const HEADER: usize = 64;

/// The last byte is the format's version.
const MAGIC: [u8; 4] = *b"dvt\x01";

/// What a header says about its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label {
    /// The run's random number.
    pub run: u64,
    /// The block's number in its run.
    pub block: u64,
    pub rows: u64,
    /// Bytes after the header.
    pub payload: u64,
}

/// Writes the header into the first [`HEADER`] bytes of `block`; its payload is the rest.
pub(super) fn seal(block: &mut [u8], label: Label) {
    block[..HEADER].fill(0);
    block[..4].copy_from_slice(&MAGIC);
    let fields = [label.run, label.block, label.rows, label.payload];
    for (place, field) in block[8..40].chunks_exact_mut(8).zip(fields) {
        place.copy_from_slice(&field.to_le_bytes());
    }
    let checksum = checksum(block);
    block[4..8].copy_from_slice(&checksum.to_le_bytes());
}

/// Says what is wrong with `block`, if it is not the intact block that `expected` describes.
pub(super) fn check(block: &[u8], expected: Label) -> Result<(), String> {
    if block.len() < HEADER {
        return Err(format!("found {} bytes, expected a header of {HEADER}", block.len()));
    }
    if block[..4] != MAGIC {
        return Err(format!(
            "found {:02x?} where a block begins, expected {MAGIC:02x?}",
            &block[..4]
        ));
    }
    let (found, computed) = (u32::from_le_bytes(block[4..8].try_into().unwrap()), checksum(block));
    if found != computed {
        return Err(format!("found checksum {found:08x}, expected {computed:08x} for its content"));
    }
    let field = |at: usize| u64::from_le_bytes(block[at..at + 8].try_into().unwrap());
    let found = Label { run: field(8), block: field(16), rows: field(24), payload: field(32) };
    if found != expected {
        return Err(format!("found another block, {found:?}, expected {expected:?}"));
    }
    if found.payload != (block.len() - HEADER) as u64 {
        return Err(format!(
            "found {} bytes of payload, expected {}",
            block.len() - HEADER,
            found.payload
        ));
    }
    Ok(())
}

fn checksum(block: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&block[..4]);
    hasher.update(&block[8..]);
    hasher.finalize()
}
