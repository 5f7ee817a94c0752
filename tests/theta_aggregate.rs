//! Aggregates over the matches of left rows against recomputation from the matching pairs.
#![allow(missing_docs, reason = "tests")]

mod support;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, UInt64Array};
use dovetail::Error;
use dovetail::aggregate::{Aggregate, Function};
use dovetail::control::Control;
use dovetail::operator::{Operator, Plan, Run};
use dovetail::output::Caps;
use dovetail::predicate::{Comparison, JoinKind, Term};
use dovetail::table::Table;
use dovetail::theta::{AggregatePlan, Algorithm, ThetaSpec};
use num_bigint::BigInt;
use num_rational::Ratio;
use proptest::prelude::*;
use support::exact::{Value, float};
use support::oracle::{self, OracleTerm};
use support::rows::{Row, read, rows, schema, table};

fn spec(terms: &[OracleTerm], by: &[&str], kind: JoinKind, algorithm: Algorithm) -> ThetaSpec {
    let term = |&(left, comparison, right): &OracleTerm| Term::Compare {
        left: left.into(),
        comparison,
        right: right.into(),
    };
    ThetaSpec {
        terms: terms.iter().map(term).collect(),
        by: by.iter().map(|name| ((*name).into(), (*name).into())).collect(),
        kind,
        suffix: "_right".into(),
        algorithm,
    }
}

fn aggregate(name: &str, function: Function, column: &str) -> Aggregate {
    let column = (!column.is_empty()).then(|| column.to_owned());
    Aggregate { name: name.into(), function, column }
}

/// One of every kind; some share measures.
fn aggregates() -> Vec<Aggregate> {
    use Function::*;
    vec![
        aggregate("n", Count, ""),
        aggregate("texts", Count, "text"),
        aggregate("tagged", Count, "tags"),
        aggregate("int_sum", Sum, "int"),
        aggregate("id_sum", Sum, "id"),
        aggregate("int_mean", Mean, "int"),
        aggregate("float_sum", Sum, "float"),
        aggregate("float_mean", Mean, "float"),
        aggregate("int_var", Var, "int"),
        aggregate("float_std", Std, "float"),
        aggregate("int_min", Min, "int"),
        aggregate("float_min", Min, "float"),
        aggregate("float_max", Max, "float"),
        aggregate("text_min", Min, "text"),
        aggregate("text_max", Max, "text"),
    ]
}

fn exact(value: f64) -> Ratio<BigInt> {
    match float(value) {
        Value::Number(number) => number,
        other => panic!("{other:?} is not finite"),
    }
}

/// Whether a sum of floats is as exact as promised.
fn is_sum(found: Option<f64>, values: &[f64], divisor: usize) -> bool {
    let Some(found) = found else { return values.is_empty() };
    let plain: f64 = values.iter().sum();
    if values.is_empty() || !plain.is_finite() {
        return !values.is_empty() && (found == plain || found.is_nan() && plain.is_nan());
    }
    let divisor = Ratio::from_integer(BigInt::from(divisor));
    let sum: Ratio<BigInt> = values.iter().map(|&value| exact(value)).sum();
    let magnitude: Ratio<BigInt> = values.iter().map(|&value| exact(value.abs())).sum();
    let off = exact(found) - sum / &divisor;
    let off = if off < exact(0.0) { -off } else { off };
    off <= magnitude * exact(1e-9) / divisor
}

/// By the textbook: the mean first, then the squared distances from it.
fn variance(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let count = values.len() as f64;
    let mean = values.iter().map(|value| value / count).sum::<f64>();
    Some(values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0))
}

fn is_close(found: Option<f64>, expected: Option<f64>) -> bool {
    match (found, expected) {
        (Some(a), Some(b)) => {
            a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-9 * (1.0 + b.abs())
        }
        (a, b) => a == b,
    }
}

/// NaN is the greatest; of equals, the first is the least.
fn extremes(values: &[f64]) -> [Option<u64>; 2] {
    let order = |a: f64, b: f64| a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()));
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| order(*a, *b));
    [sorted.first(), sorted.last()].map(|value| value.map(|value| value.to_bits()))
}

