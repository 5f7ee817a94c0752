//! `spill/<write|read>/<compression>/<columns>/<rows per block>`: a run of sixteen blocks.

use std::hint::black_box;
use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::{Float64Array, Int64Array, RecordBatch};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dovetail::spill::{Compression, Run, SpillOptions, SpillSpace};

const BLOCKS: usize = 16;

/// Sorted keys, as runs have, beside values that do not compress.
fn numbers(rows: usize) -> RecordBatch {
    let keys = Int64Array::from_iter_values(0..rows as i64);
    let values = (0..rows as u64)
        .map(|n| f64::from_bits(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 12 | 1023 << 52));
    let values = Float64Array::from_iter_values(values);
    RecordBatch::try_from_iter([("key", Arc::new(keys) as _), ("value", Arc::new(values) as _)])
        .unwrap()
}

fn texts(rows: usize) -> RecordBatch {
    let mut views = StringViewBuilder::new();
    views.extend((0..rows).map(|n| Some(format!("customer number {n:08}"))));
    RecordBatch::try_from_iter([("text", Arc::new(views.finish()) as _)]).unwrap()
}

fn spill(space: &SpillSpace, whole: &RecordBatch) -> Run {
    let rows = whole.num_rows() / BLOCKS;
    let mut writer = space.create_run(&whole.schema()).unwrap();
    for block in 0..BLOCKS {
        writer.write(&whole.slice(block * rows, rows)).unwrap();
    }
    writer.finish()
}

fn benchmark(criterion: &mut Criterion) {
    for (compression, name) in [(Compression::Lz4, "lz4"), (Compression::None, "none")] {
        let space = SpillSpace::new(SpillOptions { compression, ..Default::default() });
        for (columns, make) in [("numbers", numbers as fn(usize) -> RecordBatch), ("texts", texts)]
        {
            for rows in [1024, 65_536] {
                let whole = make(rows * BLOCKS);
                let run = spill(&space, &whole);
                let back: Vec<_> = run.reader().map(Result::unwrap).collect();
                for (block, back) in back.iter().enumerate() {
                    assert_eq!(back, &whole.slice(block * rows, rows), "the result is wrong");
                }

                let mut group = criterion.benchmark_group("spill");
                group.throughput(Throughput::Elements(run.rows()));
                let id = |verb| BenchmarkId::new(format!("{verb}/{name}/{columns}"), rows);
                group.bench_function(id("write"), |b| b.iter(|| spill(&space, black_box(&whole))));
                group.bench_function(id("read"), |b| {
                    b.iter(|| run.reader().map(|batch| batch.unwrap().num_rows()).sum::<usize>())
                });
            }
        }
    }
}

criterion_group!(benches, benchmark);
criterion_main!(benches);
