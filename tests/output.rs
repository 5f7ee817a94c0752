//! Assembly of matches into batches, for every type of payload and both forms of matches.
#![allow(missing_docs, reason = "tests")]

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::*;
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::{IntervalMonthDayNano, NullBuffer, i256};
use arrow_schema::{DataType, Field, Fields, Schema};
use dovetail::output::{Assembler, Caps, Layout, Matches, Side};
use dovetail::predicate::JoinKind;
use dovetail::table::{NO_ROW, Table};
use proptest::prelude::*;

/// A column of every layout, `rows` values each, nulls among them; value depends on row only.
fn payload(rows: usize) -> RecordBatch {
    let null = |i: usize| i % 5 == 3;
    let text = |i: usize| (!null(i)).then(|| "x".repeat(i % 4) + &"long ".repeat(i % 3) + "é");
    let int = |i: usize| (!null(i)).then_some(i as i64);
    let ids = 0..rows;
    let mut lists = ListBuilder::new(Int64Builder::new());
    let mut large_lists = LargeListBuilder::new(StringBuilder::new());
    let mut fixed_lists = FixedSizeListBuilder::new(Int32Builder::new(), 2);
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    let mut fixed_bytes = FixedSizeBinaryBuilder::new(3);
    for i in ids.clone() {
        (0..i % 3).for_each(|k| lists.values().append_option(int(i + k)));
        lists.append(!null(i));
        (0..i % 4).for_each(|k| large_lists.values().append_option(text(i + k)));
        large_lists.append(!null(i));
        fixed_lists.values().append_slice(&[i as i32, -1]);
        fixed_lists.append(!null(i));
        (0..i % 2).for_each(|k| {
            maps.keys().append_value(format!("k{k}"));
            maps.values().append_option(int(i));
        });
        maps.append(!null(i)).unwrap();
        if null(i) {
            fixed_bytes.append_null();
        } else {
            fixed_bytes.append_value([i as u8, 1, 2]).unwrap();
        }
    }
    let strings: StringArray = ids.clone().map(text).collect();
    let structs = StructArray::new(
        Fields::from(vec![
            Field::new("n", DataType::Int64, true),
            Field::new("s", DataType::Utf8, true),
        ]),
        vec![Arc::new(ids.clone().map(int).collect::<Int64Array>()), Arc::new(strings.clone())],
        Some(NullBuffer::from_iter(ids.clone().map(|i| !null(i)))),
    );
    let dictionary: DictionaryArray<Int8Type> =
        ids.clone().map(|i| (!null(i)).then(|| ["a", "b", "c"][i % 3])).collect();
    let months = ids.clone().map(|i| int(i).map(|n| IntervalMonthDayNano::new(n as i32, 1, 2)));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("i8", Arc::new(ids.clone().map(|i| int(i).map(|n| n as i8)).collect::<Int8Array>())),
        ("u16", Arc::new(ids.clone().map(|i| int(i).map(|n| n as u16)).collect::<UInt16Array>())),
        ("f32", Arc::new(ids.clone().map(|i| int(i).map(|n| n as f32)).collect::<Float32Array>())),
        ("i64", Arc::new(ids.clone().map(int).collect::<Int64Array>())),
        ("whole", Arc::new(ids.clone().map(|i| i as i64).collect::<Int64Array>())),
        (
            "bool",
            Arc::new(ids.clone().map(|i| int(i).map(|n| n % 2 == 0)).collect::<BooleanArray>()),
        ),
        (
            "d128",
            Arc::new(
                ids.clone()
                    .map(|i| int(i).map(i128::from))
                    .collect::<Decimal128Array>()
                    .with_precision_and_scale(30, 4)
                    .unwrap(),
            ),
        ),
        (
            "d256",
            Arc::new(
                ids.clone()
                    .map(|i| int(i).map(|n| i256::from_i128(n.into())))
                    .collect::<Decimal256Array>()
                    .with_precision_and_scale(60, 4)
                    .unwrap(),
            ),
        ),
        (
            "ts",
            Arc::new(
                ids.clone()
                    .map(int)
                    .collect::<TimestampMicrosecondArray>()
                    .with_timezone("Europe/Berlin"),
            ),
        ),
        ("months", Arc::new(months.collect::<IntervalMonthDayNanoArray>())),
        ("text", Arc::new(strings)),
        ("large", Arc::new(ids.clone().map(text).collect::<LargeStringArray>())),
        ("view", Arc::new(ids.clone().map(text).collect::<StringViewArray>())),
        (
            "bytes",
            Arc::new(BinaryArray::from_iter(ids.clone().map(|i| text(i).map(String::into_bytes)))),
        ),
        ("fixed", Arc::new(fixed_bytes.finish())),
        ("list", Arc::new(lists.finish())),
        ("large_list", Arc::new(large_lists.finish())),
        ("fixed_list", Arc::new(fixed_lists.finish())),
        ("map", Arc::new(maps.finish())),
        ("struct", Arc::new(structs)),
        ("dictionary", Arc::new(dictionary)),
        ("nothing", Arc::new(NullArray::new(rows))),
    ];
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap()
}

