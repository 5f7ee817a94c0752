//! Encoding a million rows: what every join pays before it starts.

use std::hint::black_box;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, Decimal128Array, DictionaryArray, Float64Array, Int32Array, Int64Array, StringArray,
};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dovetail::key::{Column, equality_groups, ordered_keys};

const ROWS: usize = 1_000_000;

/// A fixed sequence that looks random (SplitMix64).
fn random(seed: u64) -> impl Iterator<Item = u64> {
    (1..).map(move |step: u64| {
        let mut z = seed.wrapping_add(step.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

fn column(array: impl arrow_array::Array + 'static) -> Column {
    let array: ArrayRef = Arc::new(array);
    Column::new("column", array.data_type().clone(), vec![array])
}

fn int64(distinct: u64) -> Column {
    column(Int64Array::from_iter_values(random(1).take(ROWS).map(|x| (x % distinct) as i64)))
}

fn float64() -> Column {
    column(Float64Array::from_iter_values(random(2).take(ROWS).map(|x| (x as i64 >> 20) as f64)))
}

fn decimal128() -> Column {
    let values = random(3).take(ROWS).map(|x| i128::from(x as i64 >> 20));
    column(Decimal128Array::from_iter_values(values).with_precision_and_scale(38, 10).unwrap())
}

fn utf8(distinct: u64, format: impl Fn(u64) -> String) -> Column {
    column(StringArray::from_iter_values(random(4).take(ROWS).map(|x| format(x % distinct))))
}

fn dictionary() -> Column {
    let keys = Int32Array::from_iter_values(random(5).take(ROWS).map(|x| (x % 1_000) as i32));
    let values = StringArray::from_iter_values((0..1_000).map(long));
    column(DictionaryArray::<Int32Type>::new(keys, Arc::new(values)))
}

/// Of up to 15 bytes, so that they are packed.
fn short(number: u64) -> String {
    format!("{:x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8)
}

/// Longer than that after the common prefix, so that they are ranked.
fn long(number: u64) -> String {
    format!("item {:016x} of the catalogue", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

fn ordered(c: &mut Criterion) {
    let mut group = c.benchmark_group("key/ordered");
    group.throughput(Throughput::Elements(ROWS as u64));
    for (name, columns) in [
        ("int64", vec![int64(u64::MAX)]),
        ("float64", vec![float64()]),
        ("int64-float64", vec![int64(u64::MAX), float64()]),
        ("decimal128", vec![decimal128()]),
        ("decimal128-float64", vec![decimal128(), float64()]),
        ("utf8-short", vec![utf8(u64::MAX, short)]),
        ("utf8", vec![utf8(u64::MAX, long)]),
        ("utf8-1000-distinct", vec![utf8(1_000, long)]),
        ("dictionary", vec![dictionary()]),
    ] {
        group.bench_function(BenchmarkId::new(name, ROWS), |b| {
            b.iter(|| ordered_keys(black_box(&columns)).unwrap());
        });
    }
    group.finish();
}

fn groups(c: &mut Criterion) {
    let mut group = c.benchmark_group("key/groups");
    group.throughput(Throughput::Elements(ROWS as u64));
    for (name, side) in [
        ("int64", vec![int64(u64::MAX)]),
        ("int64-1000-distinct", vec![int64(1_000)]),
        ("utf8", vec![utf8(u64::MAX, long)]),
        ("utf8-1000-distinct", vec![utf8(1_000, long)]),
        ("dictionary", vec![dictionary()]),
        ("int64+utf8-1000-distinct", vec![int64(1_000), utf8(1_000, long)]),
    ] {
        let sides = [side];
        group.bench_function(BenchmarkId::new(name, ROWS), |b| {
            b.iter(|| equality_groups(black_box(&sides)).unwrap());
        });
    }
    group.finish();
}

criterion_group!(benches, ordered, groups);
criterion_main!(benches);
