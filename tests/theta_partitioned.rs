//! Theta joins by partitions: against the oracle, against the source's tables and figures.
#![allow(missing_docs, reason = "tests")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::builder::Decimal128Builder;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float32Array, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray, TimestampSecondArray, UInt32Array,
};
use dovetail::Error;
use dovetail::budget::Budget;
use dovetail::control::Control;
use dovetail::metrics::Metric;
use dovetail::operator::{Operator, Plan, Run};
use dovetail::predicate::{Comparison, JoinKind, Term};
use dovetail::table::Table;
use dovetail::theta::{
    Algorithm, ChainPlan, ChainSpec, Input, PartitionedOptions, Repartition, ThetaPlan, ThetaSpec,
    WindowJoin,
};
use proptest::prelude::*;
use proptest::sample::select;
use support::arrays::Random;
use support::stocks;

use Comparison::{Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};

const DEFAULT: PartitionedOptions = PartitionedOptions::DEFAULT;

/// Full version, no prefilter, no amalgamation, neither.
const ABLATION: [(bool, bool); 4] = [(true, true), (false, true), (true, false), (false, false)];

fn prefap((prefilter, amalgamation): (bool, bool)) -> Algorithm {
    Algorithm::Prefap(PartitionedOptions { prefilter, amalgamation, ..DEFAULT })
}

fn spec(left: &str, comparison: Comparison, right: &str, algorithm: Algorithm) -> ThetaSpec {
    ThetaSpec {
        terms: vec![Term::Compare { left: left.into(), comparison, right: right.into() }],
        by: vec![],
        kind: JoinKind::Inner,
        suffix: "_right".into(),
        algorithm,
    }
}

/// The join of two tables by their column high.
fn by_high(
    left: &Arc<Table>,
    comparison: Comparison,
    right: &Arc<Table>,
    algorithm: Algorithm,
) -> Arc<dyn Operator> {
    let spec = spec("high", comparison, "high", algorithm);
    let plan = ThetaPlan::new(left.schema(), right.schema(), spec).unwrap();
    plan.bind(&[Arc::clone(left), Arc::clone(right)]).unwrap()
}

/// Results and Cartesian products.
fn counted(operator: &dyn Operator) -> (u128, u64) {
    let run = Run::on(2);
    let results = operator.count(&run).unwrap();
    assert_eq!(u128::from(run.metrics.count("results")), results);
    (results, run.metrics.count("cartesian_products"))
}

#[test]
fn table_3_of_the_source() {
    let Some([jnj, msft]) = stocks::highs(["JNJ", "MSFT"]) else { return };
    let published = [104_138, 105_132, 121_647, 134_449];
    let products = ABLATION.map(|switches| {
        let (results, products) = counted(&*by_high(&jnj, LessOrEqual, &msft, prefap(switches)));
        assert_eq!(results, 92_240);
        products
    });
    eprintln!("table 3: {products:?}, published {published:?}");
    for (products, published) in products.iter().zip(published) {
        assert!(*products <= published, "{products} products, published are {published}");
    }
    let [full, no_prefilter, no_amalgamation, neither] = products;
    assert!(full <= no_prefilter && full <= no_amalgamation && no_amalgamation <= neither);
    assert!(full as f64 <= 1.1 * 92_240.0);
}

/// The chain of these tables by one column.
fn chain(
    inputs: &[Arc<Table>],
    column: &str,
    comparisons: &[Comparison],
    algorithm: Algorithm,
) -> Result<Arc<dyn Operator>, Error> {
    let link = |&comparison: &Comparison| {
        vec![Term::Compare { left: column.into(), comparison, right: column.into() }]
    };
    let spec = ChainSpec {
        names: (0..inputs.len()).map(|input| format!("t{input}")).collect(),
        links: comparisons.iter().map(link).collect(),
        by: vec![],
        suffix: "_".into(),
        algorithm,
    };
    let schemas: Vec<_> = inputs.iter().map(|table| table.schema().clone()).collect();
    ChainPlan::new(&schemas, spec)?.bind(inputs)
}

#[test]
fn table_4_of_the_source() {
    let Some([fb, adbe, ibm]) = stocks::highs(["FB", "ADBE", "IBM"]) else { return };
    let published = [74_923_241, 75_093_479, 79_619_026, 84_558_245];
    let products = ABLATION.map(|switches| {
        let inputs = [&fb, &adbe, &ibm].map(Arc::clone);
        let join = chain(&inputs, "high", &[GreaterOrEqual, Less], prefap(switches)).unwrap();
        let run = Run::on(2);
        assert_eq!(join.count(&run).unwrap(), 72_355_085);
        // Both steps: 155,329 pairs besides.
        assert_eq!(run.metrics.count("results"), 72_510_414);
        run.metrics.count("cartesian_products")
    });
    eprintln!("table 4: {products:?}, published {published:?}");
    for (products, published) in products.iter().zip(published) {
        let most = published as f64 * 1.01;
        assert!(*products as f64 <= most, "{products} products, published are {published}");
    }
    let [full, no_prefilter, no_amalgamation, neither] = products;
    assert!(full <= no_prefilter && full <= no_amalgamation && no_amalgamation <= neither);
}

/// How random keys lie.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Narrow,
    Wide,
    AllEqual,
    Skewed,
    /// Infinities, NaN, neighbouring floats and the ends of the range.
    Extreme,
}

