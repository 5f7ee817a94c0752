//! Random columns of every type: values that meet across types, in every layout.
//!
//! A [`Draw`] is type-free randomness; [`build`] turns draws into an array of a type. So two
//! columns of different types often hold the same number, which is where mistakes hide.

use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BinaryViewBuilder, FixedSizeBinaryBuilder, LargeBinaryBuilder,
    LargeStringBuilder, StringBuilder, StringViewBuilder,
};
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::i256;
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use half::f16;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;

/// How large the numbers of a case are; every encoding has a case that reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Magnitude {
    /// A few small numbers: many ties.
    Small,
    /// Small numbers in other units, up to about 2^60.
    Medium,
    /// Anything, extremes included.
    Any,
}

/// Randomness for one value.
#[derive(Clone, Debug)]
pub struct Draw {
    pick: u8,
    bits: [u64; 4],
}

/// How a column is laid out in memory.
#[derive(Clone, Copy, Debug)]
pub enum Layout {
    Plain,
    Sliced,
    /// Fewer values than rows, some of them null, some without a row.
    Dictionary,
    /// More values than rows.
    LargeDictionary,
    Runs,
    DictionaryOfRuns,
    RunsOfDictionary,
}

/// Everything random about one column but its type.
#[derive(Clone, Debug)]
pub struct Recipe {
    pub rows: Vec<Option<Draw>>,
    pub layout: Layout,
    pub cuts: Vec<usize>,
}

pub fn magnitude() -> impl Strategy<Value = Magnitude> {
    prop_oneof![Just(Magnitude::Small), Just(Magnitude::Medium), Just(Magnitude::Any)]
}

pub fn recipe() -> impl Strategy<Value = Recipe> {
    recipe_of(0..14)
}

pub fn recipe_of(rows: std::ops::Range<usize>) -> impl Strategy<Value = Recipe> {
    let draw = (any::<u8>(), any::<[u64; 4]>()).prop_map(|(pick, bits)| Draw { pick, bits });
    let layout = prop_oneof![
        3 => Just(Layout::Plain),
        2 => Just(Layout::Sliced),
        2 => Just(Layout::Dictionary),
        1 => Just(Layout::LargeDictionary),
        1 => Just(Layout::Runs),
        1 => Just(Layout::DictionaryOfRuns),
        1 => Just(Layout::RunsOfDictionary),
    ];
    (vec(weighted(0.85, draw), rows), layout, vec(0..14usize, 0..4))
        .prop_map(|(rows, layout, cuts)| Recipe { rows, layout, cuts })
}

impl Recipe {
    /// The chunks of a column of this type.
    pub fn chunks(&self, data_type: &DataType, magnitude: Magnitude) -> Vec<ArrayRef> {
        let array = self.array(data_type, magnitude);
        let mut cuts: Vec<_> = self.cuts.iter().map(|&cut| cut.min(array.len())).collect();
        cuts.sort_unstable();
        let starts = std::iter::once(0).chain(cuts.iter().copied());
        let ends = cuts.iter().copied().chain([array.len()]);
        starts.zip(ends).map(|(start, end)| array.slice(start, end - start)).collect()
    }

    fn array(&self, data_type: &DataType, magnitude: Magnitude) -> ArrayRef {
        let rows = &self.rows;
        let plain = build(data_type, magnitude, rows);
        match self.layout {
            Layout::Plain => plain,
            Layout::Sliced => plain.slice(rows.len() / 3, rows.len() / 2),
            Layout::Dictionary => dictionary(plain.slice(0, rows.len().div_ceil(3)), rows),
            Layout::LargeDictionary => dictionary(plain, &rows[..rows.len() / 2]),
            Layout::Runs => runs(plain, rows),
            Layout::DictionaryOfRuns => dictionary(runs(plain, rows), rows),
            Layout::RunsOfDictionary => runs(dictionary(plain, rows), rows),
        }
    }
}

/// Rows refer to any of the values.
fn dictionary(values: ArrayRef, rows: &[Option<Draw>]) -> ArrayRef {
    let keys: Int8Array = rows
        .iter()
        .map(|row| row.as_ref().filter(|_| !values.is_empty()))
        .map(|row| row.map(|draw| (draw.bits[3] % values.len() as u64) as i8))
        .collect();
    Arc::new(DictionaryArray::new(keys, values))
}

/// Each value one to three times, the first and last rows sliced away.
fn runs(values: ArrayRef, rows: &[Option<Draw>]) -> ArrayRef {
    let mut end = 0;
    let ends: Int32Array = rows
        .iter()
        .map(|row| {
            end += 1 + row.as_ref().map_or(0, |draw| (draw.bits[3] >> 8) as i32 & 1);
            Some(end)
        })
        .collect();
    let runs = RunArray::<Int32Type>::try_new(&ends, &values).unwrap();
    let (start, len) = (runs.len() / 5, runs.len() - 2 * (runs.len() / 5));
    Arc::new(runs.slice(start, len))
}