/// Checks the aggregates in row `at` of `batch` against the rows that match.
fn check(batch: &RecordBatch, at: usize, matches: &[&Row]) {
    let column = |name: &str| batch.column_by_name(name).unwrap();
    let long = |name: &str| {
        let array = column(name).as_primitive::<Int64Type>();
        array.is_valid(at).then(|| array.value(at))
    };
    let real = |name: &str| {
        let array = column(name).as_primitive::<Float64Type>();
        array.is_valid(at).then(|| array.value(at))
    };
    let text = |name: &str| {
        let array = column(name).as_string::<i32>();
        array.is_valid(at).then(|| array.value(at).to_owned())
    };
    let ints: Vec<i64> = matches.iter().filter_map(|row| row.int).map(i64::from).collect();
    let reals: Vec<f64> = ints.iter().map(|&int| int as f64).collect();
    let floats: Vec<f64> = matches.iter().filter_map(|row| row.float).collect();
    let texts: Vec<String> = matches.iter().filter_map(|row| row.text.clone()).collect();
    assert_eq!(long("n"), Some(matches.len() as i64));
    assert_eq!(long("texts"), Some(texts.len() as i64));
    assert_eq!(long("tagged"), Some(matches.len() as i64));
    assert_eq!(long("int_sum"), (!ints.is_empty()).then(|| ints.iter().sum()));
    let ids = matches.iter().map(|row| i64::from(row.id));
    assert_eq!(long("id_sum"), (!matches.is_empty()).then(|| ids.sum()));
    assert!(is_sum(real("int_mean"), &reals, ints.len()), "{:?} {ints:?}", real("int_mean"));
    assert!(is_sum(real("float_sum"), &floats, 1), "{:?} {floats:?}", real("float_sum"));
    assert!(is_sum(real("float_mean"), &floats, floats.len()), "{:?}", real("float_mean"));
    assert!(is_close(real("int_var"), variance(&reals)), "{:?} {reals:?}", real("int_var"));
    let deviation = variance(&floats).map(f64::sqrt);
    assert!(is_close(real("float_std"), deviation), "{:?} {floats:?}", real("float_std"));
    let array = column("int_min").as_primitive::<Int32Type>();
    let found = array.is_valid(at).then(|| i64::from(array.value(at)));
    assert_eq!(found, ints.iter().copied().min());
    let found = [real("float_min"), real("float_max")].map(|value| value.map(f64::to_bits));
    assert_eq!(found, extremes(&floats));
    assert_eq!(text("text_min"), texts.iter().min().cloned());
    assert_eq!(text("text_max"), texts.iter().max().cloned());
}

fn term() -> impl Strategy<Value = OracleTerm> {
    let columns = prop::sample::select(vec![
        ("int", "int"),
        ("int", "float"),
        ("float", "int"),
        ("float", "float"),
        ("text", "text"),
        ("id", "int"),
        ("int", "id"),
    ]);
    (columns, prop::sample::select(Comparison::ALL.to_vec()))
        .prop_map(|((left, right), comparison)| (left, comparison, right))
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..1000_usize, 0..4)
}

fn stream(operator: &dyn Operator, run: &Run) -> Vec<RecordBatch> {
    operator.stream(run).unwrap().map(Result::unwrap).collect()
}