/// A key before it gets a type; `None` is null.
type Key = Option<f64>;

fn keys() -> impl Strategy<Value = Vec<Key>> {
    let shape =
        select(vec![Shape::Narrow, Shape::Wide, Shape::AllEqual, Shape::Skewed, Shape::Extreme]);
    (shape, 0..80_usize, any::<u64>()).prop_map(|(shape, rows, seed)| {
        let mut random = Random::new(seed);
        let extremes = [
            f64::NAN,
            -f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MAX,
            f64::MIN,
            -0.0,
            0.0,
            5e-324,
            1.0,
            1_f64.next_up(),
            1_f64.next_up().next_up(),
        ];
        let key = |random: &mut Random| match shape {
            Shape::Narrow => random.below(7) as f64 - 3.0,
            Shape::Wide => random.below(1000) as f64 / 8.0 - 60.0,
            Shape::AllEqual => 2.0,
            Shape::Skewed => (1000.0 / (1.0 + random.below(1000) as f64)).floor(),
            Shape::Extreme => extremes[random.below(extremes.len())],
        };
        (0..rows).map(|_| (random.below(10) > 0).then(|| key(&mut random))).collect()
    })
}

/// Types that keys can take on, two that compare with each other at a time.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Float,
    FloatAndInteger,
    Narrow,
    Decimals,
    DecimalAndFloat,
    Times,
    Text,
    LongText,
    Dictionary,
}

const KINDS: [Kind; 9] = [
    Kind::Float,
    Kind::FloatAndInteger,
    Kind::Narrow,
    Kind::Decimals,
    Kind::DecimalAndFloat,
    Kind::Times,
    Kind::Text,
    Kind::LongText,
    Kind::Dictionary,
];

/// What a key of this kind holds on one side: what can be represented, exactly.
fn settle(key: Key, kind: Kind, left: bool) -> Key {
    let whole = |value: f64| if value.abs() < 1e6 { value.floor() } else { value.signum() * 999.0 };
    key.map(|value| match (kind, left) {
        (Kind::Float, _) | (Kind::FloatAndInteger | Kind::DecimalAndFloat, true) => value,
        (Kind::Narrow, true) => f64::from(value as f32),
        _ if value.is_nan() => 17.0,
        (Kind::Narrow, false) => value,
        _ => whole(value),
    })
}

fn column(keys: &[Key], kind: Kind, left: bool) -> ArrayRef {
    let floats = || Arc::new(keys.iter().copied().collect::<Float64Array>()) as ArrayRef;
    let whole = |key: &Key| key.map(|value| value as i64);
    let decimal = |scale: i8| {
        let mut builder = Decimal128Builder::with_capacity(keys.len());
        for key in keys {
            let units = 10_i128.pow(scale as u32);
            builder.append_option(whole(key).map(|value| i128::from(value) * units));
        }
        Arc::new(builder.finish().with_precision_and_scale(38, scale).unwrap()) as ArrayRef
    };
    // Shifted so that all have the same width, and the order of text is that of the numbers.
    let text = |long: bool| -> StringArray {
        let digits = |key: &Key| {
            whole(key).map(|value| format!("{:05}{}", value + 5000, if long { "-" } else { "" }))
        };
        let long = |text: String| if long { text.repeat(5) } else { text };
        keys.iter().map(|key| digits(key).map(long)).collect()
    };
    match (kind, left) {
        (Kind::Float, _) | (Kind::FloatAndInteger | Kind::DecimalAndFloat, true) => floats(),
        (Kind::Narrow, true) => {
            Arc::new(keys.iter().map(|key| key.map(|v| v as f32)).collect::<Float32Array>())
        }
        (Kind::Narrow, false) => floats(),
        (Kind::FloatAndInteger, false) => Arc::new(keys.iter().map(whole).collect::<Int64Array>()),
        (Kind::Decimals, true) => decimal(2),
        (Kind::Decimals, false) => decimal(9),
        (Kind::DecimalAndFloat, false) => decimal(3),
        (Kind::Times, true) => Arc::new(keys.iter().map(whole).collect::<TimestampSecondArray>()),
        (Kind::Times, false) => {
            let micros = keys.iter().map(|key| whole(key).map(|value| value * 1_000_000));
            Arc::new(micros.collect::<TimestampMicrosecondArray>())
        }
        (Kind::Text, _) => Arc::new(text(false)),
        (Kind::LongText, _) => Arc::new(text(true)),
        (Kind::Dictionary, true) => {
            let text = text(false);
            Arc::new(text.iter().collect::<DictionaryArray<arrow_array::types::Int32Type>>())
        }
        (Kind::Dictionary, false) => Arc::new(text(true)),
    }
}

fn keyed(keys: &[Key], kind: Kind, left: bool, cut: usize) -> Arc<Table> {
    let ids: ArrayRef = Arc::new((0..keys.len() as u32).collect::<UInt32Array>());
    let columns = [("key", column(keys, kind, left), true), ("id", ids, false)];
    let whole = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let cut = cut.min(keys.len());
    let batches = vec![whole.slice(0, cut), whole.slice(cut, keys.len() - cut)];
    Arc::new(Table::new("test", whole.schema(), batches).unwrap())
}

