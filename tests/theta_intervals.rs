//! Joins of intervals against every pair by definition: overlap, containment, points between.
//!
//! Keys of every width the kernels know, groups, ties, nulls, all kinds; and inputs large enough to
//! be cut into stretches.
#![allow(missing_docs, reason = "tests")]

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{
    Array, ArrayRef, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray,
};
use dovetail::operator::{Plan, Run};
use dovetail::predicate::{Comparison, JoinKind, Term};
use dovetail::table::Table;
use dovetail::theta::{Algorithm, ThetaPlan, ThetaSpec};
use proptest::prelude::*;

/// Begin, end, group.
type Interval = (Option<i32>, Option<i32>, Option<i32>);

/// How numbers become columns of one order.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Int,
    Float,
    /// 128 bits wide.
    Decimal,
    /// Packed into 128 bits.
    Text,
}

impl Kind {
    fn column(self, values: impl Iterator<Item = Option<i32>>) -> ArrayRef {
        match self {
            Self::Int => Arc::new(values.map(|v| v.map(i64::from)).collect::<Int64Array>()),
            Self::Float => {
                Arc::new(values.map(|v| v.map(|v| f64::from(v) / 3.0)).collect::<Float64Array>())
            }
            Self::Decimal => {
                let wide = values.map(|v| v.map(|v| i128::from(v) * 10_i128.pow(25)));
                let wide = wide.collect::<Decimal128Array>().with_precision_and_scale(38, 0);
                Arc::new(wide.unwrap())
            }
            Self::Text => {
                let text = values.map(|v| v.map(|v| format!("{:010}", i64::from(v) + (1 << 32))));
                Arc::new(text.collect::<StringArray>())
            }
        }
    }

    fn table(self, rows: &[Interval], names: [&str; 3]) -> Arc<Table> {
        let columns: [(&str, ArrayRef); 4] = [
            (names[0], self.column(rows.iter().map(|row| row.0))),
            (names[1], self.column(rows.iter().map(|row| row.1))),
            ("group", Kind::Int.column(rows.iter().map(|row| row.2))),
            (names[2], Arc::new((0..rows.len() as i64).collect::<Int64Array>())),
        ];
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, column)| (name, column, true)),
        );
        let batch = batch.unwrap();
        Arc::new(Table::new("test", batch.schema(), vec![batch]).unwrap())
    }
}

/// The comparisons of a question: column of the left row, comparison, column of the right row.
type Question = Vec<(&'static str, Comparison, &'static str)>;

fn field(row: &Interval, name: &str) -> Option<i32> {
    if name.starts_with("lo") { row.0 } else { row.1 }
}

fn holds(l: &Interval, r: &Interval, question: &Question, grouped: bool) -> bool {
    let same = !grouped || (l.2.is_some() && l.2 == r.2);
    same && question.iter().all(|&(a, comparison, b)| {
        let (Some(a), Some(b)) = (field(l, a), field(r, b)) else { return false };
        match comparison {
            Comparison::Less => a.cmp(&b) == Ordering::Less,
            Comparison::LessOrEqual => a.cmp(&b) != Ordering::Greater,
            Comparison::Greater => a.cmp(&b) == Ordering::Greater,
            Comparison::GreaterOrEqual => a.cmp(&b) != Ordering::Less,
            Comparison::NotEqual => a != b,
        }
    })
}

/// Row numbers of what a join of `kind` gives, sorted.
fn expected(
    kind: JoinKind,
    left: &[Interval],
    right: &[Interval],
    matches: impl Fn(usize, usize) -> bool,
) -> Vec<[Option<i64>; 2]> {
    let mut has = [vec![false; left.len()], vec![false; right.len()]];
    let mut rows = Vec::new();
    for l in 0..left.len() {
        for r in 0..right.len() {
            if matches(l, r) {
                (has[0][l], has[1][r]) = (true, true);
                if !matches!(kind, JoinKind::Semi | JoinKind::Anti) {
                    rows.push([Some(l as i64), Some(r as i64)]);
                }
            }
        }
    }
    let alone = |side: usize, wanted: bool| {
        let places = has[side].iter().enumerate().filter(move |(_, has)| **has == wanted);
        places.map(|(at, _)| at as i64).collect::<Vec<_>>()
    };
    if matches!(kind, JoinKind::Left | JoinKind::Full | JoinKind::Anti) {
        rows.extend(alone(0, false).into_iter().map(|l| [Some(l), None]));
    }
    if kind == JoinKind::Semi {
        rows.extend(alone(0, true).into_iter().map(|l| [Some(l), None]));
    }
    if matches!(kind, JoinKind::Right | JoinKind::Full) {
        rows.extend(alone(1, false).into_iter().map(|r| [None, Some(r)]));
    }
    rows.sort_unstable();
    rows
}

