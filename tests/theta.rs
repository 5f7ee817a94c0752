//! Theta joins against the oracle: every algorithm, every cut, every number of threads.
#![allow(missing_docs, reason = "tests")]

mod support;

use std::sync::Arc;

use dovetail::Error;
use dovetail::operator::{Operator, Plan, Run};
use dovetail::output::Caps;
use dovetail::predicate::{Comparison, JoinKind, Term};
use dovetail::theta::{Algorithm, ThetaPlan, ThetaSpec};
use proptest::prelude::*;
use support::oracle::{self, Joined, OracleBand, OracleTerm};
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

/// Runs a join and reads its rows back; the right side's equality columns are read off the left.
fn joined(operator: &dyn Operator, run: &Run, by: &[&str]) -> Vec<Joined> {
    let mut found = Vec::new();
    for batch in operator.stream(run).unwrap() {
        let batch = batch.unwrap();
        assert!(batch.num_rows() > 0 && batch.num_rows() <= run.caps.rows.max(1));
        assert_eq!(&batch.schema(), operator.schema());
        if batch.num_columns() == 5 {
            found.extend(read(&batch, 0).into_iter().map(|row| (row, None)));
            continue;
        }
        let mut columns: Vec<usize> = (0..5).collect();
        for name in ["int", "float", "text", "id", "tags"] {
            let schema = batch.schema();
            let (own, shared) = (format!("{name}_right"), by.contains(&name));
            columns.push(schema.index_of(if shared { name } else { &own }).unwrap());
        }
        let wide = batch.project(&columns).unwrap();
        found.extend(read(&wide, 0).into_iter().zip(read(&wide, 5)));
    }
    found
}

/// By row numbers, so that joins of different order can be compared.
fn sorted(mut rows: Vec<Joined>) -> Vec<Joined> {
    let id = |row: &Option<Row>| row.as_ref().map_or(u32::MAX, |row| row.id);
    rows.sort_by_key(|(left, right)| (id(left), id(right)));
    rows
}

fn ids(rows: &[Joined]) -> Vec<(Option<u32>, Option<u32>)> {
    let id = |row: &Option<Row>| row.as_ref().map(|row| row.id);
    rows.iter().map(|(left, right)| (id(left), id(right))).collect()
}

fn term() -> impl Strategy<Value = OracleTerm> {
    let columns = prop::sample::select(vec![
        ("int", "int"),
        ("int", "float"),
        ("float", "int"),
        ("float", "float"),
        ("text", "text"),
        ("id", "int"),
    ]);
    (columns, prop::sample::select(Comparison::ALL.to_vec()))
        .prop_map(|((left, right), comparison)| (left, comparison, right))
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..1000_usize, 0..4)
}

fn band() -> impl Strategy<Value = OracleBand> {
    let columns = prop::sample::select(vec![
        ("int", "int"),
        ("int", "float"),
        ("float", "int"),
        ("float", "float"),
        ("id", "int"),
    ]);
    let width = prop::sample::select(vec!["0", "0.5", "1", "2", "100", "1e300"]);
    (columns, width, any::<bool>()).prop_map(|((l, r), width, strict)| (l, r, width, strict))
}

fn band_term(&(left, right, width, strict): &OracleBand) -> Term {
    let width = width.parse().unwrap();
    Term::Band { left: left.into(), right: right.into(), width, strict }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn oracle_agrees_with_every_algorithm(
        left in rows(40),
        right in rows(40),
        terms in prop::collection::vec(term(), 0..4),
        bands in prop::collection::vec(band(), 0..3),
        by in prop::sample::subsequence(vec!["int", "text"], 0..=2),
        kind in prop::sample::select(JoinKind::ALL.to_vec()),
        (left_cuts, right_cuts) in (cuts(), cuts()),
        threads in 1..=8_usize,
        caps in prop::sample::select(vec![(1, u64::MAX), (7, u64::MAX), (1000, 1), (1000, 200)]),
    ) {
        let mut pairs = oracle::pairs(&left, &right, &terms, &by);
        pairs.retain(|(l, r)| bands.iter().all(|band| oracle::within(band, l, r)));
        let expected = oracle::outcome(kind, &left, &right, &pairs);
        for algorithm in [Algorithm::Auto, Algorithm::NestedLoop] {
            let mut spec = spec(&terms, &by, kind, algorithm);
            spec.terms.extend(bands.iter().map(band_term));
            if algorithm == Algorithm::NestedLoop && kind != JoinKind::Inner {
                let refused = ThetaPlan::new(&schema(), &schema(), spec);
                prop_assert!(matches!(refused, Err(Error::Unsupported(_))));
                continue;
            }
            let plan = ThetaPlan::new(&schema(), &schema(), spec).unwrap();
            let inputs = [table(&left, &left_cuts), table(&right, &right_cuts)];
            let operator = plan.bind(&inputs).unwrap();
            let run = Run { caps: Caps { rows: caps.0, bytes: caps.1 }, ..Run::on(threads) };
            let found = joined(operator.as_ref(), &run, &by);
            if algorithm == Algorithm::NestedLoop {
                prop_assert_eq!(ids(&found), ids(&expected));
            }
            let (found, expected) = (sorted(found), sorted(expected.clone()));
            prop_assert_eq!(ids(&found), ids(&expected));
            if by.is_empty() {
                // Equal keys may differ in bits, and only one of them comes out.
                prop_assert_eq!(&found, &expected);
            }
            let count = operator.count(&Run::on(threads)).unwrap();
            prop_assert_eq!(count, expected.len() as u128);
            let metrics = &run.metrics;
            prop_assert_eq!(metrics.count("rows_out"), expected.len() as u64);
            for (rows, matched, unmatched, side) in [
                ("rows_left", "matched_left", "unmatched_left", left.len()),
                ("rows_right", "matched_right", "unmatched_right", right.len()),
            ] {
                prop_assert_eq!(metrics.count(rows), side as u64);
                let counted = metrics.count(matched) + metrics.count(unmatched);
                // Not counted where candidates are checked one by one.
                prop_assert!(counted == side as u64 || (terms.len() + bands.len() > 1 && counted == 0));
            }
            let again: Vec<_> = operator.stream(&Run::on(1)).unwrap().map(Result::unwrap).collect();
            let other: Vec<_> = operator.stream(&Run::on(5)).unwrap().map(Result::unwrap).collect();
            prop_assert_eq!(again, other, "the order does not depend on threads");
        }
    }

    #[test]
    fn a_limit_gives_a_prefix(
        left in rows(30),
        right in rows(30),
        threads in 1..=3_usize,
        limit in 0..100_u64,
    ) {
        let terms = [("int", Comparison::LessOrEqual, "int")];
        let plan =
            ThetaPlan::new(&schema(), &schema(), spec(&terms, &[], JoinKind::Full, Algorithm::Auto))
                .unwrap();
        let operator = plan.bind(&[table(&left, &[]), table(&right, &[])]).unwrap();
        let run = Run { limit: Some(limit), ..Run::on(threads) };
        let mut expected = joined(operator.as_ref(), &Run::on(1), &[]);
        expected.truncate(limit as usize);
        prop_assert_eq!(joined(operator.as_ref(), &run, &[]), expected);
    }
}

