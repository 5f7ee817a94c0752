//! Chains of tables against the oracle: any length, several columns, every cut and thread count.
#![allow(missing_docs, reason = "tests")]

mod support;

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, NullArray, RecordBatch, StringArray};
use dovetail::Error;
use dovetail::control::Control;
use dovetail::operator::{Operator, Plan, Run};
use dovetail::output::Caps;
use dovetail::predicate::{Comparison, Term};
use dovetail::table::Table;
use dovetail::theta::{Algorithm, ChainPlan, ChainSpec};
use proptest::prelude::*;
use proptest::sample::select;
use support::oracle::{self, OracleTerm};
use support::rows::{Row, read, rows, schema, table};
use support::stocks;

use Comparison::{Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};

fn spec(links: &[Vec<OracleTerm>], by: &[&str], algorithm: Algorithm) -> ChainSpec {
    let term = |&(left, comparison, right): &OracleTerm| Term::Compare {
        left: left.into(),
        comparison,
        right: right.into(),
    };
    ChainSpec {
        names: (0..=links.len()).map(|input| format!("t{input}")).collect(),
        links: links.iter().map(|link| link.iter().map(term).collect()).collect(),
        by: by.iter().map(|name| (*name).into()).collect(),
        suffix: "_".into(),
        algorithm,
    }
}

fn plan(links: &[Vec<OracleTerm>], by: &[&str], algorithm: Algorithm) -> Result<ChainPlan, Error> {
    let schemas = vec![schema(); links.len() + 1];
    ChainPlan::new(&schemas, spec(links, by, algorithm))
}

/// Runs a chain and reads its tuples back; equality columns are read off the first input.
fn joined(operator: &dyn Operator, run: &Run, inputs: usize, by: &[&str]) -> Vec<Vec<Row>> {
    let mut found: Vec<Vec<Row>> = Vec::new();
    for batch in operator.stream(run).unwrap() {
        let batch = batch.unwrap();
        assert!(batch.num_rows() > 0 && batch.num_rows() <= run.caps.rows.max(1));
        assert_eq!(&batch.schema(), operator.schema());
        let begin = found.len();
        found.resize(begin + batch.num_rows(), Vec::new());
        for input in 0..inputs {
            let column = |name: &str| {
                let shared = input == 0 || by.contains(&name);
                let name = if shared { name.into() } else { format!("{name}_{input}") };
                batch.schema().index_of(&name).unwrap()
            };
            let columns = ["int", "float", "text", "id", "tags"].map(column);
            let rows = read(&batch.project(&columns).unwrap(), 0);
            found[begin..].iter_mut().zip(rows).for_each(|(tuple, row)| tuple.push(row.unwrap()));
        }
    }
    found
}

fn ids(tuples: &[Vec<Row>]) -> Vec<Vec<u32>> {
    tuples.iter().map(|tuple| tuple.iter().map(|row| row.id).collect()).collect()
}

/// Columns that compare, and how.
fn comparison() -> impl Strategy<Value = Comparison> {
    select(Comparison::ALL.to_vec())
}

/// One term, or several with one column of the later input.
fn link() -> impl Strategy<Value = Vec<OracleTerm>> {
    let number = || select(vec!["int", "float", "id"]);
    let text = comparison().prop_map(|comparison| vec![("text", comparison, "text")]);
    let one = (number(), comparison(), number()).prop_map(|(a, c, b)| vec![(a, c, b)]);
    let several = (
        prop::collection::vec((number(), select(vec![Less, LessOrEqual, Greater])), 1..3),
        (number(), select(vec![GreaterOrEqual, NotEqual])),
        number(),
    );
    let several = several.prop_map(|(mut terms, last, b)| {
        terms.push(last);
        terms.into_iter().map(|(a, comparison)| (a, comparison, b)).collect()
    });
    prop_oneof![3 => one, 1 => text, 2 => several]
}

/// Inputs in the order of the walk, with the column that each is sorted by: from the first input
/// where all terms of a link are with one column of its later input, else from the last.
fn stages(links: &[Vec<OracleTerm>]) -> Vec<(usize, Option<&'static str>)> {
    let down = links.iter().all(|link| link.iter().all(|term| term.2 == link[0].2));
    let mut stages = vec![(if down { 0 } else { links.len() }, None)];
    for number in 0..links.len() {
        stages.push(match down {
            true => (number + 1, Some(links[number][0].2)),
            false => (links.len() - 1 - number, Some(links[links.len() - 1 - number][0].0)),
        });
    }
    stages
}