/// The output of a run against the oracle's pairs.
fn check_all(
    batches: &[RecordBatch],
    left: &[Row],
    right: &[Row],
    pairs: &[(Row, Row)],
    kind: JoinKind,
) {
    let mut found =
        batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |at| (batch, at)));
    let mut partners = vec![vec![]; left.len()];
    for (l, r) in pairs {
        partners[l.id as usize].push(&right[r.id as usize]);
    }
    for (row, partners) in left.iter().zip(&partners) {
        if kind == JoinKind::Inner && partners.is_empty() {
            continue;
        }
        let (batch, at) = found.next().expect("a row for each left row");
        assert_eq!(read(&batch.slice(at, 1), 0)[0].as_ref(), Some(row));
        check(batch, at, partners);
    }
    assert!(found.next().is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn oracle_agrees_with_both_algorithms(
        left in rows(40),
        right in rows(40),
        terms in prop::collection::vec(term(), 0..4),
        by in prop::sample::subsequence(vec!["int", "text"], 0..=2),
        kind in prop::sample::select(vec![JoinKind::Left, JoinKind::Inner]),
        (left_cuts, right_cuts) in (cuts(), cuts()),
        threads in 1..=8_usize,
        caps in prop::sample::select(vec![(1, u64::MAX), (7, u64::MAX), (1000, 1), (1000, 400)]),
    ) {
        let pairs = oracle::pairs(&left, &right, &terms, &by);
        for algorithm in [Algorithm::Auto, Algorithm::NestedLoop] {
            let spec = spec(&terms, &by, kind, algorithm);
            let plan = AggregatePlan::new(&schema(), &schema(), spec, aggregates()).unwrap();
            let inputs = [table(&left, &left_cuts), table(&right, &right_cuts)];
            let operator = plan.bind(&inputs).unwrap();
            let run = Run { caps: Caps { rows: caps.0, bytes: caps.1 }, ..Run::on(threads) };
            let batches = stream(operator.as_ref(), &run);
            for batch in &batches {
                prop_assert!(batch.num_rows() > 0 && batch.num_rows() <= caps.0);
                prop_assert_eq!(&batch.schema(), operator.schema());
            }
            check_all(&batches, &left, &right, &pairs, kind);
            let out: usize = batches.iter().map(RecordBatch::num_rows).sum();
            let fresh = plan.bind(&inputs).unwrap();
            prop_assert_eq!(fresh.count(&Run::on(threads)).unwrap(), out as u128);
            let metrics = &run.metrics;
            prop_assert_eq!(metrics.count("rows_out"), out as u64);
            prop_assert_eq!(metrics.count("rows_left"), left.len() as u64);
            prop_assert_eq!(metrics.count("matches"), pairs.len() as u64);
            let counted = metrics.count("matched_left") + metrics.count("unmatched_left");
            prop_assert_eq!(counted, left.len() as u64);
            prop_assert_eq!(stream(fresh.as_ref(), &Run::on(3)), stream(operator.as_ref(), &Run::on(1)));
        }
    }

    #[test]
    fn a_limit_gives_a_prefix(left in rows(30), right in rows(30), limit in 0..40_u64) {
        let terms = [("int", Comparison::LessOrEqual, "int")];
        let spec = spec(&terms, &[], JoinKind::Inner, Algorithm::Auto);
        let plan = AggregatePlan::new(&schema(), &schema(), spec, aggregates()).unwrap();
        let operator = plan.bind(&[table(&left, &[5]), table(&right, &[])]).unwrap();
        let all = stream(operator.as_ref(), &Run::on(1));
        let some = stream(operator.as_ref(), &Run { limit: Some(limit), ..Run::on(2) });
        let wanted = all.iter().map(|batch| batch.slice(0, batch.num_rows().min(limit as usize)));
        let wanted: Vec<_> = wanted.filter(|batch| batch.num_rows() > 0).collect();
        prop_assert_eq!(some, wanted);
    }
}

fn numbers(columns: Vec<(&str, ArrayRef)>) -> Arc<Table> {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    Arc::new(Table::new("test", batch.schema(), vec![batch]).unwrap())
}

