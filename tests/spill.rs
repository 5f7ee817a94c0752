//! What is spilled comes back equal, is counted right, and leaves nothing behind.

#[path = "support/arrays.rs"]
mod arrays;

use std::collections::HashMap;
use std::io::{self, BufRead};
use std::num::NonZeroU64;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

use arrow_array::builder::StringViewBuilder;
use arrow_array::{
    Array, DictionaryArray, Int32Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
};
use arrow_schema::{
    DataType, Field, Fields, IntervalUnit, Schema, SchemaRef, TimeUnit, UnionFields, UnionMode,
};
use arrow_select::concat::concat_batches;
use dovetail::spill::{
    Compression, Operation, Position, Run, SpillOptions, SpillSpace, SpillStats, Traffic,
};
use dovetail::{Error, Result};
use proptest::prelude::*;

use arrays::{Random, array};

const COMPRESSIONS: [Compression; 2] = [Compression::Lz4, Compression::None];

// ---- Everything comes back equal -----------------------------------------------------------

fn field(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}

fn item(data_type: DataType) -> Arc<Field> {
    Arc::new(field("item", data_type))
}

fn flat_types() -> Vec<DataType> {
    use DataType::*;
    let mut types = vec![
        Null,
        Boolean,
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Float16,
        Float32,
        Float64,
        Date32,
        Date64,
        Utf8,
        LargeUtf8,
        Utf8View,
        Binary,
        LargeBinary,
        BinaryView,
        FixedSizeBinary(3),
        Decimal32(9, 2),
        Decimal64(18, -3),
        Decimal128(38, 10),
        Decimal256(76, 20),
        Time32(TimeUnit::Second),
        Time32(TimeUnit::Millisecond),
        Time64(TimeUnit::Microsecond),
        Time64(TimeUnit::Nanosecond),
        Interval(IntervalUnit::YearMonth),
        Interval(IntervalUnit::DayTime),
        Interval(IntervalUnit::MonthDayNano),
    ];
    for unit in
        [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond]
    {
        types.extend([
            Duration(unit),
            Timestamp(unit, None),
            Timestamp(unit, Some("+02:00".into())),
        ]);
    }
    types
}

fn dictionary(key: DataType, value: DataType) -> DataType {
    DataType::Dictionary(Box::new(key), Box::new(value))
}

fn union_of(mode: UnionMode, types: impl IntoIterator<Item = DataType>) -> DataType {
    let fields = types
        .into_iter()
        .enumerate()
        .map(|(i, t)| (i as i8 * 3, Arc::new(field(&format!("u{i}"), t))));
    DataType::Union(fields.collect::<UnionFields>(), mode)
}

fn structure(types: impl IntoIterator<Item = DataType>) -> DataType {
    DataType::Struct(
        types.into_iter().enumerate().map(|(i, t)| field(&format!("s{i}"), t)).collect::<Fields>(),
    )
}

fn map(key: DataType, value: DataType) -> DataType {
    let entries = vec![Field::new("keys", key, false), field("values", value)];
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries.into()), false)), false)
}

fn run_ends(ends: DataType, values: DataType) -> DataType {
    DataType::RunEndEncoded(
        Arc::new(Field::new("run_ends", ends, false)),
        Arc::new(field("values", values)),
    )
}

/// Everything that can hold a `child`, in one level.
fn around(child: &DataType) -> Vec<DataType> {
    use DataType::*;
    let child = || child.clone();
    let mut types = vec![
        List(item(child())),
        LargeList(item(child())),
        ListView(item(child())),
        LargeListView(item(child())),
        FixedSizeList(item(child()), 2),
        structure([child()]),
        structure([Int8, child(), Utf8View]),
        map(Int16, child()),
        union_of(UnionMode::Sparse, [child(), Boolean]),
        union_of(UnionMode::Dense, [Int64, child()]),
        run_ends(Int32, child()),
    ];
    // Directly in a dictionary, a dictionary is refused: see its own test.
    if !matches!(child(), Dictionary(..)) {
        types.push(dictionary(Int32, child()));
    }
    types
}

