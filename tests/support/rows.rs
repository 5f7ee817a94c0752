//! Random rows with ties, nulls, NaN and both zeros, as plain values and as tables cut anyhow.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, UInt32Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, UInt32Type};
use arrow_array::{
    Array, ArrayRef, Float64Array, Int32Array, RecordBatch, StringArray, UInt32Array,
};
use arrow_schema::Schema;
use dovetail::table::Table;
use proptest::prelude::*;

/// One row: three key columns, the row's number, and a nested payload made of that number.
#[derive(Clone, Debug)]
pub struct Row {
    pub int: Option<i32>,
    pub float: Option<f64>,
    pub text: Option<String>,
    pub id: u32,
}

impl PartialEq for Row {
    /// Bit by bit: a payload must come out as it went in, NaN and -0.0 too.
    fn eq(&self, other: &Self) -> bool {
        self.int == other.int
            && self.float.map(f64::to_bits) == other.float.map(f64::to_bits)
            && self.text == other.text
            && self.id == other.id
    }
}

/// Up to `most` rows over narrow ranges, so that ties are common.
pub fn rows(most: usize) -> impl Strategy<Value = Vec<Row>> {
    let int = prop::option::weighted(0.9, -3..4_i32);
    let number = prop_oneof![
        4 => (-3..4_i32).prop_map(f64::from),
        1 => Just(-0.0),
        1 => Just(f64::NAN),
        1 => Just(-f64::NAN),
        1 => prop::sample::select(vec![f64::INFINITY, f64::NEG_INFINITY, 0.5, 1e300]),
    ];
    let float = prop::option::weighted(0.9, number);
    let text = prop::option::weighted(0.9, prop::sample::select(vec!["", "a", "ab", "b"]));
    prop::collection::vec((int, float, text), 0..=most).prop_map(|rows| {
        let number = |(id, (int, float, text)): (usize, (_, _, Option<&str>))| Row {
            int,
            float,
            text: text.map(str::to_owned),
            id: id as u32,
        };
        rows.into_iter().enumerate().map(number).collect()
    })
}

/// The rows as one batch. Column names: int, float, text, id, tags.
pub fn batch(rows: &[Row]) -> RecordBatch {
    let mut tags = ListBuilder::new(UInt32Builder::new());
    for row in rows {
        tags.append_value((0..row.id % 3).map(|tag| Some(row.id + tag)));
    }
    let column = |name: &str, array: ArrayRef| (name.to_owned(), array, true);
    RecordBatch::try_from_iter_with_nullable([
        column("int", Arc::new(rows.iter().map(|row| row.int).collect::<Int32Array>())),
        column("float", Arc::new(rows.iter().map(|row| row.float).collect::<Float64Array>())),
        column("text", Arc::new(rows.iter().map(|row| row.text.clone()).collect::<StringArray>())),
        column("id", Arc::new(rows.iter().map(|row| Some(row.id)).collect::<UInt32Array>())),
        column("tags", Arc::new(tags.finish())),
    ])
    .unwrap()
}

/// The rows as a table cut at `cuts` (taken modulo the length); cuts may repeat.
pub fn table(rows: &[Row], cuts: &[usize]) -> Arc<Table> {
    let whole = batch(rows);
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (rows.len() + 1)).collect();
    ends.push(rows.len());
    ends.sort_unstable();
    let mut begin = 0;
    let mut batches = Vec::new();
    for end in ends {
        batches.push(whole.slice(begin, end - begin));
        begin = end;
    }
    Arc::new(Table::new("test", whole.schema(), batches).unwrap())
}

/// Reads the five columns from position `first` on back into rows; `None` where padded.
pub fn read(batch: &RecordBatch, first: usize) -> Vec<Option<Row>> {
    let ints = batch.column(first).as_primitive::<Int32Type>();
    let floats = batch.column(first + 1).as_primitive::<Float64Type>();
    let texts = batch.column(first + 2).as_string::<i32>();
    let ids = batch.column(first + 3).as_primitive::<UInt32Type>();
    let tags = batch.column(first + 4).as_list::<i32>();
    let row = |i: usize| {
        if ids.is_null(i) {
            return None;
        }
        let id = ids.value(i);
        let tags = tags.value(i);
        let tags: Vec<u32> = tags.as_primitive::<UInt32Type>().values().to_vec();
        assert_eq!(tags, (0..id % 3).map(|tag| id + tag).collect::<Vec<_>>(), "tags of row {id}");
        Some(Row {
            int: ints.is_valid(i).then(|| ints.value(i)),
            float: floats.is_valid(i).then(|| floats.value(i)),
            text: texts.is_valid(i).then(|| texts.value(i).to_owned()),
            id,
        })
    };
    (0..batch.num_rows()).map(row).collect()
}

/// The schema of [`batch`].
pub fn schema() -> Arc<Schema> {
    batch(&[]).schema()
}