#[test]
fn a_limit_stops_early() {
    let rows: Vec<Row> =
        (0..20_000).map(|id| Row { int: Some(1), float: None, text: None, id }).collect();
    let terms = [("int", Comparison::LessOrEqual, "int")];
    let plan = ThetaPlan::new(
        &schema(),
        &schema(),
        spec(&terms, &[], JoinKind::Inner, Algorithm::NestedLoop),
    )
    .unwrap();
    let inputs = [table(&rows, &[]), table(&rows, &[])];
    let operator = plan.bind(&inputs).unwrap();
    let run = Run { limit: Some(3), ..Run::on(2) };
    assert_eq!(joined(operator.as_ref(), &run, &[]).len(), 3);
    // All 400 million pairs match; a few tasks of a million may have been under way.
    assert!(run.metrics.count("comparisons") < 10_000_000);
}

fn error(terms: &[OracleTerm], by: &[&str], kind: JoinKind, suffix: &str) -> Error {
    let spec = ThetaSpec { suffix: suffix.into(), ..spec(terms, by, kind, Algorithm::NestedLoop) };
    ThetaPlan::new(&schema(), &schema(), spec).unwrap_err()
}

#[test]
fn bad_requests_say_what_is_wrong() {
    let less = Comparison::Less;
    let missing = error(&[("nope", less, "int")], &[], JoinKind::Inner, "_right");
    assert!(
        matches!(&missing, Error::Invalid(text)
            if text.contains("left input has no column \"nope\"") && text.contains("\"int\"")),
        "{missing}"
    );
    let incomparable = error(&[("int", less, "text")], &[], JoinKind::Inner, "_right");
    assert!(
        matches!(&incomparable, Error::Invalid(text)
            if text.contains("left column \"int\"") && text.contains("right column \"text\"")),
        "{incomparable}"
    );
    let kind = error(&[("int", less, "int")], &[], JoinKind::Full, "_right");
    assert!(matches!(&kind, Error::Unsupported(text) if text.contains("full")), "{kind}");
    let clash = error(&[("int", less, "int")], &[], JoinKind::Inner, "");
    assert!(matches!(&clash, Error::Invalid(text) if text.contains("suffix")), "{clash}");
    let nested = error(&[("tags", less, "tags")], &[], JoinKind::Inner, "_right");
    assert!(matches!(&nested, Error::Invalid(text) if text.contains("tags")), "{nested}");
}

#[test]
fn a_watcher_stops_a_long_join() {
    let rows: Vec<Row> =
        (0..60_000).map(|id| Row { int: Some(id as i32), float: None, text: None, id }).collect();
    let terms = [("int", Comparison::Greater, "int"), ("int", Comparison::Less, "int")];
    let plan = ThetaPlan::new(
        &schema(),
        &schema(),
        spec(&terms, &[], JoinKind::Inner, Algorithm::NestedLoop),
    )
    .unwrap();
    let operator = plan.bind(&[table(&rows, &[]), table(&rows, &[])]).unwrap();
    for threads in [1, 2] {
        let control = dovetail::control::Control::watched_by(Box::new(|done, total| {
            assert_eq!(total, 3_600_000_000);
            done == 0
        }));
        let run = Run { control: Arc::new(control), ..Run::on(threads) };
        assert!(matches!(operator.count(&run), Err(Error::Cancelled)));
    }
}