/// A plain array of this type.
pub fn build(data_type: &DataType, magnitude: Magnitude, rows: &[Option<Draw>]) -> ArrayRef {
    use DataType::*;
    macro_rules! integers {
        ($arrow_type:ty, $native:ty) => {{
            // Nulls keep a wild number in their slot.
            let values = rows.iter().map(|row| match row {
                Some(draw) => draw.integer(magnitude).as_i128() as $native,
                None => <$native>::MIN,
            });
            let nulls = rows.iter().map(Option::is_some).collect::<Vec<_>>();
            let values = values.collect::<Vec<_>>().into();
            let array = PrimitiveArray::<$arrow_type>::new(values, Some(nulls.into()));
            Arc::new(array.with_data_type(data_type.clone())) as ArrayRef
        }};
    }
    macro_rules! strings {
        ($builder:expr) => {{
            let mut builder = $builder;
            for row in rows {
                builder.append_option(row.as_ref().map(Draw::string));
            }
            Arc::new(builder.finish()) as ArrayRef
        }};
    }
    macro_rules! binaries {
        ($builder:expr) => {{
            let mut builder = $builder;
            for row in rows {
                builder.append_option(row.as_ref().map(Draw::binary));
            }
            Arc::new(builder.finish()) as ArrayRef
        }};
    }
    let floats = || rows.iter().map(|row| row.as_ref().map(|draw| draw.float(magnitude)));
    match data_type {
        Null => Arc::new(NullArray::new(rows.len())),
        Boolean => Arc::new(BooleanArray::from_iter(
            rows.iter().map(|row| row.as_ref().map(|draw| draw.pick & 1 == 1)),
        )),
        Int8 => integers!(Int8Type, i8),
        Int16 => integers!(Int16Type, i16),
        Int32 => integers!(Int32Type, i32),
        Int64 => integers!(Int64Type, i64),
        UInt8 => integers!(UInt8Type, u8),
        UInt16 => integers!(UInt16Type, u16),
        UInt32 => integers!(UInt32Type, u32),
        UInt64 => integers!(UInt64Type, u64),
        Float16 => Arc::new(Float16Array::from_iter(floats().map(|f| f.map(f16::from_f64)))),
        Float32 => Arc::new(Float32Array::from_iter(floats().map(|f| f.map(|f| f as f32)))),
        Float64 => Arc::new(Float64Array::from_iter(floats())),
        Decimal32(..) => integers!(Decimal32Type, i32),
        Decimal64(..) => integers!(Decimal64Type, i64),
        Decimal128(..) => integers!(Decimal128Type, i128),
        Decimal256(..) => {
            let values = rows.iter().map(|row| row.as_ref().map(|draw| draw.integer(magnitude)));
            let array = Decimal256Array::from_iter(values);
            Arc::new(array.with_data_type(data_type.clone()))
        }
        Date32 => integers!(Date32Type, i32),
        Date64 => integers!(Date64Type, i64),
        Timestamp(TimeUnit::Second, _) => integers!(TimestampSecondType, i64),
        Timestamp(TimeUnit::Millisecond, _) => integers!(TimestampMillisecondType, i64),
        Timestamp(TimeUnit::Microsecond, _) => integers!(TimestampMicrosecondType, i64),
        Timestamp(TimeUnit::Nanosecond, _) => integers!(TimestampNanosecondType, i64),
        Time32(TimeUnit::Second) => integers!(Time32SecondType, i32),
        Time32(_) => integers!(Time32MillisecondType, i32),
        Time64(TimeUnit::Microsecond) => integers!(Time64MicrosecondType, i64),
        Time64(_) => integers!(Time64NanosecondType, i64),
        Duration(TimeUnit::Second) => integers!(DurationSecondType, i64),
        Duration(TimeUnit::Millisecond) => integers!(DurationMillisecondType, i64),
        Duration(TimeUnit::Microsecond) => integers!(DurationMicrosecondType, i64),
        Duration(TimeUnit::Nanosecond) => integers!(DurationNanosecondType, i64),
        Interval(IntervalUnit::YearMonth) => integers!(IntervalYearMonthType, i32),
        Utf8 => strings!(StringBuilder::new()),
        LargeUtf8 => strings!(LargeStringBuilder::new()),
        Utf8View => strings!(StringViewBuilder::new()),
        Binary => binaries!(BinaryBuilder::new()),
        LargeBinary => binaries!(LargeBinaryBuilder::new()),
        BinaryView => binaries!(BinaryViewBuilder::new()),
        FixedSizeBinary(width) => {
            let mut builder = FixedSizeBinaryBuilder::new(*width);
            for row in rows {
                match row {
                    None => builder.append_null(),
                    Some(draw) => {
                        let mut value = draw.binary();
                        value.resize(*width as usize, 0);
                        builder.append_value(value).unwrap();
                    }
                }
            }
            Arc::new(builder.finish())
        }
        other => panic!("no random arrays of type {other}"),
    }
}