fn check(
    column: Kind,
    [left, right]: [&[Interval]; 2],
    question: &Question,
    grouped: bool,
    kind: JoinKind,
    threads: usize,
) {
    let tables = [column.table(left, ["lo", "hi", "i"]), column.table(right, ["lo2", "hi2", "j"])];
    let terms = question.iter().map(|&(a, comparison, b)| Term::Compare {
        left: a.into(),
        comparison,
        right: b.into(),
    });
    let spec = ThetaSpec {
        terms: terms.collect(),
        by: if grouped { vec![("group".into(), "group".into())] } else { vec![] },
        kind,
        suffix: "_right".into(),
        algorithm: Algorithm::Auto,
    };
    let plan = ThetaPlan::new(tables[0].schema(), tables[1].schema(), spec).unwrap();
    let operator = plan.bind(&tables).unwrap();
    let run = Run::on(threads);
    let mut found = Vec::new();
    for batch in operator.stream(&run).unwrap() {
        let batch = batch.unwrap();
        let ids = ["i", "j"].map(|name| {
            let column = batch.column_by_name(name).cloned();
            (0..batch.num_rows())
                .map(|row| {
                    let column = column.as_ref()?.as_primitive::<Int64Type>();
                    column.is_valid(row).then(|| column.value(row))
                })
                .collect::<Vec<_>>()
        });
        found.extend(ids[0].iter().zip(&ids[1]).map(|(&l, &r)| [l, r]));
    }
    found.sort_unstable();
    let matches = |l: usize, r: usize| holds(&left[l], &right[r], question, grouped);
    let expected = expected(kind, left, right, matches);
    assert_eq!(found, expected);
    assert_eq!(operator.count(&Run::on(threads)).unwrap(), expected.len() as u128);
    for (side, name, rows) in [(0, "matched_left", left.len()), (1, "matched_right", right.len())] {
        let matched = (0..rows)
            .filter(|&row| match side {
                0 => (0..right.len()).any(|r| matches(row, r)),
                _ => (0..left.len()).any(|l| matches(l, row)),
            })
            .count();
        assert_eq!(run.metrics.count(name), matched as u64, "{name}");
    }
}

fn questions() -> impl Strategy<Value = Question> {
    use Comparison::{Greater, GreaterOrEqual, Less, LessOrEqual};
    let rises = prop::sample::select(vec![Less, LessOrEqual]);
    let falls = prop::sample::select(vec![Greater, GreaterOrEqual]);
    (rises, falls, 0..6_usize).prop_map(|(rises, falls, shape)| match shape {
        0 => vec![("lo", rises, "hi2"), ("hi", falls, "lo2")],
        1 => vec![("hi", falls, "lo2"), ("lo", rises, "hi2")],
        2 => vec![("lo", falls, "lo2"), ("hi", rises, "hi2")],
        3 => vec![("lo", rises, "lo2"), ("hi", falls, "hi2")],
        4 => vec![("lo", falls, "lo2"), ("lo", rises, "hi2")],
        _ => vec![("lo", rises, "lo2"), ("hi", rises, "hi2")],
    })
}

fn intervals(most: usize, proper: bool) -> impl Strategy<Value = Vec<Interval>> {
    let row = (0..12_i32, if proper { 1..6_i32 } else { -2..6_i32 }, 0..3_i32, 0..30_u32);
    prop::collection::vec(row, 0..most).prop_map(|rows| {
        let row = |(begin, length, group, null): (i32, i32, i32, u32)| {
            let valid = |number: u32, value: i32| (null != number).then_some(value);
            (valid(0, begin), valid(1, begin + length), valid(2, group))
        };
        rows.into_iter().map(row).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn oracle_agrees_on_intervals(
        (left, right) in prop::bool::weighted(0.8)
            .prop_flat_map(|proper| (intervals(30, proper), intervals(30, proper))),
        question in questions(),
        column in prop::sample::select(vec![Kind::Int, Kind::Float, Kind::Decimal, Kind::Text]),
        kind in prop::sample::select(JoinKind::ALL.to_vec()),
        grouped in any::<bool>(),
        threads in 1..=4_usize,
    ) {
        check(column, [&left, &right], &question, grouped, kind, threads);
    }
}

/// `rows` intervals over 100,000 points, most of them short, in an order that looks random.
fn many(rows: i32, seed: i32) -> Vec<Interval> {
    (0..rows)
        .map(|i| {
            let mixed = (i + seed).wrapping_mul(-1_640_531_535) as u32;
            let begin = (mixed >> 8) as i32 % 100_000;
            (Some(begin), Some(begin + 1 + (mixed % 64) as i32 * seed), Some(i % 7))
        })
        .collect()
}

#[test]
fn oracle_agrees_on_many_intervals() {
    use Comparison::{Greater, Less, LessOrEqual};
    // The smaller side is compared with every row of the larger one, so one of them is small.
    let (few, many) = (many(60, 3), many(40_000, 1));
    let questions: [Question; 4] = [
        vec![("lo", Less, "hi2"), ("hi", Greater, "lo2")],
        vec![("lo", Greater, "lo2"), ("hi", Less, "hi2")],
        vec![("lo", Less, "lo2"), ("hi", LessOrEqual, "lo2")],
        vec![("lo", LessOrEqual, "lo2"), ("hi", Greater, "lo2")],
    ];
    for question in &questions {
        for grouped in [false, true] {
            check(Kind::Float, [&few, &many], question, grouped, JoinKind::Full, 2);
            check(Kind::Float, [&many, &few], question, grouped, JoinKind::Full, 3);
        }
    }
}

#[test]
fn oracle_agrees_on_sorted_reversed_and_equal_keys() {
    use Comparison::{Greater, Less};
    let span = |begin: i32| (Some(begin), Some(begin + 3), Some(0));
    let rising: Vec<_> = (0..300).map(span).collect();
    let falling: Vec<_> = (0..300).rev().map(span).collect();
    let equal = vec![span(5); 300];
    for left in [&rising, &falling, &equal] {
        for right in [&rising, &falling, &equal] {
            for question in [
                vec![("lo", Less, "hi2"), ("hi", Greater, "lo2")],
                vec![("lo", Greater, "lo2"), ("hi", Less, "hi2")],
                vec![("lo", Greater, "lo2"), ("lo", Less, "hi2")],
            ] {
                check(Kind::Int, [left, right], &question, false, JoinKind::Inner, 2);
            }
        }
    }
}