fn nested_types() -> Vec<DataType> {
    use DataType::*;
    let mut types = vec![
        structure([]),
        dictionary(Int8, Utf8),
        dictionary(Int64, Binary),
        dictionary(UInt8, Int32),
        dictionary(UInt16, Utf8View),
        dictionary(UInt64, Decimal128(20, 3)),
        run_ends(Int16, Utf8),
        run_ends(Int64, Float64),
        map(Utf8, Int32),
        map(dictionary(Int8, Utf8), Utf8View),
    ];
    let inner = [Int32, Boolean, Utf8, Utf8View, dictionary(Int16, Utf8View)];
    let once: Vec<DataType> = inner.iter().flat_map(around).collect();
    // Two levels: what is wrong with a slice inside a slice shows only there.
    types.extend(once.iter().flat_map(around));
    types.extend(once);
    types
}

fn space(compression: Compression) -> SpillSpace {
    SpillSpace::new(SpillOptions { compression, ..Default::default() })
}

fn spill<'a>(
    space: &SpillSpace,
    batches: impl IntoIterator<Item = &'a RecordBatch>,
    schema: &SchemaRef,
) -> Run {
    let mut writer = space.create_run(schema).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.finish()
}

fn read(run: &Run) -> Vec<RecordBatch> {
    run.reader().collect::<Result<_>>().unwrap()
}

/// Whole, cut into slices (empty ones included), and rows of a slice: all must come back.
fn assert_round_trip(field: Field, rows: usize, seed: u64) {
    let mut random = Random::new(seed);
    let column = array(&field, rows, &mut random);
    let schema = Arc::new(Schema::new(vec![field]));
    let whole = RecordBatch::try_new(schema.clone(), vec![column]).unwrap();
    let mut batches = vec![whole.clone(), whole.slice(0, 0), whole.slice(rows, 0)];
    for _ in 0..4 {
        let start = random.below(rows + 1);
        let part = whole.slice(start, random.below(rows - start + 1));
        let inner = random.below(part.num_rows() + 1);
        batches.push(part.slice(inner, part.num_rows() - inner));
        batches.push(part);
    }
    for compression in COMPRESSIONS {
        let run = spill(&space(compression), &batches, &schema);
        for (found, expected) in read(&run).iter().zip(&batches) {
            assert_eq!(found, expected, "{} {compression:?} seed {seed}", schema.field(0));
            assert_eq!(found.schema(), expected.schema());
        }
        assert_eq!(run.blocks(), batches.len());
    }
}

#[test]
fn every_flat_type_comes_back() {
    for data_type in flat_types() {
        for (seed, rows) in [(1, 0), (2, 1), (3, 9), (4, 70)] {
            assert_round_trip(field("column", data_type.clone()), rows, seed);
            let nullable = data_type == DataType::Null;
            assert_round_trip(Field::new("column", data_type.clone(), nullable), rows, seed);
        }
    }
}

#[test]
fn every_nested_type_comes_back() {
    for data_type in nested_types() {
        for (seed, rows) in [(1, 0), (2, 1), (3, 9), (4, 70)] {
            assert_round_trip(field("column", data_type.clone()), rows, seed);
        }
    }
}

fn any_type() -> impl Strategy<Value = DataType> {
    let leaf = prop::sample::select(flat_types());
    leaf.prop_recursive(3, 12, 3, |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            inner.prop_flat_map(|child| prop::sample::select(around(&child))),
            pair.clone().prop_map(|(a, b)| structure([a, b])),
            pair.prop_map(|(a, b)| union_of(UnionMode::Dense, [a, b])),
        ]
    })
}