impl Draw {
    /// The caller cuts it to its width.
    fn integer(&self, magnitude: Magnitude) -> i256 {
        let small = i256::from_i128(i128::from(self.bits[0] % 7) - 3);
        let exponent = (self.bits[1] % 19) as u32;
        match (magnitude, self.pick % 8) {
            (Magnitude::Small, _) | (_, 0) => small,
            // The same number in another scale or unit of time.
            (Magnitude::Medium, 1..4) => {
                small.wrapping_mul(i256::from_i128(10i128.pow(exponent % 18)))
            }
            (Magnitude::Medium, 4..6) => {
                let unit = 86_400 * 1_000i128.pow(exponent % 4);
                small.wrapping_mul(i256::from_i128(unit))
            }
            (Magnitude::Medium, _) => i256::from_i128(i128::from(self.bits[1] as i64 >> 4)),
            (Magnitude::Any, 1 | 2) => {
                let exponent = (self.bits[1] % 77) as u32;
                small.wrapping_mul(i256::from_i128(10).wrapping_pow(exponent))
            }
            (Magnitude::Any, 3..6) => {
                let edge = edges()[self.bits[1] as usize % edges().len()];
                let near = edge.wrapping_add(i256::from_i128(i128::from(self.bits[0] % 3) - 1));
                if self.pick & 8 == 0 { near } else { near.wrapping_neg() }
            }
            (Magnitude::Any, _) => {
                let [a, b, c, d] = self.bits;
                let low = u128::from(a) << 64 | u128::from(b);
                let high = (u128::from(c) << 64 | u128::from(d)) as i128;
                // Numbers of all lengths, not only of the longest.
                i256::from_parts(low, high) >> (self.pick / 8 * 8)
            }
        }
    }

    fn float(&self, magnitude: Magnitude) -> f64 {
        let small = (self.bits[0] % 29) as f64 / 4.0 - 3.5;
        let special = [-0.0, 0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        match (magnitude, self.pick >> 3 & 7) {
            (_, 0) => special[self.bits[1] as usize % special.len()],
            (Magnitude::Small, _) | (_, 1) => small,
            // Numbers that decimals have and floats have not.
            (_, 2) => (self.bits[0] % 29) as f64 / 10f64.powi((self.bits[1] % 23) as i32),
            // What the integers of the other column are rounded to, and its neighbours.
            (_, 3 | 4) => {
                let nearest: f64 = self.integer(magnitude).to_string().parse().unwrap();
                match self.bits[3] % 3 {
                    0 => nearest,
                    1 => nearest.next_up(),
                    _ => nearest.next_down(),
                }
            }
            (_, 5) => (self.bits[1] as i64 >> (self.bits[2] % 64)) as f64 / 128.0,
            (Magnitude::Medium, _) => (self.bits[1] as i64) as f64 / 1024.0,
            // Subnormals, NaNs with payloads and all the rest.
            (Magnitude::Any, 6) => f64::from_bits(self.bits[1] & !(0x7ff << 52)),
            (Magnitude::Any, _) => f64::from_bits(self.bits[1]),
        }
    }

    fn text(&self, alphabet: &[&str]) -> String {
        const PREFIXES: [&str; 6] = ["", "", "", "12345678", "a\0", "a prefix beyond 16 bytes "];
        const LENGTHS: [usize; 8] = [0, 1, 1, 2, 2, 3, 8, 16];
        let prefix = PREFIXES[self.pick as usize % PREFIXES.len()];
        let length = LENGTHS[self.bits[0] as usize % LENGTHS.len()];
        let letters = (0..length).map(|at| {
            let draw = self.bits[1].rotate_right(5 * at as u32) as usize;
            // Long strings differ in their last letters only, so that some are equal.
            alphabet[if at + 2 < length { 0 } else { draw % alphabet.len() }]
        });
        std::iter::once(prefix).chain(letters).collect()
    }

    fn string(&self) -> String {
        self.text(&["a", "b", "\0", "é", "\u{10ffff}"])
    }

    fn binary(&self) -> Vec<u8> {
        let mut value = self.text(&["a", "b", "\0"]).into_bytes();
        if self.bits[2].is_multiple_of(4) {
            value.push(0xff);
        }
        value
    }
}

/// Numbers at which encodings change or break.
fn edges() -> Vec<i256> {
    let mut edges: Vec<_> = [7, 8, 15, 16, 24, 31, 32, 53, 54, 63, 64, 65, 126, 127, 128, 200]
        .map(|bits| i256::ONE << bits)
        .to_vec();
    edges.extend([9, 18, 19, 22, 38, 76].map(|digits| i256::from_i128(10).wrapping_pow(digits)));
    edges.extend([i256::MAX, i256::MIN]);
    // 9007199254740993 and its like lie half way between two floats.
    edges.push(i256::from_i128((1 << 53) + 1));
    edges.push(i256::from_i128((1 << 63) + (1 << 10)));
    edges
}