/// The payload as a table of batches of `size` rows.
fn chunked(batch: &RecordBatch, size: usize) -> Arc<Table> {
    let starts = (0..batch.num_rows()).step_by(size);
    let batches = starts.map(|at| batch.slice(at, size.min(batch.num_rows() - at))).collect();
    Arc::new(Table::new("test", batch.schema(), batches).unwrap())
}

/// Each output cell must be the input's cell, looked at one by one.
fn check(batches: &[RecordBatch], input: &RecordBatch, expected: &[(u32, u32)], caps: Caps) {
    let width = input.num_columns();
    let mut pairs = expected.iter();
    for batch in batches {
        assert!(batch.num_rows() > 0 && batch.num_rows() <= caps.rows);
        for row in 0..batch.num_rows() {
            let &(left, right) = pairs.next().expect("no more rows than matches");
            for column in 0..width {
                for (output, source) in [(column, left), (column + width, right)] {
                    let cell = batch.column(output).slice(row, 1);
                    let name = input.schema_ref().field(column).name().clone();
                    if source == NO_ROW {
                        assert_eq!(cell.logical_null_count(), 1, "{name} is padded");
                    } else {
                        let wanted = input.column(column).slice(source as usize, 1);
                        assert_eq!(&cell, &wanted, "{name} of row {source}");
                    }
                }
            }
        }
    }
    assert!(pairs.next().is_none(), "every match comes out");
}

fn assembler(left: Arc<Table>, right: Arc<Table>) -> Assembler {
    let schema = left.schema();
    let layout = Layout::new(schema, schema, &[], JoinKind::Full, "_right").unwrap();
    Assembler::new(layout, left, right)
}

const ROWS: usize = 40;

fn row() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 0..ROWS as u32, 1 => Just(NO_ROW)]
}

fn slice() -> impl Strategy<Value = Range<u32>> {
    (0..=ROWS as u32, 0..=ROWS as u32).prop_map(|(a, b)| a.min(b)..a.max(b))
}

fn caps() -> impl Strategy<Value = Caps> {
    (1..200_usize, prop::sample::select(vec![1, 500, 5_000, u64::MAX]))
        .prop_map(|(rows, bytes)| Caps { rows, bytes })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn pairs_come_out_whole(
        pairs in prop::collection::vec((row(), row()), 0..120),
        (left, right) in (1..=ROWS, 1..=ROWS),
        caps in caps(),
    ) {
        let input = payload(ROWS);
        let assembler = assembler(chunked(&input, left), chunked(&input, right));
        let (left, right) = pairs.iter().copied().unzip();
        let batches = assembler.assemble(&Matches::Pairs { left, right }, caps).unwrap();
        check(&batches, &input, &pairs, caps);
    }

    #[test]
    fn slices_agree_with_pairs(
        slices in prop::collection::vec((0..ROWS as u32, slice()), 0..20),
        (left, right) in (1..=ROWS, 1..=ROWS),
        caps in caps(),
    ) {
        let input = payload(ROWS);
        let assembler = assembler(chunked(&input, left), chunked(&input, right));
        let expected: Vec<_> = slices
            .iter()
            .flat_map(|(row, slice)| slice.clone().map(move |other| (*row, other)))
            .collect();
        let (left, right) = slices.into_iter().unzip();
        let matches = Matches::Slices { rows: left, slices: right, sliced: Side::Right };
        prop_assert_eq!(matches.len(), expected.len());
        check(&assembler.assemble(&matches, caps).unwrap(), &input, &expected, caps);
    }
}