proptest! {
    #[test]
    fn random_batches_come_back(
        types in prop::collection::vec(any_type(), 0..5),
        cuts in prop::collection::vec(0..50usize, 0..5),
        rows in 0..50usize,
        seed: u64,
        lz4: bool,
    ) {
        let fields: Vec<Field> =
            types.into_iter().enumerate().map(|(i, t)| field(&format!("c{i}"), t)).collect();
        let mut random = Random::new(seed);
        let columns = fields.iter().map(|field| array(field, rows, &mut random)).collect();
        let schema = Arc::new(Schema::new(fields));
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let whole = RecordBatch::try_new_with_options(schema.clone(), columns, &options).unwrap();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(rows)).chain([0, rows]).collect();
        cuts.sort();
        let batches: Vec<_> = cuts.windows(2).map(|cut| whole.slice(cut[0], cut[1] - cut[0])).collect();

        let space = space(if lz4 { Compression::Lz4 } else { Compression::None });
        let run = spill(&space, &batches, &schema);
        prop_assert_eq!(read(&run), batches);
        prop_assert_eq!(run.rows(), rows as u64);
    }
}

#[test]
fn no_columns_but_rows() {
    let schema = Arc::new(Schema::empty());
    let rows = |n| {
        let options = RecordBatchOptions::new().with_row_count(Some(n));
        RecordBatch::try_new_with_options(schema.clone(), vec![], &options).unwrap()
    };
    for compression in COMPRESSIONS {
        let batches = [rows(7), rows(0), rows(3)];
        let run = spill(&space(compression), &batches, &schema);
        assert_eq!(read(&run), batches);
        assert_eq!(run.rows(), 10);
        let tail = run.reader_at(Position { block: 0, row: 5 }).unwrap().next().unwrap().unwrap();
        assert_eq!(tail.num_rows(), 2);
    }
}

#[test]
fn metadata_comes_back_and_the_schema_is_the_runs() {
    let metadata = |value: &str| HashMap::from([("unit".to_owned(), value.to_owned())]);
    let column = field("length", DataType::Int64).with_metadata(metadata("m"));
    let schema = Arc::new(Schema::new_with_metadata(vec![column.clone()], metadata("run")));
    let batch = RecordBatch::try_new(
        Arc::new(Schema::new_with_metadata(vec![column], metadata("batch"))),
        vec![Arc::new(Int64Array::from(vec![1, 2]))],
    )
    .unwrap();
    let run = spill(&space(Compression::Lz4), [&batch], &schema);
    assert_eq!(read(&run)[0].schema(), schema);
    assert_eq!(run.schema(), &schema);
    assert_eq!(read(&run)[0].columns(), batch.columns());
}

#[test]
fn other_columns_than_the_runs_are_refused() {
    let space = space(Compression::Lz4);
    let mut writer = space.create_run(&numbers(0..1).schema()).unwrap();
    let other =
        RecordBatch::try_from_iter([("other", Arc::new(Int32Array::from(vec![1])) as _)]).unwrap();
    let error = writer.write(&other).unwrap_err();
    assert!(matches!(error, Error::Invalid(_)), "{error}");
    assert!(error.to_string().contains("other") && error.to_string().contains("number"), "{error}");
    assert_eq!(space.stats(), SpillStats::default());
    writer.write(&numbers(0..1)).unwrap();
    assert_eq!(read(&writer.finish()), [numbers(0..1)]);
}

#[test]
fn a_dictionary_of_a_dictionary_is_refused() {
    let twice = dictionary(DataType::Int8, dictionary(DataType::Int8, DataType::Utf8));
    let schema = Arc::new(Schema::new(vec![field("nested", DataType::List(item(twice)))]));
    let error = space(Compression::Lz4).create_run(&schema).unwrap_err();
    assert!(matches!(error, Error::Unsupported(_)), "{error}");
}

/// A block of few rows is small, however large the batch is that they were cut from.
#[test]
fn a_slice_does_not_carry_what_it_was_cut_from() {
    let texts: Vec<String> =
        (0..20_000).map(|n| format!("a text too long for a view: {n}")).collect();
    let mut views = StringViewBuilder::new();
    views.extend(texts.iter().map(Some));
    let keys = Int32Array::from_iter_values(0..texts.len() as i32);
    let values = Arc::new(StringArray::from_iter_values(&texts));
    let whole = RecordBatch::try_from_iter([
        ("view", Arc::new(views.finish()) as _),
        ("dictionary", Arc::new(DictionaryArray::new(keys, values)) as _),
    ])
    .unwrap();
    for compression in COMPRESSIONS {
        let part = whole.slice(10_000, 10);
        let run = spill(&space(compression), [&part], &whole.schema());
        assert_eq!(read(&run), [part]);
        assert!(run.bytes() < 4096, "10 rows take {} bytes", run.bytes());
    }
}

