//! Arrow columns become order-preserving integer keys and equality groups.
//!
//! Operators compare keys, never values, so this is the only place that says how values compare:
//!
//! - **Nulls**: a null key matches nothing. Its slot in [`Keys`] holds an arbitrary value, its
//!   group is [`NO_GROUP`]. A dictionary entry that is null makes its rows null. The `Null` type
//!   compares with every type and matches nothing.
//! - **Floats**: NaN (of any sign and payload) equals NaN and is greater than every number,
//!   infinity included; -0.0 equals 0.0.
//! - **Types**: columns that are compared with each other are brought to a common domain without
//!   loss, and every comparison is exact.
//!
//! | family | members | compared |
//! |---|---|---|
//! | numbers | integers, floats, decimals of any width and scale | by numeric value |
//! | booleans | | false before true |
//! | local time | dates, timestamps without a zone | a date is its midnight |
//! | instants | timestamps with a zone | in UTC, whatever the zones |
//! | time of day, durations, year-month intervals | of any unit | by length |
//! | strings | `Utf8`, `LargeUtf8`, `Utf8View` | by their UTF-8 bytes |
//! | binary | variable, view or fixed size | by bytes; a prefix comes first |
//!
//! Dictionaries and run-end encoding are looked through. Members of different families do not
//! compare: an error names both columns and both types. Nested types and the other intervals have
//! no order.
//!
//! Cost: one pass for what fits 64 bits by its type, and for floats; one more to measure what may
//! or may not fit. Strings that differ in at most 15 bytes after their common prefix are packed;
//! only longer ones, decimals beyond 128 bits and some decimals against floats are ranked, which
//! sorts their distinct values.
//!
//! Bands, `abs(a - b) <= width`, become comparisons with the [ends](band_ends) of an interval.
//!
//! Keys of different calls do not compare: width and meaning depend on the data of the call.

mod band;
mod bytes;
mod digits;
mod domain;
mod exact;
mod float;
mod group;
mod intern;
mod mixed;
mod numbers;
mod plain;
mod position;

use arrow_array::ArrayRef;
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use crate::error::{Error, Result};
use domain::Domain;
use plain::PlainColumn;
use position::Reading;

pub use band::{band_ends, check_band};
pub use group::{Groups, NO_GROUP, check_equality, equality_groups};
pub use numbers::{NumberType, Numbers, numbers};

/// One column of one input, in chunks as it arrived.
#[derive(Clone, Debug)]
pub struct Column {
    /// Names the column in errors, for example `left column "price"`.
    pub label: String,
    /// Type of every chunk; there may be no chunk at all.
    pub data_type: DataType,
    /// The values; chunks may be of length zero.
    pub chunks: Vec<ArrayRef>,
}

impl Column {
    /// A column of these chunks.
    pub fn new(label: impl Into<String>, data_type: DataType, chunks: Vec<ArrayRef>) -> Self {
        Self { label: label.into(), data_type, chunks }
    }

    /// Rows of all chunks.
    pub fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.len()).sum()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The keys of one column: `a < b` exactly if the value of `a` is less than the value of `b`.
#[derive(Clone, Debug)]
pub struct KeyColumn {
    /// One key per row, arbitrary where the row is null.
    pub keys: Keys,
    /// Which rows are null; `None` if none is.
    pub nulls: Option<NullBuffer>,
    reading: Reading,
}

impl KeyColumn {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether this row is null and so matches nothing.
    pub fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Where `rows` lie on a number line that the columns encoded together share: a smaller key
    /// never lies above a greater one. See [`has_values`](Self::has_values) for what it measures.
    pub fn positions(&self, rows: &[u32]) -> Vec<f64> {
        let reading = self.reading;
        match &self.keys {
            Keys::U64(keys) => {
                rows.iter().map(|&row| reading.place64(keys[row as usize])).collect()
            }
            Keys::U128(keys) => {
                rows.iter().map(|&row| reading.place128(keys[row as usize])).collect()
            }
        }
    }

    /// Whether positions are the values themselves (numbers, times) and not just their order.
    pub fn has_values(&self) -> bool {
        self.reading != Reading::Order
    }

    /// The keys of `rows`, in their order and as often as they are named.
    pub fn take(&self, rows: &[u32]) -> Self {
        let nulls = self
            .nulls
            .as_ref()
            .map(|nulls| rows.iter().map(|&row| nulls.is_valid(row as usize)).collect());
        Self { keys: self.keys.take(rows), nulls, reading: self.reading }
    }
}

/// Keys in the narrowest of two widths; columns encoded together have the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Keys of 64 bits.
    U64(Vec<u64>),
    /// Keys of 128 bits.
    U128(Vec<u128>),
}

impl Keys {
    /// Number of keys.
    pub fn len(&self) -> usize {
        match self {
            Self::U64(keys) => keys.len(),
            Self::U128(keys) => keys.len(),
        }
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key at `place`.
    pub fn at(&self, place: usize) -> u128 {
        match self {
            Self::U64(keys) => keys[place].into(),
            Self::U128(keys) => keys[place],
        }
    }

    /// The keys at `places`, in their order.
    pub fn take(&self, places: &[u32]) -> Self {
        match self {
            Self::U64(keys) => Self::U64(places.iter().map(|&at| keys[at as usize]).collect()),
            Self::U128(keys) => Self::U128(places.iter().map(|&at| keys[at as usize]).collect()),
        }
    }
}

/// Keys of several columns, all of the same width, and how they read as numbers.
enum Encoded {
    U64(Vec<Vec<u64>>, Reading),
    U128(Vec<Vec<u128>>, Reading),
}

/// Whether columns of these labels and types can be ordered against each other.
///
/// For use when a join is described, before data is read.
pub fn check_ordered(columns: &[(&str, &DataType)]) -> Result<()> {
    Domain::unify(columns).map(drop)
}

/// Encodes columns that are compared with each other into one key space, in their order.
pub fn ordered_keys(columns: &[Column]) -> Result<Vec<KeyColumn>> {
    let domain = unify(&columns.iter().collect::<Vec<_>>())?;
    let plain = columns.iter().map(PlainColumn::new).collect::<Result<Vec<_>>>()?;
    let (keys, reading): (Vec<Keys>, _) = match encode(&plain, domain)? {
        Encoded::U64(keys, reading) => (keys.into_iter().map(Keys::U64).collect(), reading),
        Encoded::U128(keys, reading) => (keys.into_iter().map(Keys::U128).collect(), reading),
    };
    Ok(keys
        .into_iter()
        .zip(&plain)
        .map(|(keys, column)| KeyColumn { keys, nulls: column.nulls(), reading })
        .collect())
}

fn unify(columns: &[&Column]) -> Result<Domain> {
    let types: Vec<_> = columns.iter().map(|c| (c.label.as_str(), &c.data_type)).collect();
    Domain::unify(&types)
}

fn encode(columns: &[PlainColumn], domain: Domain) -> Result<Encoded> {
    match domain {
        Domain::Null => {
            let keys = columns.iter().map(|c| vec![0; c.len()]).collect();
            Ok(Encoded::U64(keys, Reading::Order))
        }
        Domain::Exact(unit) => exact::encode(columns, unit),
        Domain::Float => float::encode(columns),
        Domain::Mixed(unit) => mixed::encode(columns, unit),
        Domain::Bytes => bytes::encode(columns),
    }
}

/// Types are checked before data is touched, so a type nobody dispatches on is a bug.
fn unexpected(data_type: &DataType) -> Error {
    Error::internal(format!("no key encoding for type {data_type}"))
}