#[test]
fn batches_keep_to_their_bytes() {
    let texts: StringArray = (0..100).map(|i| Some("y".repeat(i * 10))).collect();
    let input = RecordBatch::try_from_iter([("text", Arc::new(texts) as ArrayRef)]).unwrap();
    let table = chunked(&input, 30);
    let caps = Caps { rows: 1000, bytes: 3000 };
    let assembler = assembler(Arc::clone(&table), table);
    let all: Vec<u32> = (0..100).collect();
    let pairs = Matches::Pairs { left: all.clone(), right: all.clone() };
    let slices =
        Matches::Slices { rows: vec![0, 99], slices: vec![0..100, 0..100], sliced: Side::Right };
    for (matches, rows) in [(pairs, 100), (slices, 200)] {
        let batches = assembler.assemble(&matches, caps).unwrap();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), rows);
        assert!(batches.len() > 10);
        for batch in &batches {
            let bytes: usize = batch
                .columns()
                .iter()
                .map(|column| column.to_data().get_slice_memory_size().unwrap())
                .sum();
            // A little more than the cap: the offset behind the last string of each column.
            assert!(bytes <= 3008 || batch.num_rows() == 1, "{bytes} in {}", batch.num_rows());
        }
    }
}

#[test]
fn a_padded_side_without_rows_is_null() {
    let input = payload(3);
    let none = Arc::new(Table::new("test", input.schema(), vec![]).unwrap());
    let assembler = assembler(chunked(&input, 2), none);
    let matches = Matches::Pairs { left: vec![2, 0], right: vec![NO_ROW, NO_ROW] };
    let batches = assembler.assemble(&matches, Caps::default()).unwrap();
    check(&batches, &input, &[(2, NO_ROW), (0, NO_ROW)], Caps::default());
}

#[test]
fn no_columns_still_count_rows() {
    let schema = Arc::new(Schema::empty());
    let options = RecordBatchOptions::new().with_row_count(Some(4));
    let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), vec![], &options).unwrap();
    let table = Arc::new(Table::new("test", schema, vec![batch]).unwrap());
    let assembler = assembler(Arc::clone(&table), table);
    let matches = Matches::Pairs { left: vec![0, 1, 3], right: vec![2, 2, 2] };
    let batches = assembler.assemble(&matches, Caps::default()).unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 3);
}

#[test]
fn dictionaries_that_do_not_fit_together_are_said() {
    let chunk = |from: u8| {
        let values: Vec<String> = (from..from + 100).map(|n| format!("v{n}")).collect();
        let array: DictionaryArray<Int8Type> = values.iter().map(String::as_str).collect();
        RecordBatch::try_from_iter([("word", Arc::new(array) as ArrayRef)]).unwrap()
    };
    let batches = vec![chunk(0), chunk(100)];
    let table = Arc::new(Table::new("test", batches[0].schema(), batches).unwrap());
    let assembler = assembler(Arc::clone(&table), table);
    let all: Vec<u32> = (0..200).collect();
    let result =
        assembler.assemble(&Matches::Pairs { left: all.clone(), right: all }, Caps::default());
    let text = result.unwrap_err().to_string();
    assert!(text.contains("\"word\"") && text.contains("dictionary"), "{text}");
}
