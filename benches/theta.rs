//! Theta kernels: counting and building pairs.
#![allow(missing_docs, reason = "criterion's macros")]

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dovetail::operator::{Operator, Plan, Run};
use dovetail::predicate::{Comparison, JoinKind, Term};
use dovetail::table::Table;
use dovetail::theta::{Algorithm, ChainPlan, ChainSpec, ThetaPlan, ThetaSpec};

/// `rows` numbers spread evenly over [low, low + 30), in an order that looks random.
fn table(name: &str, rows: u64, low: f64) -> Arc<Table> {
    let keys = (0..rows).map(|i| low + 30.0 * ((i * 2_654_435_761 % rows) as f64) / rows as f64);
    let columns: [(&str, ArrayRef); 2] = [
        (name, Arc::new(keys.collect::<Float64Array>())),
        ("id", Arc::new((0..rows as i64).collect::<Int64Array>())),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("equal lengths");
    Arc::new(Table::new(name, batch.schema(), vec![batch]).expect("few rows"))
}

/// `rows` numbers of which half lie in [1, 2], a quarter in (2, 4], an eighth in (4, 8], and so on.
fn skewed(name: &str, rows: u64) -> Arc<Table> {
    let keys = (1..=rows).map(|i| rows as f64 / (i * 2_654_435_761 % rows + 1) as f64);
    let columns: [(&str, ArrayRef); 2] = [
        (name, Arc::new(keys.collect::<Float64Array>())),
        ("id", Arc::new((0..rows as i64).collect::<Int64Array>())),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("equal lengths");
    Arc::new(Table::new(name, batch.schema(), vec![batch]).expect("few rows"))
}

fn operator(algorithm: Algorithm, left: Arc<Table>, right: Arc<Table>) -> Arc<dyn Operator> {
    let spec = ThetaSpec {
        terms: vec![Term::Compare {
            left: "a".into(),
            comparison: Comparison::LessOrEqual,
            right: "b".into(),
        }],
        by: vec![],
        kind: JoinKind::Inner,
        suffix: "_right".into(),
        algorithm,
    };
    let plan = ThetaPlan::new(left.schema(), right.schema(), spec).expect("columns exist");
    plan.bind(&[left, right]).expect("keys compare")
}

fn theta(criterion: &mut Criterion) {
    let rows = 5_000;
    let mut group = criterion.benchmark_group("theta");
    group.throughput(Throughput::Elements(rows * rows)).sample_size(20);
    let uniform = (table("a", rows, 20.0), table("b", rows, 10.0));
    let skewed = (skewed("a", rows), skewed("b", rows));
    let over = |algorithm, (left, right): &(Arc<Table>, Arc<Table>)| {
        operator(algorithm, Arc::clone(left), Arc::clone(right))
    };
    for (workload, tables) in [("uniform", &uniform), ("skewed", &skewed)] {
        let expected = over(Algorithm::NestedLoop, tables).count(&Run::on(2)).expect("counts");
        for algorithm in Algorithm::ALL.into_iter().filter(|a| a.options().is_some()) {
            // Partitioning is part of the work, so the operator is made inside the timer.
            group.bench_function(format!("{}/{workload}/{rows}", algorithm.name()), |bencher| {
                bencher.iter(|| {
                    let count = over(algorithm, tables).count(&Run::on(2)).expect("counts");
                    assert_eq!(count, expected);
                });
            });
        }
    }
    let operator = over(Algorithm::NestedLoop, &uniform);
    let expected = operator.count(&Run::on(2)).expect("counts");
    // a <= b for (2/3)² / 2 of the pairs, but for the ties at the ends.
    let share = expected as f64 / (rows * rows) as f64;
    assert!((share - 2.0 / 9.0).abs() < 0.01, "{share}");
    group.bench_function(format!("nested_loop/count/{rows}"), |bencher| {
        bencher.iter(|| {
            assert_eq!(operator.count(&Run::on(2)).expect("counts"), expected);
        });
    });
    group.bench_function(format!("nested_loop/build/{rows}"), |bencher| {
        bencher.iter(|| {
            let stream = operator.stream(&Run::on(2)).expect("streams");
            let rows: usize = stream.map(|batch| batch.expect("builds").num_rows()).sum();
            assert_eq!(rows as u128, expected);
        });
    });
}

/// The chain a <= b >= c over three tables.
fn chain_of(tables: [Arc<Table>; 3]) -> Arc<dyn Operator> {
    let term = |left: &str, comparison, right: &str| {
        vec![Term::Compare { left: left.into(), comparison, right: right.into() }]
    };
    let spec = ChainSpec {
        names: ["t0", "t1", "t2"].map(String::from).to_vec(),
        links: vec![
            term("a", Comparison::LessOrEqual, "b"),
            term("b", Comparison::GreaterOrEqual, "c"),
        ],
        by: vec![],
        suffix: "_".into(),
        algorithm: Algorithm::Auto,
    };
    let schemas: Vec<_> = tables.iter().map(|table| table.schema().clone()).collect();
    let plan = ChainPlan::new(&schemas, spec).expect("columns exist");
    plan.bind(&tables).expect("keys compare")
}

fn chain(criterion: &mut Criterion) {
    let tables = |rows| [table("a", rows, 20.0), table("b", rows, 10.0), table("c", rows, 0.0)];
    let mut group = criterion.benchmark_group("theta");
    group.sample_size(20);
    let rows = 100_000;
    let large = tables(rows);
    let expected = chain_of(large.clone()).count(&Run::on(2)).expect("counts");
    group.throughput(Throughput::Elements(3 * rows));
    // Sorting is the work, so the operator is made inside the timer.
    group.bench_function(format!("auto/chain_count/{rows}"), |bencher| {
        bencher.iter(|| {
            assert_eq!(chain_of(large.clone()).count(&Run::on(2)).expect("counts"), expected);
        });
    });
    let rows = 300;
    let operator = chain_of(tables(rows));
    let expected = operator.count(&Run::on(2)).expect("counts");
    group.throughput(Throughput::Elements(expected as u64));
    group.bench_function(format!("auto/chain_build/{rows}"), |bencher| {
        bencher.iter(|| {
            let stream = operator.stream(&Run::on(2)).expect("streams");
            let rows: usize = stream.map(|batch| batch.expect("builds").num_rows()).sum();
            assert_eq!(rows as u128, expected);
        });
    });
}

criterion_group!(benches, theta, chain);
criterion_main!(benches);