/// Rows enough for several stretches of a sweep: the work of one thread and of many is the same.
#[test]
fn agrees_over_many_rows_and_threads() {
    let rows = 70_000_i64;
    let spread = |factor: i64, modulus: i64| -> ArrayRef {
        Arc::new((0..rows).map(|i| i * factor % modulus).collect::<Int64Array>())
    };
    let values = |i: i64| (i % 1000) as f64 / 7.0 + if i % 3 == 0 { 1e12 } else { 0.0 };
    let left = numbers(vec![("x", spread(7919, 65_537)), ("y", spread(104_729, 65_521))]);
    let floats: ArrayRef =
        Arc::new((0..rows).map(|i| Some(values(i))).collect::<arrow_array::Float64Array>());
    let right = numbers(vec![
        ("x", spread(15_485_863, 65_537)),
        ("y", spread(32_452_843, 65_521)),
        ("v", floats),
    ]);
    let aggregates = || {
        use Function::*;
        vec![
            aggregate("n", Count, ""),
            aggregate("sum", Sum, "x"),
            aggregate("float_sum", Sum, "v"),
            aggregate("var", Var, "v"),
            aggregate("max", Max, "y"),
        ]
    };
    for terms in [
        &[("x", Comparison::Less, "x")][..],
        &[("x", Comparison::Less, "x"), ("y", Comparison::Greater, "y")],
        &[("x", Comparison::Less, "x"), ("y", Comparison::NotEqual, "y")],
    ] {
        let spec = spec(terms, &[], JoinKind::Left, Algorithm::Auto);
        let plan = AggregatePlan::new(left.schema(), right.schema(), spec, aggregates()).unwrap();
        let run = |threads| {
            let operator = plan.bind(&[Arc::clone(&left), Arc::clone(&right)]).unwrap();
            stream(operator.as_ref(), &Run::on(threads))
        };
        let alone = run(1);
        assert_eq!(alone, run(2));
        assert_eq!(alone, run(5));
        let (x, y) = (left.batches()[0].column(0), left.batches()[0].column(1));
        let (of_x, of_y) = (right.batches()[0].column(0), right.batches()[0].column(1));
        let number = |array: &ArrayRef, at: usize| array.as_primitive::<Int64Type>().value(at);
        for at in [1, 17, 4_321, 69_999] {
            let matches: Vec<usize> = (0..rows as usize)
                .filter(|&other| {
                    terms.iter().all(|(name, comparison, _)| {
                        let (ours, theirs) = if *name == "x" { (x, of_x) } else { (y, of_y) };
                        comparison.accepts(number(ours, at).cmp(&number(theirs, other)))
                    })
                })
                .collect();
            assert!(matches.len() > 100, "{}", matches.len());
            let batch = &alone[0].slice(at, 1);
            assert_eq!(number(batch.column(2), 0), matches.len() as i64);
            let sum: i64 = matches.iter().map(|&other| number(of_x, other)).sum();
            assert_eq!(number(batch.column(3), 0), sum);
            let floats: Vec<f64> = matches.iter().map(|&other| values(other as i64)).collect();
            let real = |at: usize| Some(batch.column(at).as_primitive::<Float64Type>().value(0));
            assert!(is_sum(real(4), &floats, 1), "{:?} of {} values", real(4), floats.len());
            let (found, expected) = (real(5).unwrap(), variance(&floats).unwrap());
            assert!((found - expected).abs() <= 1e-9 * expected, "{found} {expected}");
            let most = matches.iter().map(|&other| number(of_y, other)).max();
            assert_eq!(Some(number(batch.column(6), 0)), most);
        }
    }
}

#[test]
fn sums_that_overflow_are_an_error_with_names() {
    let left = numbers(vec![("a", Arc::new(Int64Array::from(vec![0, 5])))]);
    let right = numbers(vec![
        ("b", Arc::new(Int64Array::from(vec![1, 1, 9]))),
        ("v", Arc::new(Int64Array::from(vec![i64::MAX, 1, -1]))),
        ("u", Arc::new(UInt64Array::from(vec![0, 0, u64::MAX]))),
    ]);
    let sums = |column: &str, comparison| {
        let terms = [("a", comparison, "b")];
        let spec = spec(&terms, &[], JoinKind::Left, Algorithm::Auto);
        let wanted = vec![aggregate("total", Function::Sum, column)];
        let plan = AggregatePlan::new(left.schema(), right.schema(), spec, wanted).unwrap();
        let operator = plan.bind(&[Arc::clone(&left), Arc::clone(&right)]).unwrap();
        operator.stream(&Run::on(1)).unwrap().collect::<Result<Vec<_>, _>>()
    };
    // Row 0 has all three: what overflows on the way does not matter.
    let batches = sums("v", Comparison::Less).unwrap();
    assert_eq!(batches[0].column(1).as_primitive::<Int64Type>().values(), &[i64::MAX, -1]);
    let overflow = sums("v", Comparison::Greater).unwrap_err().to_string();
    assert!(overflow.contains("aggregate \"total\" overflows: for left row 1"), "{overflow}");
    assert!(overflow.contains("right column \"v\" is 9223372036854775808"), "{overflow}");
    let overflow = sums("u", Comparison::Less).unwrap_err();
    assert!(matches!(&overflow, Error::Invalid(text) if text.contains("left row 0")), "{overflow}");
}

