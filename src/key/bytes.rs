//! Strings and binaries by their bytes: packed into integers if short, ranked if not.

use std::hash::{BuildHasher, Hash, Hasher};

use arrow_array::cast::AsArray;
use arrow_array::iterator::ArrayIter;
use arrow_array::{Array, ArrayAccessor};
use arrow_schema::DataType;
use hashbrown::DefaultHashBuilder;

use super::intern::{self, Interner};
use super::plain::{PlainColumn, gather, leaves};
use super::position::Reading;
use super::{Encoded, unexpected};
use crate::error::Result;

/// Runs `$body` with `$values` bound to the array, whose values are `&[u8]`.
macro_rules! with_bytes {
    ($array:expr, $values:ident => $body:expr) => {
        match $array.data_type() {
            DataType::Binary => {
                let $values = $array.as_binary::<i32>();
                $body
            }
            DataType::LargeBinary => {
                let $values = $array.as_binary::<i64>();
                $body
            }
            DataType::BinaryView => {
                let $values = $array.as_binary_view();
                $body
            }
            DataType::FixedSizeBinary(_) => {
                let $values = $array.as_fixed_size_binary();
                $body
            }
            other => return Err(unexpected(other)),
        }
    };
}

pub(super) fn encode(columns: &[PlainColumn]) -> Result<Encoded> {
    let mut shape = Shape::default();
    for array in leaves(columns) {
        with_bytes!(array, values => shape.include(values));
    }
    let skip = shape.common();
    Ok(match shape.longest - skip {
        // One byte of the key is for the length.
        0..=7 => {
            let keys = gather(columns, |array, out| {
                with_bytes!(array, values => append(values, |value| pack64(&value[skip..]), out));
                Ok(())
            })?;
            Encoded::U64(keys, Reading::Order)
        }
        8..=15 => {
            let keys = gather(columns, |array, out| {
                with_bytes!(array, values => append(values, |value| pack128(&value[skip..]), out));
                Ok(())
            })?;
            Encoded::U128(keys, Reading::Order)
        }
        _ => Encoded::U64(ranks(columns, skip)?, Reading::Order),
    })
}

/// Numbers byte strings in the order in which they first appear.
#[derive(Default)]
pub(super) struct BytesInterner<'a> {
    ids: Interner<Hashed<'a>>,
    hasher: DefaultHashBuilder,
}

/// Bytes with their hash, so that a growing table does not read them all again, and different
/// ones rarely have to be compared.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Hashed<'a> {
    hash: u64,
    bytes: &'a [u8],
}

impl Hash for Hashed<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl<'a> BytesInterner<'a> {
    /// Appends the id of each value, zero for nulls.
    pub fn append(&mut self, array: &'a dyn Array, out: &mut Vec<u32>) -> Result<()> {
        with_bytes!(array, values => for value in ArrayIter::new(values) {
            out.push(match value {
                Some(bytes) => self.ids.id(Hashed { hash: self.hasher.hash_one(bytes), bytes })?,
                None => 0,
            });
        });
        Ok(())
    }

    /// How many distinct values there are.
    pub fn count(&self) -> u32 {
        self.ids.count()
    }
}

fn append<'a, K: Default>(
    values: impl ArrayAccessor<Item = &'a [u8]>,
    pack: impl Fn(&[u8]) -> K,
    out: &mut Vec<K>,
) {
    out.extend(ArrayIter::new(values).map(|value| value.map(&pack).unwrap_or_default()));
}

/// Of equal bytes up to the end of the shorter one, padded with zeros, the length decides.
fn pack64(value: &[u8]) -> u64 {
    let mut key = [0; 8];
    key[..value.len()].copy_from_slice(value);
    key[7] = value.len() as u8;
    u64::from_be_bytes(key)
}

fn pack128(value: &[u8]) -> u128 {
    let mut key = [0; 16];
    key[..value.len()].copy_from_slice(value);
    key[15] = value.len() as u8;
    u128::from_be_bytes(key)
}

fn ranks(columns: &[PlainColumn], skip: usize) -> Result<Vec<Vec<u64>>> {
    let mut interner = BytesInterner::default();
    let ids = gather(columns, |array, out| interner.append(array, out))?;
    let values = interner.ids.into_distinct();
    // Most comparisons end within the first bytes that differ, so these are kept at hand.
    let mut order: Vec<(u64, u32)> =
        values.iter().zip(0..).map(|(value, id)| (leading(&value.bytes[skip..]), id)).collect();
    order.sort_unstable_by(|a, b| {
        a.0.cmp(&b.0).then_with(|| values[a.1 as usize].bytes.cmp(values[b.1 as usize].bytes))
    });
    Ok(intern::rank_ids(ids, order.into_iter().map(|(_, id)| id)))
}

/// The first bytes as a number, zeros appended.
fn leading(value: &[u8]) -> u64 {
    let mut key = [0; 8];
    let len = value.len().min(8);
    key[..len].copy_from_slice(&value[..len]);
    u64::from_be_bytes(key)
}

/// What all values have in common.
#[derive(Default)]
struct Shape<'a> {
    prefix: Option<&'a [u8]>,
    longest: usize,
}

impl<'a> Shape<'a> {
    fn include(&mut self, values: impl ArrayAccessor<Item = &'a [u8]>) {
        for value in ArrayIter::new(values).flatten() {
            self.longest = self.longest.max(value.len());
            let prefix = self.prefix.unwrap_or(value);
            self.prefix = Some(match value.starts_with(prefix) {
                true => prefix,
                false => {
                    let common = prefix.iter().zip(value).take_while(|(a, b)| a == b).count();
                    &prefix[..common]
                }
            });
        }
    }

    /// Length of the prefix that all values share.
    fn common(&self) -> usize {
        self.prefix.map_or(0, <[u8]>::len)
    }
}
