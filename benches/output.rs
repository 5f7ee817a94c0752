//! Assembly of matches: index pairs against contiguous slices, and the cost of writing alone.
#![allow(missing_docs, reason = "criterion's macros")]

use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dovetail::output::{Assembler, Caps, Layout, Matches, Side};
use dovetail::predicate::JoinKind;
use dovetail::table::Table;

const ROWS: u32 = 100_000;
/// Left rows, and how many neighbours each has: about a million output rows.
const LEFT: u32 = 1_000;
const SLICE: u32 = 1_000;

fn table(column: ArrayRef) -> Arc<Table> {
    let batch = RecordBatch::try_from_iter([("value", column)]).expect("one column");
    Arc::new(Table::new("bench", batch.schema(), vec![batch]).expect("few rows"))
}

fn assemble(criterion: &mut Criterion) {
    let slices: Vec<Range<u32>> =
        (0..LEFT).map(|i| (i * 97) % (ROWS - SLICE)).map(|at| at..at + SLICE).collect();
    let left: Vec<u32> = (0..LEFT).collect();
    let pairs = Matches::Pairs {
        left: left.iter().flat_map(|&row| std::iter::repeat_n(row, SLICE as usize)).collect(),
        right: slices.iter().cloned().flatten().collect(),
    };
    let slices = Matches::Slices { rows: left, slices, sliced: Side::Right };
    let int: ArrayRef = Arc::new((0..i64::from(ROWS)).collect::<Int64Array>());
    let text: ArrayRef = Arc::new((0..ROWS).map(|i| Some(i.to_string())).collect::<StringArray>());

    let rows = u64::from(LEFT * SLICE);
    let mut group = criterion.benchmark_group("output");
    group.throughput(Throughput::Elements(rows)).sample_size(20);
    for (kind, column) in [("int64", int), ("utf8", text)] {
        let table = table(column);
        let schema = table.schema();
        let layout = Layout::new(schema, schema, &[], JoinKind::Inner, "_right").expect("layout");
        let assembler = Assembler::new(layout, Arc::clone(&table), table);
        for (form, matches) in [("pairs", &pairs), ("slices", &slices)] {
            group.bench_function(format!("{form}/{kind}/{rows}"), |bencher| {
                bencher.iter(|| {
                    let batches = assembler.assemble(matches, Caps::default()).expect("assembles");
                    let built: usize = batches.iter().map(RecordBatch::num_rows).sum();
                    assert_eq!(built as u64, rows);
                });
            });
        }
    }
    group.bench_function(format!("write_only/int64/{rows}"), |bencher| {
        bencher.iter(|| {
            // What any engine must do at least: fill two fresh columns.
            for _ in 0..2 {
                black_box(vec![black_box(7_i64); rows as usize]);
            }
        });
    });
}

criterion_group!(benches, assemble);
criterion_main!(benches);