/// By definition, with nothing of the crate but the meaning of the symbols.
fn satisfies(left: f64, comparison: Comparison, right: f64) -> bool {
    let ordering = left.partial_cmp(&right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()));
    match comparison {
        Less => ordering.is_lt(),
        LessOrEqual => ordering.is_le(),
        Greater => ordering.is_gt(),
        GreaterOrEqual => ordering.is_ge(),
        NotEqual => ordering.is_ne(),
    }
}

fn ids(batch: &RecordBatch) -> Vec<(u32, u32)> {
    let column = |name: &str| {
        batch.column_by_name(name).unwrap().as_primitive::<UInt32Type>().values().to_vec()
    };
    column("id").into_iter().zip(column("id_right")).collect()
}

fn options() -> impl Strategy<Value = PartitionedOptions> {
    let repartition =
        select(vec![Repartition::Never, Repartition::Once, Repartition::UntilBalanced]);
    let window = prop::option::weighted(0.3, 1..200_usize);
    (1..=12_usize, any::<[bool; 3]>(), repartition, window, any::<u64>()).prop_map(
        |(partitions, [prefilter, amalgamation, ceiling], repartition, window, seed)| {
            PartitionedOptions {
                partitions,
                prefilter,
                amalgamation,
                repartition,
                ceiling,
                window,
                seed,
            }
        },
    )
}

fn partitioned() -> impl Iterator<Item = Algorithm> {
    Algorithm::ALL.into_iter().filter(|algorithm| algorithm.options().is_some())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn oracle_agrees_with_every_algorithm_and_switch(
        left in keys(),
        right in keys(),
        kind in select(KINDS.to_vec()),
        comparison in select(vec![Less, LessOrEqual, Greater, GreaterOrEqual]),
        options in options(),
        (left_cut, right_cut) in (0..80_usize, 0..80_usize),
        threads in 1..=8_usize,
        most in select(vec![1_usize, 7, 1000]),
    ) {
        let left: Vec<Key> = left.into_iter().map(|key| settle(key, kind, true)).collect();
        let right: Vec<Key> = right.into_iter().map(|key| settle(key, kind, false)).collect();
        let mut expected = Vec::new();
        for (l, left) in (0_u32..).zip(&left) {
            for (r, right) in (0_u32..).zip(&right) {
                let (Some(left), Some(right)) = (left, right) else { continue };
                let holds = match kind {
                    // "00500" is a prefix of "00500-…", and a prefix comes first.
                    Kind::Dictionary if left == right => satisfies(0.0, comparison, 1.0),
                    _ => satisfies(*left, comparison, *right),
                };
                if holds {
                    expected.push((l, r));
                }
            }
        }
        let inputs = [
            keyed(&left, kind, true, left_cut),
            keyed(&right, kind, false, right_cut),
        ];
        let matched = |side: fn(&(u32, u32)) -> u32| {
            let mut rows: Vec<u32> = expected.iter().map(side).collect();
            rows.sort_unstable();
            rows.dedup();
            rows.len() as u64
        };
        let matched = [matched(|pair| pair.0), matched(|pair| pair.1)];
        for algorithm in partitioned().map(|algorithm| algorithm.with_options(options)) {
            let spec = spec("key", comparison, "key", algorithm);
            let plan = ThetaPlan::new(inputs[0].schema(), inputs[1].schema(), spec).unwrap();
            let operator = plan.bind(&inputs).unwrap();
            let mut run = Run::on(threads);
            run.caps.rows = most;
            let batches: Vec<_> = operator.stream(&run).unwrap().map(Result::unwrap).collect();
            let in_order: Vec<_> = batches.iter().flat_map(ids).collect();
            let mut found = in_order.clone();
            found.sort_unstable();
            prop_assert_eq!(&found, &expected, "{}", algorithm.name());

            let alone = operator.stream(&Run::on(1)).unwrap().map(Result::unwrap);
            prop_assert_eq!(&in_order, &alone.flat_map(|batch| ids(&batch)).collect::<Vec<_>>());

            let counting = Run::on(threads);
            prop_assert_eq!(operator.count(&counting).unwrap(), expected.len() as u128);
            let text = operator.explain(&run).unwrap();
            prop_assert!(text.contains(algorithm.name()), "{}", text);
            for metrics in [&run.metrics, &counting.metrics] {
                let count = |name: &str| metrics.count(name);
                prop_assert_eq!(count("results"), expected.len() as u64);
                let keyed = |keys: &[Key]| keys.iter().flatten().count() as u64;
                let all = keyed(&left) * keyed(&right);
                prop_assert!(count("cartesian_products") >= count("results"));
                prop_assert!(count("cartesian_products") <= all);
                if let Algorithm::Rbm(_) | Algorithm::Obt(_) = algorithm {
                    prop_assert_eq!(count("cartesian_products"), all);
                }
                let pairs = count("pairs_kept") + count("pairs_dropped");
                prop_assert_eq!(pairs, count("partitions_left") * count("partitions_right"));
                for (side, [rows, hit, miss, filtered]) in [
                    (&left, ["rows_left", "matched_left", "unmatched_left", "filtered_left"]),
                    (&right, ["rows_right", "matched_right", "unmatched_right", "filtered_right"]),
                ] {
                    prop_assert_eq!(count(rows), side.len() as u64);
                    prop_assert_eq!(count(hit) + count(miss) + count(filtered), count(rows));
                }
                prop_assert_eq!([count("matched_left"), count("matched_right")], matched);
                for name in ["load_balance_in", "load_balance_out"] {
                    let ratio = real(metrics, name);
                    prop_assert!((1.0..=4.0).contains(&ratio), "{} {}", name, ratio);
                }
            }
        }
    }

    #[test]
    fn oracle_agrees_with_chains(
        inputs in prop::collection::vec(keys(), 2..5),
        comparisons in prop::collection::vec(select(vec![Less, LessOrEqual, Greater]), 4),
        options in options(),
        threads in 1..=4_usize,
    ) {
        let inputs: Vec<Vec<Key>> =
            inputs.into_iter().map(|keys| keys.into_iter().take(15).collect()).collect();
        let comparisons = &comparisons[..inputs.len() - 1];
        let mut tuples: Vec<Vec<u32>> = (0..inputs[0].len() as u32).map(|row| vec![row]).collect();
        let mut results = Vec::new();
        for (step, next) in inputs.iter().enumerate().skip(1) {
            let mut longer = Vec::new();
            for tuple in &tuples {
                let last = inputs[step - 1][tuple[step - 1] as usize];
                for (row, key) in (0_u32..).zip(next) {
                    let (Some(last), Some(key)) = (last, *key) else { continue };
                    if satisfies(last, comparisons[step - 1], key) {
                        longer.push([&tuple[..], &[row]].concat());
                    }
                }
            }
            tuples = longer;
            results.push(tuples.len() as u64);
        }
        tuples.sort_unstable();
        let inputs: Vec<Arc<Table>> =
            inputs.iter().map(|keys| keyed(keys, Kind::Float, true, 3)).collect();
        let algorithms = partitioned().map(|algorithm| algorithm.with_options(options));
        for algorithm in algorithms.chain([Algorithm::NestedLoop]) {
            let chain = chain(&inputs, "key", comparisons, algorithm).unwrap();
            let (counting, run) = (Run::on(threads), Run::on(threads));
            prop_assert_eq!(chain.count(&counting).unwrap(), tuples.len() as u128);
            let mut found = Vec::new();
            for batch in chain.stream(&run).unwrap() {
                let batch = batch.unwrap();
                let column = |input: usize| {
                    let name = if input == 0 { "id".into() } else { format!("id_{input}") };
                    let column = batch.column_by_name(&name).unwrap();
                    column.as_primitive::<UInt32Type>().values().to_vec()
                };
                let columns: Vec<Vec<u32>> = (0..inputs.len()).map(column).collect();
                let tuple = |i: usize| columns.iter().map(|rows| rows[i]).collect::<Vec<u32>>();
                found.extend((0..batch.num_rows()).map(tuple));
            }
            found.sort_unstable();
            prop_assert_eq!(&found, &tuples);
            for metrics in [&counting.metrics, &run.metrics] {
                prop_assert_eq!(metrics.count("rows_out"), tuples.len() as u64);
                prop_assert_eq!(metrics.count("results"), results.iter().sum::<u64>());
                prop_assert!(metrics.count("cartesian_products") >= metrics.count("results"));
                prop_assert!((1.0..=4.0).contains(&real(metrics, "load_balance_out")));
            }
        }
    }
}

