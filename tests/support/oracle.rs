//! Joins by definition: look at every pair of rows and ask.

use std::cmp::Ordering;

use dovetail::predicate::{Comparison, JoinKind};

use super::rows::Row;

/// A term as the oracle reads it: column of the left row, comparison, column of the right row.
pub type OracleTerm = (&'static str, Comparison, &'static str);

/// A band as the oracle reads it: columns of the left and of the right row, width, strict.
pub type OracleBand = (&'static str, &'static str, &'static str, bool);

/// A row of the output: what came from the left and from the right input.
pub type Joined = (Option<Row>, Option<Row>);

/// Every pair that satisfies all terms and is equal in all `by` columns: left row, then right row.
pub fn pairs(left: &[Row], right: &[Row], terms: &[OracleTerm], by: &[&str]) -> Vec<(Row, Row)> {
    let mut found = Vec::new();
    for l in left {
        for r in right {
            let holds = |&(a, comparison, b): &OracleTerm| {
                compare(l, a, r, b).is_some_and(|ordering| satisfies(ordering, comparison))
            };
            let equal = |name: &&str| compare(l, name, r, name) == Some(Ordering::Equal);
            if terms.iter().all(holds) && by.iter().all(equal) {
                found.push((l.clone(), r.clone()));
            }
        }
    }
    found
}

/// Every tuple of a row per input that satisfies all terms between neighbours (`links[i]` between
/// inputs i and i + 1) and is equal in all `by` columns.
pub fn tuples(inputs: &[Vec<Row>], links: &[Vec<OracleTerm>], by: &[&str]) -> Vec<Vec<Row>> {
    let mut found: Vec<Vec<Row>> = inputs[0].iter().map(|row| vec![row.clone()]).collect();
    for (input, terms) in inputs[1..].iter().zip(links) {
        let longer = |tuple: Vec<Row>| {
            let last = tuple[tuple.len() - 1].clone();
            let partners = pairs(&[last], input, terms, by);
            let longer = partners.into_iter().map(move |(_, row)| [&tuple[..], &[row]].concat());
            longer.collect::<Vec<_>>()
        };
        found = found.into_iter().flat_map(longer).collect();
    }
    found
}

/// What a join of `kind` gives, from its matching pairs.
pub fn outcome(kind: JoinKind, left: &[Row], right: &[Row], pairs: &[(Row, Row)]) -> Vec<Joined> {
    let matched = |l: &&Row| pairs.iter().any(|(other, _)| other.id == l.id);
    let unmatched_left = || left.iter().filter(|l| !matched(l)).map(|l| (Some(l.clone()), None));
    let taken = |r: &&Row| pairs.iter().any(|(_, other)| other.id == r.id);
    let unmatched_right = || right.iter().filter(|r| !taken(r)).map(|r| (None, Some(r.clone())));
    let pairs = pairs.iter().cloned().map(|(l, r)| (Some(l), Some(r)));
    match kind {
        JoinKind::Inner => pairs.collect(),
        JoinKind::Left => pairs.chain(unmatched_left()).collect(),
        JoinKind::Right => pairs.chain(unmatched_right()).collect(),
        JoinKind::Full => pairs.chain(unmatched_left()).chain(unmatched_right()).collect(),
        JoinKind::Semi => left.iter().filter(matched).map(|l| (Some(l.clone()), None)).collect(),
        JoinKind::Anti => unmatched_left().collect(),
    }
}

/// Whether two rows lie within a band; all numbers here are floats, or are floats exactly.
pub fn within(&(a, b, width, strict): &OracleBand, left: &Row, right: &Row) -> bool {
    let (Some(a), Some(b)) = (number(left, a), number(right, b)) else { return false };
    let (difference, width) = ((a - b).abs(), width.parse::<f64>().unwrap());
    if strict { difference < width } else { difference <= width }
}

fn satisfies(ordering: Ordering, comparison: Comparison) -> bool {
    match comparison {
        Comparison::Less => ordering == Ordering::Less,
        Comparison::LessOrEqual => ordering != Ordering::Greater,
        Comparison::Greater => ordering == Ordering::Greater,
        Comparison::GreaterOrEqual => ordering != Ordering::Less,
        Comparison::NotEqual => ordering != Ordering::Equal,
    }
}

/// `None` where either is null.
pub fn compare(left: &Row, a: &str, right: &Row, b: &str) -> Option<Ordering> {
    match (a, b) {
        ("text", "text") => Some(left.text.as_ref()?.cmp(right.text.as_ref()?)),
        _ => Some(order_numbers(number(left, a)?, number(right, b)?)),
    }
}

fn number(row: &Row, column: &str) -> Option<f64> {
    match column {
        "int" => row.int.map(f64::from),
        "float" => row.float,
        "id" => Some(f64::from(row.id)),
        other => panic!("{other} is no number"),
    }
}

/// NaN equals NaN and is greater than every number; the zeros are equal.
fn order_numbers(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}