// ---- Position ------------------------------------------------------------------------------

/// A batch of one column, for all that does not depend on types.
fn numbers(range: std::ops::Range<i64>) -> RecordBatch {
    let numbers = Int64Array::from_iter_values(range);
    RecordBatch::try_from_iter([("number", Arc::new(numbers) as _)]).unwrap()
}

fn values(batches: &[RecordBatch]) -> Vec<i64> {
    let Some(first) = batches.first() else { return vec![] };
    let all = concat_batches(&first.schema(), batches).unwrap();
    all.column(0).as_any().downcast_ref::<Int64Array>().unwrap().values().to_vec()
}

#[test]
fn reading_goes_on_from_any_row() {
    let batches = [numbers(0..3), numbers(3..3), numbers(3..4), numbers(4..9)];
    let run = spill(&space(Compression::Lz4), &batches, &numbers(0..0).schema());
    assert_eq!((run.rows(), run.blocks()), (9, 4));
    for (block, batch) in batches.iter().enumerate() {
        for row in 0..=batch.num_rows() {
            let tail: Vec<_> =
                run.reader_at(Position { block, row }).unwrap().map(Result::unwrap).collect();
            let before = batches[..block].iter().map(|batch| batch.num_rows()).sum::<usize>() + row;
            assert_eq!(values(&tail), (before as i64..9).collect::<Vec<_>>(), "{block}, {row}");
        }
        let beyond = run.reader_at(Position { block, row: batch.num_rows() + 1 }).unwrap_err();
        assert!(matches!(beyond, Error::Invalid(_)), "{beyond}");
    }
    assert!(run.reader_at(Position { block: 4, row: 0 }).unwrap().next().is_none());
    assert!(run.reader_at(Position { block: 4, row: 1 }).is_err());
    assert!(run.reader_at(Position { block: 5, row: 0 }).is_err());
}

/// A merge that pauses after every row: the reader is gone in between, only a position stays.
#[test]
fn pausing_after_every_row_loses_and_repeats_none() {
    let batches = [numbers(0..4), numbers(4..5), numbers(5..5), numbers(5..11)];
    let space = space(Compression::Lz4);
    let run = spill(&space, &batches, &numbers(0..0).schema());
    let (mut at, mut seen) = (Position::START, vec![]);
    loop {
        let mut reader = run.reader_at(at).unwrap();
        let here = reader.position();
        let Some(batch) = reader.next().transpose().unwrap() else { break };
        if batch.num_rows() == 0 {
            at = reader.position();
            continue;
        }
        seen.extend(values(&[batch.slice(0, 1)]));
        at = Position { block: here.block, row: here.row + 1 };
    }
    assert_eq!(seen, (0..11).collect::<Vec<_>>());
    // Every resumption has read its block again, and says so.
    assert_eq!(space.stats().read.blocks, 11 + 1);
}

#[test]
fn an_empty_run() {
    let space = space(Compression::Lz4);
    let run = space.create_run(&numbers(0..0).schema()).unwrap().finish();
    assert_eq!((run.rows(), run.blocks(), run.bytes()), (0, 0, 0));
    assert!(run.reader().next().is_none());
    assert_eq!(space.stats(), SpillStats::default());
}

#[test]
fn readers_share_a_run() {
    let batches: Vec<_> = (0..50).map(|n| numbers(n * 100..n * 100 + 100)).collect();
    let space = space(Compression::Lz4);
    let run = spill(&space, &batches, &batches[0].schema());
    thread::scope(|scope| {
        for worker in 0..8 {
            let (run, batches) = (run.clone(), &batches);
            scope.spawn(move || {
                for start in 0..5 {
                    let block = (worker * 7 + start * 3) % 50;
                    let reader = run.reader_at(Position { block, row: 0 }).unwrap();
                    assert_eq!(reader.map(Result::unwrap).collect::<Vec<_>>(), batches[block..]);
                }
            });
        }
    });
    drop(run);
    assert_eq!(space.stats().live_bytes, 0);
}