/// A window join by the column key, and its run.
fn windows(window: usize, algorithm: Algorithm, budget: Budget, run: &Run) -> WindowJoin {
    let schema = keyed(&[], Kind::Float, true, 0).schema().clone();
    let plan =
        ThetaPlan::new(&schema, &schema, spec("key", LessOrEqual, "key", algorithm)).unwrap();
    let mut join = WindowJoin::new(window, run.clone(), budget).unwrap();
    join.describe(plan, [schema.clone(), schema]).unwrap();
    join
}

/// What comes out when both streams have ended.
fn rest(join: &mut WindowJoin) -> impl Iterator<Item = RecordBatch> {
    join.finish();
    std::iter::from_fn(|| join.poll().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn oracle_agrees_with_windows(
        left in keys(),
        right in keys(),
        window in 1..40_usize,
        options in options(),
        algorithm in select(Algorithm::ALL.to_vec()),
        sizes in prop::collection::vec((any::<bool>(), 1..30_usize, any::<bool>()), 0..20),
        threads in 1..=3_usize,
    ) {
        let algorithm = algorithm.with_options(options);
        let mut expected = Vec::new();
        for (l, left) in left.iter().enumerate() {
            for (r, right) in right.iter().enumerate() {
                let (Some(left), Some(right)) = (left, right) else { continue };
                if l / window == r / window && satisfies(*left, LessOrEqual, *right) {
                    expected.push((l as u32, r as u32));
                }
            }
        }
        let run = Run::on(threads);
        let budget = Budget::bytes(1 << 20);
        let mut join = windows(window, algorithm, budget.clone(), &run);
        let batches =
            [&left, &right].map(|keys| keyed(keys, Kind::Float, true, 0).batches().to_vec());
        let mut pushed = [0, 0];
        let mut found = Vec::new();
        // Random pieces in random order, then what is left; polled now and then.
        let ends = [(false, 100, false), (true, 100, true)];
        for (second, rows, poll) in sizes.into_iter().chain(ends) {
            let side = usize::from(second);
            if let [batch] = &batches[side][..] {
                let rows = rows.min(batch.num_rows() - pushed[side]);
                let input = if second { Input::Right } else { Input::Left };
                join.push(input, &[batch.slice(pushed[side], rows)]).unwrap();
                pushed[side] += rows;
            }
            while poll && let Some(batch) = join.poll().unwrap() {
                found.extend(ids(&batch));
            }
        }
        let full = |rows: &[Key]| rows.len() / window;
        let before = full(&left).min(full(&right)) * window;
        prop_assert!(found.iter().all(|pair| (pair.0 as usize) < before));
        prop_assert_eq!(found.len(), expected.iter().filter(|p| (p.0 as usize) < before).count());
        rest(&mut join).for_each(|batch| found.extend(ids(&batch)));
        found.sort_unstable();
        prop_assert_eq!(found, expected);
        prop_assert_eq!(budget.used(), 0);
        let count = |name: &str| run.metrics.count(name);
        for (side, [rows, hit, miss, filtered]) in [
            (&left, ["rows_left", "matched_left", "unmatched_left", "filtered_left"]),
            (&right, ["rows_right", "matched_right", "unmatched_right", "filtered_right"]),
        ] {
            prop_assert_eq!(count(rows), side.len() as u64);
            prop_assert_eq!(count(hit) + count(miss) + count(filtered), count(rows));
        }
        let pairs = left.len().div_ceil(window).min(right.len().div_ceil(window));
        prop_assert_eq!(count("windows"), pairs as u64);
    }
}

#[test]
fn windows_that_wait_are_paid_for() {
    let run = Run::on(1);
    let rows = keyed(&vec![Some(1.0); 100], Kind::Float, true, 0);
    let batch = &rows.batches()[0];
    let mut join = windows(10, Algorithm::Prefap(DEFAULT), Budget::bytes(2500), &run);
    join.push(Input::Left, std::slice::from_ref(batch)).unwrap();
    join.push(Input::Right, &[batch.slice(0, 30)]).unwrap();
    let error = join.push(Input::Left, std::slice::from_ref(batch)).unwrap_err();
    let said = |error: &Error, word: &str| {
        let what = error.to_string();
        matches!(error, Error::Budget { .. }) && what.contains("left stream") && what.contains(word)
    };
    assert!(said(&error, "windows are ready: poll"), "{error}");
    let mut out = 0;
    while let Some(batch) = join.poll().unwrap() {
        out += batch.num_rows();
    }
    assert_eq!(out, 3 * 100);
    let more = keyed(&vec![Some(1.0); 200], Kind::Float, true, 0);
    let error = join.push(Input::Left, more.batches()).unwrap_err();
    assert!(said(&error, "waits for rows of the right stream"), "{error}");
    join.push(Input::Right, &[batch.slice(30, 70)]).unwrap();
    out += rest(&mut join).map(|batch| batch.num_rows()).sum::<usize>();
    assert_eq!(out, 10 * 100);
    let other = uniform(5, 0.0, 1.0, 0);
    let mut join = windows(10, Algorithm::Prefap(DEFAULT), Budget::unlimited(), &run);
    let error = join.push(Input::Right, other.batches()).unwrap_err();
    assert!(matches!(&error, Error::Invalid(text) if text.contains("right batch")), "{error}");
    // The right one can still be pushed.
    join.push(Input::Right, std::slice::from_ref(batch)).unwrap();
    join.push(Input::Left, std::slice::from_ref(batch)).unwrap();
    assert_eq!(rest(&mut join).map(|batch| batch.num_rows()).sum::<usize>(), 1000);
}

#[test]
fn windows_may_begin_before_they_are_described() {
    let run = Run::on(1);
    let rows = keyed(&vec![Some(1.0); 25], Kind::Float, true, 0);
    let (schema, batch) = (rows.schema(), &rows.batches()[0]);
    let plan = |kind: JoinKind, algorithm: Algorithm| {
        let spec = ThetaSpec { kind, ..spec("key", LessOrEqual, "key", algorithm) };
        ThetaPlan::new(schema, schema, spec).unwrap()
    };
    let mut join = WindowJoin::new(10, run.clone(), Budget::unlimited()).unwrap();
    join.push(Input::Left, std::slice::from_ref(batch)).unwrap();
    join.push(Input::Right, std::slice::from_ref(batch)).unwrap();
    assert!(join.poll().unwrap().is_none() && join.schema().is_none());
    let both = || [schema.clone(), schema.clone()];
    let left = join.describe(plan(JoinKind::Left, Algorithm::Auto), both()).unwrap_err();
    assert!(matches!(&left, Error::Unsupported(text) if text.contains("left")), "{left}");
    let other = uniform(1, 0.0, 1.0, 0).schema().clone();
    let wrong = plan(JoinKind::Inner, Algorithm::Auto);
    assert!(join.describe(wrong, [schema.clone(), other]).is_err());
    join.describe(plan(JoinKind::Inner, Algorithm::Prefap(DEFAULT)), both()).unwrap();
    let out: usize = rest(&mut join).map(|batch| batch.num_rows()).sum();
    assert_eq!(out, 100 + 100 + 25);
    assert_eq!(run.metrics.count("cartesian_products"), 225);
    let late = join.push(Input::Left, rows.batches()).unwrap_err();
    assert!(matches!(&late, Error::Invalid(text) if text.contains("finish")), "{late}");
    // Never described, never joined: rows are still accounted for.
    let run = Run::on(1);
    let mut join = WindowJoin::new(10, run.clone(), Budget::unlimited()).unwrap();
    join.push(Input::Left, std::slice::from_ref(batch)).unwrap();
    assert_eq!(rest(&mut join).count(), 0);
    assert_eq!(run.metrics.count("unmatched_left"), 25);
    assert!(WindowJoin::new(0, run, Budget::unlimited()).is_err());
}

/// A poll that was stopped loses nothing: the next one goes on behind the last batch.
#[test]
fn a_poll_that_was_stopped_is_gone_on_with() {
    const ROWS: usize = 2000;
    let rows = keyed(&vec![Some(1.0); ROWS], Kind::Float, true, 0);
    for (algorithm, threads) in [(Algorithm::NestedLoop, 1), (Algorithm::Prefap(DEFAULT), 2)] {
        let stop = Arc::new(AtomicBool::new(false));
        let watched = Arc::clone(&stop);
        let watcher = Box::new(move |_, _| !watched.load(Ordering::Relaxed));
        let control = Arc::new(Control::watched_by(watcher));
        let mut run = Run { control, ..Run::on(threads) };
        run.caps.rows = 64;
        let mut join = windows(ROWS, algorithm, Budget::unlimited(), &run);
        join.push(Input::Left, rows.batches()).unwrap();
        join.push(Input::Right, rows.batches()).unwrap();
        let mut seen = vec![false; ROWS * ROWS];
        let mut see = |batch: &RecordBatch| {
            for (left, right) in ids(batch) {
                let pair = left as usize * ROWS + right as usize;
                assert!(!std::mem::replace(&mut seen[pair], true), "{left}, {right} twice");
            }
        };
        see(&join.poll().unwrap().unwrap());
        stop.store(true, Ordering::Relaxed);
        // Thousands of batches are left, and it is looked at every few milliseconds.
        let stopped = loop {
            match join.poll() {
                Ok(batch) => see(&batch.unwrap()),
                Err(error) => break error,
            }
        };
        assert!(matches!(stopped, Error::Cancelled));
        assert!(matches!(join.poll(), Err(Error::Cancelled)));
        join.watch(Arc::default());
        rest(&mut join).for_each(|batch| see(&batch));
        assert!(seen.into_iter().all(|seen| seen));
        let count = |name: &str| run.metrics.count(name);
        assert_eq!((count("windows"), count("rows_left")), (1, ROWS as u64));
        assert_eq!(count("results"), (ROWS * ROWS) as u64);
        assert!(join.poll().unwrap().is_none());
        assert_eq!(count("rows_left"), ROWS as u64);
    }
}

fn real(metrics: &dovetail::metrics::Metrics, name: &str) -> f64 {
    let found = metrics.snapshot().into_iter().find(|(found, _)| *found == name);
    match found {
        Some((_, Metric::Real(value))) => value,
        other => panic!("{name} is {other:?}"),
    }
}

/// What the source's figures compare.
#[derive(Debug)]
struct Measured {
    products: u64,
    results: u128,
    balance_in: f64,
    balance_out: f64,
}

fn measured(
    left: &Arc<Table>,
    comparison: Comparison,
    right: &Arc<Table>,
    algorithm: Algorithm,
) -> Measured {
    let run = Run::on(2);
    let results = by_high(left, comparison, right, algorithm).count(&run).unwrap();
    Measured {
        products: run.metrics.count("cartesian_products"),
        results,
        balance_in: real(&run.metrics, "load_balance_in"),
        balance_out: real(&run.metrics, "load_balance_out"),
    }
}

/// prefap, ftj, cfs, obt, rbm.
fn figure(left: &Arc<Table>, comparison: Comparison, right: &Arc<Table>) -> [Measured; 5] {
    let all: Vec<Measured> =
        partitioned().map(|algorithm| measured(left, comparison, right, algorithm)).collect();
    for (algorithm, measured) in partitioned().zip(&all) {
        eprintln!("{:>6} {measured:?}", algorithm.name());
        assert_eq!(measured.results, all[0].results);
    }
    all.try_into().unwrap()
}

fn uniform(rows: usize, low: f64, high: f64, seed: u64) -> Arc<Table> {
    let mut random = Random::new(seed);
    let step = |random: &mut Random| random.below(1 << 30) as f64 / (1 << 30) as f64;
    stocks::table((0..rows).map(|_| low + (high - low) * step(&mut random)).collect())
}

/// Ranks 1 to 1000, rank k with weight k^-alpha.
fn zipf(rows: usize, alpha: f64, seed: u64) -> Arc<Table> {
    let mut random = Random::new(seed);
    let mut sum = 0.0;
    let totals: Vec<f64> = (1..=1000)
        .map(|rank| {
            sum += f64::powf(f64::from(rank), -alpha);
            sum
        })
        .collect();
    let draw = |random: &mut Random| {
        let at = sum * random.below(1 << 30) as f64 / (1 << 30) as f64;
        1.0 + totals.partition_point(|total| *total <= at) as f64
    };
    stocks::table((0..rows).map(|_| draw(&mut random)).collect())
}

/// Figures 5, 6 and 8: each algorithm spares products that the one before it makes.
fn products_fall_as_published([prefap, ftj, cfs, obt, rbm]: &[Measured; 5], all: u64) {
    assert_eq!((obt.products, rbm.products), (all, all));
    assert!(prefap.products < ftj.products, "{prefap:?} {ftj:?}");
    assert!(ftj.products < cfs.products, "{ftj:?} {cfs:?}");
    assert!(cfs.products < all, "{cfs:?}");
}

#[test]
fn figure_5_uniform() {
    for seed in 0..5 {
        let (r, s) = (uniform(1000, 20.0, 50.0, seed), uniform(1000, 10.0, 40.0, seed + 100));
        let all = figure(&r, LessOrEqual, &s);
        products_fall_as_published(&all, 1_000_000);
        let [prefap, ftj, ..] = all;
        assert!(prefap.balance_in <= ftj.balance_in && prefap.balance_out <= ftj.balance_out);
    }
}

#[test]
fn figure_6_zipf() {
    let mut wins = 0;
    let mut sums = [0, 0];
    for seed in 0..10 {
        let (r, s) = (zipf(1000, 1.2, seed), zipf(1000, 1.3, seed + 100));
        let [prefap, ftj, cfs, obt, rbm] = figure(&r, LessOrEqual, &s);
        assert_eq!((obt.products, rbm.products), (1_000_000, 1_000_000));
        assert!(ftj.products < cfs.products);
        wins += u32::from(prefap.products < ftj.products);
        sums = [sums[0] + prefap.products, sums[1] + ftj.products];
        // Ranges between sampled keys suffer from skew, blocks of equal count do not.
        assert!(obt.balance_in < 1.01 && rbm.balance_in > 1.1, "{obt:?} {rbm:?}");
        assert!(obt.balance_out < 1.5 && rbm.balance_out > 1.5, "{obt:?} {rbm:?}");
        assert!(prefap.balance_in < cfs.balance_in && prefap.balance_out < cfs.balance_out);
    }
    // Where most rows share few values, a cut more or less is luck: the claim is one of averages.
    assert!(sums[0] < sums[1] && wins > 5, "{sums:?}, {wins} of 10");
}

#[test]
fn figure_8_stocks() {
    let Some([ibm, msft]) = stocks::highs(["IBM", "MSFT"]) else { return };
    let all = figure(&ibm, LessOrEqual, &msft);
    products_fall_as_published(&all, 754 * 754);
    let [prefap, ftj, ..] = all;
    assert!(prefap.balance_in <= ftj.balance_in && prefap.balance_out <= ftj.balance_out);
}

/// Figures 12 and 13: more partitions, fewer products.
#[test]
fn more_partitions_make_fewer_products() {
    let (r, s) = (uniform(1000, 20.0, 50.0, 1), uniform(1000, 10.0, 40.0, 2));
    let products = [3, 5, 8, 10].map(|partitions| {
        let options = PartitionedOptions { partitions, ..DEFAULT };
        let prefap = measured(&r, LessOrEqual, &s, Algorithm::Prefap(options));
        let ftj = measured(&r, LessOrEqual, &s, Algorithm::Ftj(options));
        assert!(prefap.products < ftj.products, "{prefap:?} {ftj:?}");
        prefap.products
    });
    assert!(products.is_sorted_by(|fewer, more| fewer > more), "{products:?}");
}

#[test]
fn ftj_is_prefap_with_both_switched_off() {
    let (r, s) = (zipf(500, 1.2, 3), uniform(400, 0.0, 900.0, 4));
    for comparison in [Less, LessOrEqual, Greater, GreaterOrEqual] {
        let ftj = measured(&r, comparison, &s, Algorithm::Ftj(DEFAULT));
        let bare = measured(&r, comparison, &s, prefap((false, false)));
        assert_eq!(format!("{ftj:?}"), format!("{bare:?}"));
    }
}

/// Section 3.3: R in [1, 9] and S in [0, 8] after prefiltering; the partitions begin at the
/// amalgamated cuts 0, 1, 2.67, 3.67, 5.33, 6.33, 8, 9.
#[test]
fn the_worked_example_of_the_source() {
    let r = stocks::table((0..=9).map(f64::from).collect());
    let s = stocks::table((0..=12).map(f64::from).collect());
    let options = PartitionedOptions { partitions: 3, repartition: Repartition::Never, ..DEFAULT };
    let operator = by_high(&r, Greater, &s, Algorithm::Prefap(options));
    let text = operator.explain(&Run::on(1)).unwrap();
    for side in [
        "left       10 rows: 0 with a null key, 1 filtered, 9 in 6 partitions: \
         [1, 2] 2, [3, 3] 1, [4, 5] 2, [6, 6] 1, [7, 7] 1, [8, 9] 2\n",
        "right      13 rows: 0 with a null key, 4 filtered, 9 in 7 partitions: \
         [0, 0] 1, [1, 2] 2, [3, 3] 1, [4, 5] 2, [6, 6] 1, [7, 7] 1, [8, 8] 1\n",
    ] {
        assert!(text.contains(side), "{text}");
    }
    let (results, products) = counted(&*operator);
    assert_eq!(results, 45);
    // Left partition by left partition, with the right rows that its greatest value exceeds some of.
    assert_eq!(products, 2 * 3 + 3 + 2 * 6 + 6 + 7 + 2 * 9);
}

#[test]
fn all_equal_keys_are_spread_over_the_workers() {
    let same = stocks::table([vec![1.0; 1000], vec![0.0; 100], vec![5.0; 100]].concat());
    for algorithm in [Algorithm::Prefap(DEFAULT), Algorithm::Ftj(DEFAULT)] {
        let spread = measured(&same, LessOrEqual, &same, algorithm);
        assert!(spread.balance_in < 1.25 && spread.balance_out < 1.25, "{spread:?}");
        let options = PartitionedOptions { repartition: Repartition::Never, ..DEFAULT };
        let whole = measured(&same, LessOrEqual, &same, algorithm.with_options(options));
        assert!(whole.balance_out > 2.0, "{whole:?}");
        assert_eq!(spread.products, whole.products);
    }
}

/// A block of comparisons is a thousand: output stops and goes on in the middle of a row.
#[test]
fn long_rows_are_resumed_where_they_stopped() {
    let (left, right) = (vec![Some(1.0); 3], vec![Some(1.0); 2500]);
    let inputs = [keyed(&left, Kind::Float, true, 0), keyed(&right, Kind::Float, true, 9)];
    let whole = PartitionedOptions { partitions: 1, repartition: Repartition::Never, ..DEFAULT };
    let compare = Algorithm::ALL.into_iter().filter(|algorithm| *algorithm != Algorithm::Auto);
    for algorithm in compare.map(|algorithm| algorithm.with_options(whole)) {
        let spec = spec("key", LessOrEqual, "key", algorithm);
        let plan = ThetaPlan::new(inputs[0].schema(), inputs[1].schema(), spec).unwrap();
        let operator = plan.bind(&inputs).unwrap();
        for threads in [1, 3] {
            let mut run = Run::on(threads);
            run.caps.rows = 10;
            let batches = operator.stream(&run).unwrap().map(Result::unwrap);
            let found: Vec<_> = batches.flat_map(|batch| ids(&batch)).collect();
            let all = (0..3).flat_map(|l| (0..2500).map(move |r| (l, r)));
            assert!(found.into_iter().eq(all), "{}", algorithm.name());
            assert_eq!(run.metrics.count("comparisons"), 7500);
        }
    }
}

#[test]
fn a_watcher_stops_joins_and_chains() {
    let table = uniform(20_000, 0.0, 1.0, 7);
    for algorithm in partitioned() {
        let inputs = [Arc::clone(&table), Arc::clone(&table)];
        let chain = chain(&inputs, "high", &[Less], algorithm).unwrap();
        let join = by_high(&table, Less, &table, algorithm);
        for threads in [1, 2] {
            let control = || Arc::new(Control::watched_by(Box::new(|done, _| done == 0)));
            let run = Run { control: control(), ..Run::on(threads) };
            assert!(matches!(join.count(&run), Err(Error::Cancelled)));
            let run = Run { control: control(), ..Run::on(threads) };
            assert!(matches!(chain.count(&run), Err(Error::Cancelled)));
        }
    }
}

#[test]
fn what_is_out_of_scope_is_refused() {
    let table = uniform(10, 0.0, 1.0, 0);
    let plan = |spec: ThetaSpec| ThetaPlan::new(table.schema(), table.schema(), spec).unwrap_err();
    for algorithm in partitioned() {
        let one = spec("high", Less, "high", algorithm);
        let unequal = plan(spec("high", NotEqual, "high", algorithm));
        let two =
            plan(ThetaSpec { terms: [&one.terms[..], &one.terms[..]].concat(), ..one.clone() });
        let by = plan(ThetaSpec { by: vec![("high".into(), "high".into())], ..one.clone() });
        let left = plan(ThetaSpec { kind: JoinKind::Left, ..one.clone() });
        for error in [&unequal, &two, &by] {
            let names = |text: &str| text.contains(algorithm.name()) && text.contains("default");
            assert!(matches!(error, Error::Unsupported(text) if names(text)), "{error}");
        }
        assert!(matches!(&left, Error::Unsupported(_)), "{left}");
        for options in [
            PartitionedOptions { partitions: 0, ..DEFAULT },
            PartitionedOptions { partitions: 1_000_000, ..DEFAULT },
            PartitionedOptions { window: Some(0), ..DEFAULT },
        ] {
            let wrong =
                plan(ThetaSpec { algorithm: algorithm.with_options(options), ..one.clone() });
            assert!(matches!(&wrong, Error::Invalid(text) if text.contains('=')), "{wrong}");
        }
    }
    for algorithm in [Algorithm::Auto, Algorithm::NestedLoop] {
        let error = algorithm.given(Some(DEFAULT)).unwrap_err();
        let said = |text: &str| text.contains("options=") && text.contains(algorithm.name());
        assert!(matches!(&error, Error::Invalid(text) if said(text)), "{error}");
        assert_eq!(algorithm.given(None).unwrap(), algorithm);
    }
    let unequal = chain(&[table.clone(), table], "high", &[NotEqual], Algorithm::Prefap(DEFAULT));
    assert!(matches!(unequal.err(), Some(Error::Unsupported(_))));
}