fn refusal(wanted: Vec<Aggregate>, kind: JoinKind, algorithm: Algorithm) -> Error {
    let terms = [("int", Comparison::Less, "int")];
    let spec = spec(&terms, &[], kind, algorithm);
    AggregatePlan::new(&schema(), &schema(), spec, wanted).unwrap_err()
}

#[test]
fn bad_requests_say_what_is_wrong() {
    let refused = |wanted| refusal(wanted, JoinKind::Left, Algorithm::Auto);
    let invalid = [
        (refused(vec![]), "no aggregates"),
        (refused(vec![aggregate("n", Function::Sum, "")]), "sum needs a column"),
        (
            refused(vec![aggregate("n", Function::Sum, "nope")]),
            "right input has no column \"nope\"",
        ),
        (refused(vec![aggregate("n", Function::Sum, "text")]), "sum of right column \"text\""),
        (refused(vec![aggregate("n", Function::Var, "tags")]), "expected a number"),
        (refused(vec![aggregate("n", Function::Min, "tags")]), "right column \"tags\""),
        (refused(vec![aggregate("int", Function::Count, "")]), "\"int\" has a name that is taken"),
        (refused(vec![aggregate("n", Function::Count, ""); 2]), "\"n\" has a name that is taken"),
    ];
    for (error, text) in invalid {
        assert!(matches!(&error, Error::Invalid(found) if found.contains(text)), "{error}");
    }
    let count = || vec![aggregate("n", Function::Count, "")];
    for kind in [JoinKind::Right, JoinKind::Full, JoinKind::Semi, JoinKind::Anti] {
        let error = refusal(count(), kind, Algorithm::Auto);
        assert!(matches!(&error, Error::Unsupported(t) if t.contains(kind.name())), "{error}");
    }
    for algorithm in Algorithm::ALL.into_iter().filter(|a| a.options().is_some()) {
        let error = refusal(count(), JoinKind::Left, algorithm);
        assert!(matches!(&error, Error::Unsupported(t) if t.contains(algorithm.name())), "{error}");
    }
}

#[test]
fn a_watcher_stops_a_sweep_and_a_loop() {
    let rows: Vec<Row> =
        (0..60_000).map(|id| Row { int: Some(id as i32), float: None, text: None, id }).collect();
    let inputs = [table(&rows, &[]), table(&rows, &[])];
    let sweep = [("int", Comparison::Greater, "int"), ("id", Comparison::Less, "id")];
    for (terms, algorithm) in [(&sweep[..], Algorithm::Auto), (&sweep[..1], Algorithm::NestedLoop)]
    {
        for threads in [1, 2] {
            let spec = spec(terms, &[], JoinKind::Left, algorithm);
            let plan = AggregatePlan::new(&schema(), &schema(), spec, aggregates()).unwrap();
            let operator = plan.bind(&inputs).unwrap();
            let control = Control::watched_by(Box::new(|done, _| done == 0));
            let run = Run { control: Arc::new(control), ..Run::on(threads) };
            let stopped =
                operator.stream(&run).and_then(|batches| batches.collect::<Result<Vec<_>, _>>());
            assert!(matches!(stopped, Err(Error::Cancelled)));
            // What was begun can be done again.
            if algorithm == Algorithm::Auto {
                assert_eq!(stream(operator.as_ref(), &Run::on(2))[0].num_columns(), 20);
            }
        }
    }
}