/// Tuples are in the documented order: the row of the first stage, then key and row of each other.
fn assert_in_order(tuples: &[Vec<Row>], stages: &[(usize, Option<&str>)]) {
    for pair in tuples.windows(2) {
        let order = stages.iter().map(|&(input, column)| {
            let (a, b) = (&pair[0][input], &pair[1][input]);
            let by_key = column.map_or(Ordering::Equal, |c| oracle::compare(a, c, b, c).unwrap());
            by_key.then(a.id.cmp(&b.id))
        });
        assert_eq!(order.fold(Ordering::Equal, Ordering::then), Ordering::Less, "{pair:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn oracle_agrees(
        inputs in prop::collection::vec(rows(14), 2..=5),
        links in prop::collection::vec(link(), 4),
        upside_down in any::<bool>(),
        by in prop::sample::subsequence(vec!["int", "text"], 0..=2),
        cuts in prop::collection::vec(prop::collection::vec(0..1000_usize, 0..4), 5),
        threads in 1..=8_usize,
        caps in select(vec![(1, u64::MAX), (7, u64::MAX), (1000, 1), (1000, 300)]),
        limit in 0..50_u64,
    ) {
        // Long chains of everything with everything would take the oracle too long.
        let most = [14, 14, 10, 6][inputs.len() - 2];
        let inputs: Vec<Vec<Row>> =
            inputs.into_iter().map(|rows| rows.into_iter().take(most).collect()).collect();
        let mut links: Vec<Vec<OracleTerm>> = links[..inputs.len() - 1].to_vec();
        if upside_down {
            // With one column of the earlier input everywhere.
            links.iter_mut().flatten().for_each(|term| *term = (term.2, term.1.turned(), term.0));
        }
        let expected = oracle::tuples(&inputs, &links, &by);
        let tables: Vec<Arc<Table>> =
            inputs.iter().zip(&cuts).map(|(rows, cuts)| table(rows, cuts)).collect();
        let operator = plan(&links, &by, Algorithm::Auto).unwrap().bind(&tables).unwrap();
        let run = Run { caps: Caps { rows: caps.0, bytes: caps.1 }, ..Run::on(threads) };
        let found = joined(operator.as_ref(), &run, inputs.len(), &by);
        assert_in_order(&found, &stages(&links));

        let counting = Run::on(threads);
        prop_assert_eq!(operator.count(&counting).unwrap(), expected.len() as u128);
        for metrics in [&run.metrics, &counting.metrics] {
            prop_assert_eq!(metrics.count("rows_out"), expected.len() as u64);
            for (input, rows) in inputs.iter().enumerate() {
                let count = |name: &str| metrics.count(&format!("{name}_{input}"));
                let mut matched: Vec<u32> = expected.iter().map(|tuple| tuple[input].id).collect();
                matched.sort_unstable();
                matched.dedup();
                prop_assert_eq!(count("matched"), matched.len() as u64);
                prop_assert_eq!(count("rows"), rows.len() as u64);
                let all = count("matched") + count("unmatched") + count("filtered");
                prop_assert_eq!(all, rows.len() as u64);
                if links.iter().all(|link| link.len() == 1) {
                    // Bounds alone leave nothing but what takes part; nulls are unmatched.
                    let text = operator.explain(&run).unwrap();
                    let kept = format!(" {0} kept; {0} take part", matched.len());
                    prop_assert!(text.lines().nth(2 + input).unwrap().ends_with(&kept), "{}", text);
                }
            }
        }
        let limited = Run { limit: Some(limit), ..Run::on(threads) };
        let first = joined(operator.as_ref(), &limited, inputs.len(), &by);
        prop_assert_eq!(ids(&first), &ids(&found)[..found.len().min(limit as usize)]);
        let alone = joined(operator.as_ref(), &Run::on(1), inputs.len(), &by);
        prop_assert_eq!(ids(&alone), ids(&found), "the order does not depend on threads and caps");

        let by_id = |tuples: Vec<Vec<Row>>| {
            let mut tuples = tuples;
            tuples.sort_by_key(|tuple| tuple.iter().map(|row| row.id).collect::<Vec<_>>());
            tuples
        };
        let (found, expected) = (by_id(found), by_id(expected));
        prop_assert_eq!(ids(&found), ids(&expected));
        if by.is_empty() {
            // Equal keys may differ in bits, and only one of them comes out.
            prop_assert_eq!(found, expected);
        }
    }
}

/// Long runs of the last input are copied as stretches; batches end anywhere in them.
#[test]
fn oracle_agrees_on_long_runs_whatever_the_batches() {
    // Keys are permutations of 0..60: `key * inverse % 60` is the row of a key.
    let of = |step: u32| -> Vec<Row> {
        let text = |id: u32| (!id.is_multiple_of(7)).then(|| "x".repeat(id as usize % 9));
        let row = |id| Row { int: Some((id * step % 60) as i32), float: None, text: text(id), id };
        (0..60).map(row).collect()
    };
    let rows = [of(7), of(11), of(13)];
    let row_of = |input: usize, key: u32| key * [43, 11, 37][input] % 60;
    let mut expected = Vec::new();
    for first in 0..60 {
        for second in first * 7 % 60..60 {
            for third in (0..60).filter(|third| *third != second) {
                expected.push(vec![first, row_of(1, second), row_of(2, third)]);
            }
        }
    }
    let inputs = [table(&rows[0], &[20]), table(&rows[1], &[]), table(&rows[2], &[7, 40])];
    let links = [vec![("int", LessOrEqual, "int")], vec![("int", NotEqual, "int")]];
    let operator = plan(&links, &[], Algorithm::Auto).unwrap().bind(&inputs).unwrap();
    assert_eq!(operator.count(&Run::on(2)).unwrap(), expected.len() as u128);
    for (most, bytes) in [(1 << 10, u64::MAX), (10_007, u64::MAX), (1 << 17, 2000), (50, 1 << 20)] {
        let run = Run { caps: Caps { rows: most, bytes }, ..Run::on(3) };
        let found = joined(operator.as_ref(), &run, 3, &[]);
        assert!(ids(&found) == expected, "{most} rows, {bytes} bytes");
        for (input, rows) in rows.iter().enumerate() {
            assert!(found.iter().all(|tuple| tuple[input] == rows[tuple[input].id as usize]));
        }
    }
}

/// 100 rows that are all equal, 20 times: 10^40 tuples, more than 128 bits hold.
#[test]
fn counts_have_128_bits_and_say_when_that_is_too_few() {
    let rows: Vec<Row> =
        (0..100).map(|id| Row { int: Some(1), float: None, text: None, id }).collect();
    let chain = |inputs: usize| {
        let links = vec![vec![("int", LessOrEqual, "int")]; inputs - 1];
        let tables = vec![table(&rows, &[]); inputs];
        plan(&links, &[], Algorithm::Auto).unwrap().bind(&tables).unwrap()
    };
    let nineteen = chain(19);
    assert_eq!(nineteen.count(&Run::on(1)).unwrap(), 10_u128.pow(38));
    let run = Run { limit: Some(5), ..Run::on(2) };
    let first = joined(nineteen.as_ref(), &run, 19, &[]);
    let expected: Vec<Vec<u32>> = (0..5).map(|last| [vec![0; 18], vec![last]].concat()).collect();
    assert_eq!(ids(&first), expected);
    for failed in [chain(20).count(&Run::on(1)).err(), chain(20).explain(&Run::on(1)).err()] {
        assert!(matches!(&failed, Some(Error::Unsupported(text)) if text.contains("2^128")));
    }
}

#[test]
fn known_value_of_the_source() {
    let Some(inputs) = stocks::highs(["FB", "ADBE", "IBM"]) else { return };
    let schemas: Vec<_> = inputs.iter().map(|table| table.schema().clone()).collect();
    let links = [vec![("high", GreaterOrEqual, "high")], vec![("high", Less, "high")]];
    let plan = ChainPlan::new(&schemas, spec(&links, &[], Algorithm::Auto)).unwrap();
    let operator = plan.bind(&inputs).unwrap();
    assert_eq!(operator.count(&Run::on(2)).unwrap(), 72_355_085);
    let built: usize = operator.stream(&Run::on(2)).unwrap().map(|b| b.unwrap().num_rows()).sum();
    assert_eq!(built, 72_355_085);
}

#[test]
fn a_watcher_stops_a_long_chain() {
    let rows: Vec<Row> =
        (0..3000).map(|id| Row { int: Some(id as i32), float: None, text: None, id }).collect();
    let links = [vec![("int", Greater, "int")], vec![("int", NotEqual, "int")]];
    let tables = vec![table(&rows, &[]); 3];
    let operator = plan(&links, &[], Algorithm::Auto).unwrap().bind(&tables).unwrap();
    for threads in [1, 2] {
        let control = Arc::new(Control::watched_by(Box::new(|done, _| done == 0)));
        let run = Run { control, ..Run::on(threads) };
        let last = operator.stream(&run).unwrap().last();
        assert!(matches!(last, Some(Err(Error::Cancelled))));
    }
}

#[test]
fn bad_requests_say_what_is_wrong() {
    let less = vec![("int", Less, "int")];
    let one = std::slice::from_ref(&less);
    let invalid = |links: &[Vec<OracleTerm>], by: &[&str], words: &[&str]| {
        let error = plan(links, by, Algorithm::Auto).unwrap_err();
        let said = |text: &str| words.iter().all(|word| text.contains(word));
        assert!(matches!(&error, Error::Invalid(text) if said(text)), "{error}");
    };
    invalid(&[], &[], &["a chain of 1 inputs", "two or more"]);
    invalid(&[less.clone(), vec![]], &[], &["no comparison between t1 and t2"]);
    invalid(&[vec![("int", Less, "nope")]], &[], &["t1 has no column \"nope\"", "\"int\""]);
    invalid(one, &["nope"], &["t0 has no column \"nope\""]);
    let words = ["column \"int\" of t0", "column \"text\" of t1", "Int32", "Utf8"];
    invalid(&[vec![("int", Less, "text")]], &[], &words);
    invalid(&[vec![("tags", Less, "tags")]], &[], &["column \"tags\" of t0"]);
    let missing = ChainPlan::new(&[schema()], spec(one, &[], Algorithm::Auto));
    assert!(matches!(missing, Err(Error::Invalid(_))));

    let unsupported = |links: &[Vec<OracleTerm>], by: &[&str], algorithm, words: &[&str]| {
        let error = plan(links, by, algorithm).unwrap_err();
        let said = |text: &str| words.iter().all(|word| text.contains(word));
        assert!(matches!(&error, Error::Unsupported(text) if said(text)), "{error}");
    };
    let auto = Algorithm::Auto;
    let both = [vec![("int", Less, "int"), ("float", Greater, "float")]];
    unsupported(&both, &[], auto, &["several columns on both sides", "t0 and t1"]);
    let from_left = vec![("int", Less, "id"), ("float", Greater, "id")];
    let from_right = vec![("id", Less, "int"), ("id", Greater, "float")];
    let words = ["t0 and t1", "other way round between t1 and t2"];
    unsupported(&[from_left.clone(), from_right], &[], auto, &words);
    let holes = vec![("int", NotEqual, "id"), ("float", NotEqual, "id")];
    unsupported(&[less.clone(), holes], &[], auto, &["!=", "t1 and t2"]);
    for algorithm in Algorithm::ALL.into_iter().filter(|algorithm| *algorithm != auto) {
        let name = algorithm.name();
        unsupported(&[less.clone(), from_left.clone()], &[], algorithm, &[name, "t1 and t2"]);
        unsupported(one, &["int"], algorithm, &[name, "equality"]);
    }
}

/// A column of nulls compares with every type, also with different ones on its two sides.
#[test]
fn a_null_column_matches_nothing() {
    let table = |column: ArrayRef| {
        let batch = RecordBatch::try_from_iter_with_nullable([("x", column, true)]).unwrap();
        Arc::new(Table::new("test", batch.schema(), vec![batch]).unwrap())
    };
    let inputs = [
        table(Arc::new(Int32Array::from(vec![1, 2]))),
        table(Arc::new(NullArray::new(3))),
        table(Arc::new(StringArray::from(vec!["a"]))),
    ];
    let schemas: Vec<_> = inputs.iter().map(|table| table.schema().clone()).collect();
    let links = vec![vec![("x", NotEqual, "x")]; 2];
    let plan = ChainPlan::new(&schemas, spec(&links, &[], Algorithm::Auto)).unwrap();
    let operator = plan.bind(&inputs).unwrap();
    let run = Run::on(1);
    assert_eq!(operator.count(&run).unwrap(), 0);
    assert_eq!(run.metrics.count("unmatched_1"), 3);
}

/// A name that an earlier input has gets the number of its input; a clash that remains is said.
#[test]
fn names_that_clash_are_numbered() {
    let table = |names: &[&str]| {
        let column =
            |name: &&str| (name.to_string(), Arc::new(Int32Array::from(vec![1])) as ArrayRef);
        let batch = RecordBatch::try_from_iter(names.iter().map(column)).unwrap();
        Arc::new(Table::new("test", batch.schema(), vec![batch]).unwrap())
    };
    let names = |inputs: &[&[&str]], by: &[&str]| {
        let schemas: Vec<_> = inputs.iter().map(|names| table(names).schema().clone()).collect();
        let links = vec![vec![("x", Less, "x")]; inputs.len() - 1];
        let plan = ChainPlan::new(&schemas, spec(&links, by, Algorithm::Auto))?;
        let fields = plan.schema().fields().iter().map(|field| field.name().clone());
        Ok::<Vec<String>, Error>(fields.collect())
    };
    let found = names(&[&["x", "k"], &["k", "x", "a"], &["a", "x", "k", "b"]], &["k"]).unwrap();
    assert_eq!(found, ["x", "k", "x_1", "a", "a_2", "x_2", "b"]);
    let clash = names(&[&["x", "x_1"], &["x"]], &[]).unwrap_err();
    let said = |text: &str| text.contains("x_1") && text.contains("suffix");
    assert!(matches!(&clash, Error::Invalid(text) if said(text)), "{clash}");
}