#[test]
fn writers_share_a_space() {
    let space = space(Compression::Lz4);
    let runs: Vec<Run> = thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|n| {
                let space = space.clone();
                scope.spawn(move || {
                    let batches = [numbers(n..n + 10), numbers(n + 10..n + 30)];
                    spill(&space, &batches, &batches[0].schema())
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    for (n, run) in runs.iter().enumerate() {
        assert_eq!(values(&read(run)), (n as i64..n as i64 + 30).collect::<Vec<_>>());
    }
    let stats = space.stats();
    assert_eq!(stats.written.blocks, 16);
    assert_eq!(stats.live_bytes, runs.iter().map(Run::bytes).sum::<u64>());
    drop(runs);
    assert_eq!(space.stats().live_bytes, 0);
    assert_eq!(space.stats().peak_bytes, stats.live_bytes);
}

// ---- Accounts ------------------------------------------------------------------------------

/// Uncompressed, every number follows from the format: a header of 64 bytes, an IPC message whose
/// metadata takes 192 bytes for one column, 8 bytes a value in steps of 64, and 8 for the end.
#[test]
fn pages_by_hand() {
    let space = SpillSpace::new(SpillOptions {
        compression: Compression::None,
        page_size: NonZeroU64::new(1000).unwrap(),
        ..Default::default()
    });
    let overhead = 64 + 192 + 8;
    // 800, 8000 and 8 bytes of values; in steps of 64: 832, 8000, 64.
    let batches = [numbers(0..100), numbers(0..1000), numbers(0..1)];
    let sizes = [832 + overhead, 8000 + overhead, 64 + overhead];
    let run = spill(&space, &batches, &batches[0].schema());
    assert_eq!(run.bytes(), sizes.iter().sum::<u64>());

    let written = Traffic { blocks: 3, pages: 2 + 9 + 1, bytes: 1096 + 8264 + 328 };
    let live_bytes = written.bytes;
    let expected =
        SpillStats { written, read: Traffic::default(), live_bytes, peak_bytes: live_bytes };
    assert_eq!(space.stats(), expected);

    read(&run);
    assert_eq!(space.stats(), SpillStats { read: written, ..expected });
    // A merge that had paused in the second block reads all of that again, and the third.
    run.reader_at(Position { block: 1, row: 999 }).unwrap().for_each(drop);
    let read = Traffic { blocks: 5, pages: 12 + 10, bytes: written.bytes + 8264 + 328 };
    assert_eq!(space.stats(), SpillStats { read, ..expected });

    drop(run);
    assert_eq!(space.stats(), SpillStats { read, live_bytes: 0, ..expected });
}

#[test]
fn the_quota_is_exact_and_comes_back() {
    let schema = numbers(0..0).schema();
    let open = |quota| {
        SpillSpace::new(SpillOptions {
            quota: Some(quota),
            compression: Compression::None,
            ..Default::default()
        })
    };
    let block = spill(&open(u64::MAX), [&numbers(0..100)], &schema).bytes();

    let space = open(3 * block - 1);
    let first = spill(&space, [&numbers(0..100)], &schema);
    let mut writer = space.create_run(&schema).unwrap();
    writer.write(&numbers(100..200)).unwrap();
    let before = space.stats();
    let error = writer.write(&numbers(200..300)).unwrap_err();
    assert!(error.to_string().contains(&*space.folder().to_string_lossy()), "{error}");
    match error {
        Error::Budget { requested, available, limit, .. } => {
            assert_eq!((requested, available, limit), (block, block - 1, 3 * block - 1));
        }
        other => panic!("{other}"),
    }
    assert_eq!(space.stats(), before, "a refused block was counted");

    // Room again once a run and its readers are gone, and the refused writer goes on.
    let reader = first.reader();
    drop(first);
    assert!(writer.write(&numbers(200..300)).is_err(), "a reader keeps its run's space");
    drop(reader);
    writer.write(&numbers(200..300)).unwrap();
    let run = writer.finish();
    assert_eq!(values(&read(&run)), (100..300).collect::<Vec<_>>());
    assert_eq!(space.stats().live_bytes, 2 * block);
    drop(run);
    assert_eq!(space.stats().live_bytes, 0);

    // A writer that is given up gives all back, too.
    let mut writer = space.create_run(&schema).unwrap();
    writer.write(&numbers(0..100)).unwrap();
    drop(writer);
    assert_eq!((space.stats().live_bytes, space.stats().peak_bytes), (0, 2 * block));
}

#[test]
fn compression_compresses() {
    let batch = numbers(0..1).schema();
    let same =
        RecordBatch::try_new(batch.clone(), vec![Arc::new(Int64Array::from(vec![7; 10_000]))])
            .unwrap();
    let [lz4, none] = COMPRESSIONS.map(|kind| spill(&space(kind), [&same], &batch).bytes());
    assert!(lz4 * 10 < none, "{lz4} against {none} bytes");
}

// ---- Failures ------------------------------------------------------------------------------

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

/// Two runs are written, the first is read while the second grows, then both are read.
fn workload(space: &SpillSpace) -> Result<Vec<i64>> {
    let schema = numbers(0..0).schema();
    let mut first = space.create_run(&schema)?;
    first.write(&numbers(0..10))?;
    first.write(&numbers(10..20))?;
    let first = first.finish();
    let mut second = space.create_run(&schema)?;
    for batch in first.reader() {
        second.write(&batch?)?;
    }
    let both: Vec<_> = first.reader().chain(second.finish().reader()).collect::<Result<_>>()?;
    Ok(values(&both))
}

#[test]
fn a_fault_at_every_operation() {
    let folder = tempfile::tempdir().unwrap();
    let options = SpillOptions {
        folder: Some(folder.path().to_owned()),
        quota: Some(1 << 20),
        ..Default::default()
    };
    let expected: Vec<i64> = (0..20).chain(0..20).collect();
    let mut failing = 0;
    loop {
        let count = Arc::new(AtomicUsize::new(0));
        let failed = Arc::new(std::sync::Mutex::new(None));
        let space = SpillSpace::with_faults(options.clone(), {
            let (count, failed) = (count.clone(), failed.clone());
            move |operation| {
                if count.fetch_add(1, SeqCst) == failing {
                    *failed.lock().unwrap() = Some(operation);
                    return Err(io::Error::from(io::ErrorKind::StorageFull));
                }
                Ok(())
            }
        });
        let outcome = workload(&space);
        assert!(is_empty(folder.path()));
        assert_eq!(space.stats().live_bytes, 0, "operation {failing} leaked from the quota");
        let failed = failed.lock().unwrap().take();
        let Some(operation) = failed else {
            // 2 files, 4 blocks written, 2 read while writing and 4 after.
            assert_eq!((failing, outcome.unwrap()), (12, expected));
            break;
        };
        let error = outcome.expect_err("the fault went unseen");
        let text = error.to_string();
        let says = match operation {
            Operation::Create => "creating a spill file in".to_owned(),
            Operation::Write { block } => format!("writing block {block} "),
            Operation::Read { block } => format!("reading block {block} "),
        };
        assert!(text.contains(&says), "{text}");
        assert!(text.contains(&*folder.path().to_string_lossy()), "{text}");
        assert!(
            matches!(error, Error::Spill { source, .. } if source.kind() == io::ErrorKind::StorageFull)
        );
        failing += 1;
    }
}

/// A full disk is often full for a moment only.
#[test]
fn a_failed_write_can_be_repeated_and_a_failed_read_too() {
    let failing = Arc::new(AtomicUsize::new(0));
    let space = SpillSpace::with_faults(SpillOptions::default(), {
        let failing = failing.clone();
        move |_| match failing.load(SeqCst) {
            0 => Ok(()),
            _ => Err(io::Error::from(io::ErrorKind::StorageFull)),
        }
    });
    let mut writer = space.create_run(&numbers(0..0).schema()).unwrap();
    writer.write(&numbers(0..5)).unwrap();
    let before = (writer.rows(), writer.blocks(), writer.bytes(), space.stats());
    failing.store(1, SeqCst);
    writer.write(&numbers(5..9)).unwrap_err();
    let now = SpillStats { peak_bytes: before.3.peak_bytes, ..space.stats() };
    assert_eq!((writer.rows(), writer.blocks(), writer.bytes(), now), before);
    failing.store(0, SeqCst);
    writer.write(&numbers(5..9)).unwrap();

    let run = writer.finish();
    let mut reader = run.reader();
    assert_eq!(reader.next().unwrap().unwrap(), numbers(0..5));
    failing.store(1, SeqCst);
    reader.next().unwrap().unwrap_err();
    assert!(reader.next().is_none());
    failing.store(0, SeqCst);
    let rest: Vec<_> = run.reader_at(reader.position()).unwrap().map(Result::unwrap).collect();
    assert_eq!(rest, [numbers(5..9)]);
}

#[test]
fn a_folder_that_does_not_do_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a file");
    std::fs::write(&file, "").unwrap();
    let mut cases = vec![folder.path().join("missing"), file];
    if cfg!(target_os = "linux") {
        // Not even root may create files here.
        cases.push("/proc/self".into());
    }
    for case in cases {
        let space =
            SpillSpace::new(SpillOptions { folder: Some(case.clone()), ..Default::default() });
        let error = space.create_run(&numbers(0..0).schema()).unwrap_err();
        assert!(matches!(error, Error::Spill { .. }), "{error}");
        let expected = format!("creating a spill file in {}: ", case.display());
        assert!(error.to_string().starts_with(&expected), "{error}");
        assert_eq!(space.stats(), SpillStats::default());
    }
}

// ---- Nothing stays -------------------------------------------------------------------------

#[test]
fn files_are_never_visible() {
    let folder = tempfile::tempdir().unwrap();
    let options = SpillOptions { folder: Some(folder.path().to_owned()), ..Default::default() };
    let space = SpillSpace::new(options);
    let mut writer = space.create_run(&numbers(0..0).schema()).unwrap();
    assert!(is_empty(folder.path()));
    writer.write(&numbers(0..1000)).unwrap();
    assert!(is_empty(folder.path()));
    let run = writer.finish();
    assert_eq!(read(&run), [numbers(0..1000)]);
    assert!(is_empty(folder.path()));
    drop(run);
    assert!(is_empty(folder.path()));
}

const SPILL_INTO: &str = "DOVETAIL_TEST_SPILL_INTO";

/// Not a test of its own: the process that the next one kills.
#[test]
fn victim() {
    let Ok(folder) = std::env::var(SPILL_INTO) else { return };
    let options = SpillOptions { folder: Some(folder.into()), ..Default::default() };
    let space = SpillSpace::new(options);
    let run = spill(&space, [&numbers(0..1000)], &numbers(0..0).schema());
    let mut writer = space.create_run(run.schema()).unwrap();
    writer.write(&numbers(0..1000)).unwrap();
    println!("\nspilled");
    // Until it is killed, or its parent is gone.
    let _ = io::stdin().read_line(&mut String::new());
}

#[cfg(unix)]
#[test]
fn kill_9_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "victim", "--nocapture"])
        .env(SPILL_INTO, folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = io::BufReader::new(child.stdout.take().unwrap());
    let spilled = output.lines().any(|line| line.unwrap() == "spilled");
    // Where the system shows a process's open files, see that they really are in this folder.
    let open_here = std::fs::read_dir(format!("/proc/{}/fd", child.id())).map(|open| {
        let targets = open.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
        targets.filter(|target| target.starts_with(folder.path())).count()
    });
    let visible = !is_empty(folder.path());
    child.kill().unwrap();
    let status = child.wait().unwrap();

    assert!(spilled, "the process ended before it had spilled: {status}");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    assert_eq!(open_here.unwrap_or(2), 2);
    assert!(!visible && is_empty(folder.path()));
}
