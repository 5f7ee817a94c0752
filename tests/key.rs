//! Keys and groups against exact arithmetic: for every type, every pair of types that compare,
//! and every layout, keys must compare as the values do.

mod support;

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::Int8Type;
use arrow_array::*;
use arrow_buffer::i256;
use arrow_schema::{DataType, Field, IntervalUnit, TimeUnit};
use dovetail::Error;
use dovetail::key::{
    Column, Groups, KeyColumn, Keys, NO_GROUP, check_equality, check_ordered, equality_groups,
    ordered_keys,
};
use proptest::prelude::*;
use proptest::sample::select;
use support::columns::{Magnitude, Recipe, magnitude, recipe, recipe_of};
use support::exact::{self, Value};
use support::property::check;

/// Types that compare with each other, family by family.
fn families() -> Vec<Vec<DataType>> {
    use DataType::*;
    let units =
        [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond];
    let zones = ["UTC", "+02:00", "Europe/Berlin", "America/New_York"];
    let mut local: Vec<_> = units.map(|unit| Timestamp(unit, None)).to_vec();
    local.extend([Date32, Date64]);
    vec![
        vec![
            Int8,
            Int16,
            Int32,
            Int64,
            UInt8,
            UInt16,
            UInt32,
            UInt64,
            Float16,
            Float32,
            Float64,
            Decimal32(9, 2),
            Decimal32(9, -1),
            Decimal64(18, 0),
            Decimal64(18, 18),
            Decimal128(38, 0),
            Decimal128(38, 10),
            Decimal128(38, 38),
            Decimal128(38, -128),
            Decimal256(76, 0),
            Decimal256(76, 22),
            Decimal256(76, 76),
            Decimal256(76, -20),
        ],
        vec![Boolean],
        local,
        units.iter().zip(zones).map(|(&u, zone)| Timestamp(u, Some(zone.into()))).collect(),
        vec![
            Time32(TimeUnit::Second),
            Time32(TimeUnit::Millisecond),
            Time64(TimeUnit::Microsecond),
            Time64(TimeUnit::Nanosecond),
        ],
        units.map(Duration).to_vec(),
        vec![Interval(IntervalUnit::YearMonth)],
        vec![Utf8, LargeUtf8, Utf8View],
        vec![
            Binary,
            LargeBinary,
            BinaryView,
            FixedSizeBinary(0),
            FixedSizeBinary(3),
            FixedSizeBinary(16),
        ],
    ]
}

fn column(label: &str, chunks: Vec<ArrayRef>) -> Column {
    Column::new(label, chunks[0].data_type().clone(), chunks)
}

fn compare(a: &KeyColumn, i: usize, b: &KeyColumn, j: usize) -> Ordering {
    match (&a.keys, &b.keys) {
        (Keys::U64(a), Keys::U64(b)) => a[i].cmp(&b[j]),
        (Keys::U128(a), Keys::U128(b)) => a[i].cmp(&b[j]),
        _ => panic!("keys of different widths"),
    }
}

/// Panics unless the keys of these columns compare as their values do, and lie in that order.
fn assert_ordered(columns: &[Column]) -> Vec<KeyColumn> {
    let keys = ordered_keys(columns).unwrap();
    let values: Vec<_> = columns.iter().map(|column| exact::values(&column.chunks)).collect();
    assert_eq!(keys.len(), columns.len());
    for (keys, values) in keys.iter().zip(&values) {
        assert_eq!(keys.len(), values.len());
        for (row, value) in values.iter().enumerate() {
            assert_eq!(keys.is_null(row), *value == Value::Null, "row {row} of {columns:?}");
        }
        if let Some(nulls) = &keys.nulls {
            assert!(nulls.null_count() > 0, "a null buffer without nulls");
        }
    }
    let places = |keys: &KeyColumn| keys.positions(&(0..keys.len() as u32).collect::<Vec<_>>());
    for (a, a_values) in keys.iter().zip(&values) {
        for (b, b_values) in keys.iter().zip(&values) {
            let (a_places, b_places) = (places(a), places(b));
            for (i, left) in a_values.iter().enumerate().filter(|(_, v)| **v != Value::Null) {
                for (j, right) in b_values.iter().enumerate().filter(|(_, v)| **v != Value::Null) {
                    let expected = left.cmp(right);
                    let found = compare(a, i, b, j);
                    assert_eq!(found, expected, "{left:?} and {right:?} in {columns:?}");
                    // Rounding may put different keys in one place, but not in the wrong order.
                    let in_order = match expected {
                        Ordering::Less => a_places[i] <= b_places[j],
                        Ordering::Equal => a_places[i] == b_places[j],
                        Ordering::Greater => a_places[i] >= b_places[j],
                    };
                    assert!(in_order, "places of {left:?} and {right:?} in {columns:?}");
                }
            }
        }
    }
    keys
}

/// Panics unless the groups are those of first appearance of the rows' values.
fn assert_groups(sides: &[Vec<Column>]) -> Groups {
    let mut numbers = HashMap::new();
    let expected: Vec<Vec<u32>> = sides
        .iter()
        .map(|side| {
            let columns: Vec<_> = side.iter().map(|column| exact::values(&column.chunks)).collect();
            (0..columns[0].len())
                .map(|row| {
                    let key: Vec<_> = columns.iter().map(|column| column[row].clone()).collect();
                    if key.contains(&Value::Null) {
                        return NO_GROUP;
                    }
                    let next = numbers.len() as u32;
                    *numbers.entry(key).or_insert(next)
                })
                .collect()
        })
        .collect();
    let groups = equality_groups(sides).unwrap();
    assert_eq!(groups, Groups { ids: expected, count: numbers.len() as u32 }, "{sides:?}");
    groups
}

// ---- properties -------------------------------------------------------------------------------

#[test]
fn oracle_order_of_every_type_pair() {
    for family in families() {
        for (at, left) in family.iter().enumerate() {
            for right in &family[at..] {
                check(96, (recipe(), recipe(), magnitude()), |(a, b, magnitude)| {
                    assert_ordered(&[
                        column("left", a.chunks(left, magnitude)),
                        column("right", b.chunks(right, magnitude)),
                    ]);
                });
            }
        }
    }
}

/// Columns of one family, one to four, and a family of nulls that compares with all.
fn columns_of_a_family() -> impl Strategy<Value = Vec<Column>> {
    select(families()).prop_flat_map(|mut family| {
        family.push(DataType::Null);
        let columns = proptest::collection::vec((select(family), recipe()), 1..5);
        (columns, magnitude()).prop_map(|(columns, magnitude)| {
            let built = columns.iter().enumerate().map(|(at, (data_type, recipe))| {
                column(&format!("column {at}"), recipe.chunks(data_type, magnitude))
            });
            built.collect()
        })
    })
}

#[test]
fn oracle_order_of_several_columns() {
    check(4_000, columns_of_a_family(), |columns| {
        assert_ordered(&columns);
    });
}

#[test]
fn oracle_groups_of_every_type_pair() {
    for family in families() {
        for (at, left) in family.iter().enumerate() {
            for right in &family[at..] {
                check(32, (recipe(), recipe(), magnitude()), |(a, b, magnitude)| {
                    assert_groups(&[
                        vec![column("left", a.chunks(left, magnitude))],
                        vec![column("right", b.chunks(right, magnitude))],
                    ]);
                });
            }
        }
    }
}

#[test]
fn oracle_groups_of_several_columns() {
    // Layouts change the number of rows, so columns of a side are cut to the shortest.
    let sides = proptest::collection::vec(select(families()), 1..4).prop_flat_map(|families| {
        let side: Vec<_> =
            families.into_iter().map(|family| (select(family), recipe_of(10..24))).collect();
        proptest::collection::vec(side, 1..4)
    });
    check(1_000, sides, |sides: Vec<Vec<(DataType, Recipe)>>| {
        let sides = sides.iter().map(|side| {
            let mut columns: Vec<_> = side
                .iter()
                .map(|(data_type, recipe)| {
                    column("key", recipe.chunks(data_type, Magnitude::Small))
                })
                .collect();
            let rows = columns.iter().map(Column::len).min().unwrap();
            columns.iter_mut().for_each(|column| truncate(column, rows));
            columns
        });
        assert_groups(&sides.collect::<Vec<_>>());
    });
}

fn truncate(column: &mut Column, mut rows: usize) {
    for chunk in &mut column.chunks {
        *chunk = chunk.slice(0, chunk.len().min(rows));
        rows -= chunk.len();
    }
}

// ---- named cases ------------------------------------------------------------------------------

fn ints(values: &[i64]) -> Column {
    column("ints", vec![Arc::new(Int64Array::from(values.to_vec()))])
}

fn unsigned(values: &[u64]) -> Column {
    column("unsigned", vec![Arc::new(UInt64Array::from(values.to_vec()))])
}

fn floats(values: &[f64]) -> Column {
    column("floats", vec![Arc::new(Float64Array::from(values.to_vec()))])
}

fn strings(values: &[&str]) -> Column {
    column("strings", vec![Arc::new(StringArray::from(values.to_vec()))])
}

fn decimals(values: &[i128], scale: i8) -> Column {
    let array = Decimal128Array::from(values.to_vec()).with_precision_and_scale(38, scale).unwrap();
    column("decimals", vec![Arc::new(array)])
}

fn wide_decimals(values: &[i256], scale: i8) -> Column {
    let array = Decimal256Array::from(values.to_vec()).with_precision_and_scale(76, scale).unwrap();
    column("wide decimals", vec![Arc::new(array)])
}

fn seconds(values: &[i64]) -> Column {
    column("seconds", vec![Arc::new(TimestampSecondArray::from(values.to_vec()))])
}

fn nanoseconds(values: &[i64]) -> Column {
    column("nanoseconds", vec![Arc::new(TimestampNanosecondArray::from(values.to_vec()))])
}

const TWO_53: i64 = 1 << 53;
const TWO_63: f64 = 9_223_372_036_854_775_808.0;
const TWO_64: f64 = 18_446_744_073_709_551_616.0;

/// Columns at the edges of the encodings, and whether their keys need 128 bits.
fn edge_cases() -> Vec<(&'static str, bool, Vec<Column>)> {
    let ten_to_38 = 10i128.pow(38);
    let ten_to_76 = i256::from_i128(10).wrapping_pow(76);
    let one_tenth = "1000000000000000055511151231257827021181583404541015625";
    let one_tenth = i256::from_string(&format!("{one_tenth}{}", "0".repeat(76 - 55))).unwrap();
    let close_floats = [
        TWO_63,
        TWO_63.next_down(),
        TWO_64,
        TWO_64.next_down(),
        -TWO_63,
        (-TWO_63).next_down(),
        TWO_53 as f64,
        (TWO_53 as f64).next_up(),
        0.5,
        -0.5,
        -0.0,
        0.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        f64::MIN,
        f64::from_bits(1),
        -f64::from_bits(1),
    ];
    vec![
        ("extremes of int64", false, vec![ints(&[i64::MIN, -1, 0, 1, i64::MAX])]),
        (
            "unsigned against signed, in the range of int64",
            false,
            vec![unsigned(&[0, 1, i64::MAX as u64]), ints(&[i64::MIN, 0, i64::MAX])],
        ),
        (
            "unsigned against signed, in the range of uint64",
            false,
            vec![unsigned(&[0, u64::MAX]), ints(&[0, i64::MAX])],
        ),
        (
            "unsigned against signed, beyond both",
            true,
            vec![unsigned(&[0, u64::MAX, 1 << 63]), ints(&[i64::MIN, -1, 0, i64::MAX])],
        ),
        (
            "zeros and NaNs are equal",
            false,
            vec![floats(&[
                -0.0,
                0.0,
                f64::NAN,
                -f64::NAN,
                f64::from_bits(0x7ff0_0000_0000_0001),
                f64::from_bits(0xfff8_dead_beef_0000),
                f64::INFINITY,
                f64::NEG_INFINITY,
                f64::MIN_POSITIVE,
                f64::from_bits(1),
                -f64::from_bits(1),
            ])],
        ),
        (
            "integers that are floats",
            false,
            vec![ints(&[-TWO_53, -1, 0, TWO_53]), floats(&close_floats)],
        ),
        (
            "integers that are not",
            true,
            vec![ints(&[-TWO_53 - 1, TWO_53 + 1, 0, 1]), floats(&close_floats)],
        ),
        (
            "the greatest integers against what they round to",
            true,
            vec![ints(&[i64::MAX, i64::MAX - 1]), floats(&close_floats)],
        ),
        (
            "the greatest unsigned integers against what they round to",
            true,
            vec![unsigned(&[u64::MAX - 3, u64::MAX - 2, 1 << 63]), floats(&close_floats)],
        ),
        (
            "integers that span 65 bits against floats",
            false,
            vec![
                ints(&[i64::MIN, i64::MAX, 0]),
                unsigned(&[u64::MAX, u64::MAX - 1]),
                floats(&close_floats),
            ],
        ),
        (
            "decimals of different scale",
            false,
            vec![decimals(&[5, -5, 50, 51], 1), decimals(&[500, 501, -500, -501], 3)],
        ),
        (
            "decimals beyond 64 bits",
            true,
            vec![decimals(&[ten_to_38 - 1, 1 - ten_to_38, 0], 2), decimals(&[1, -1], 2)],
        ),
        (
            "decimals beyond 128 bits",
            false,
            vec![
                wide_decimals(
                    &[ten_to_76.wrapping_sub(i256::ONE), ten_to_76.wrapping_neg(), i256::ZERO],
                    0,
                ),
                wide_decimals(&[i256::MAX, i256::MIN, i256::ONE, i256::MINUS_ONE], 76),
                decimals(&[ten_to_38 - 1, 0, i128::MIN, i128::MAX], -128),
            ],
        ),
        (
            "decimals against floats that nearly are",
            true,
            vec![
                decimals(&[10, 20, 30, -10, 0, 1, 25, 50], 2),
                floats(&[0.1, 0.2, 0.1 + 0.2, 0.3, -0.1, 0.25, 0.5, 0.0, -0.0, 0.01]),
                floats(&close_floats),
            ],
        ),
        (
            "long decimals against floats",
            false,
            vec![
                decimals(&[ten_to_38 - 1, 1, -1, 0, i128::MIN + 1, i128::MAX], 20),
                floats(&[1e18, 1e18f64.next_up(), 1e-20, 1e-20f64.next_up(), 0.0]),
                floats(&close_floats),
            ],
        ),
        (
            "the least decimal against floats",
            false,
            vec![decimals(&[i128::MIN, 0], 0), floats(&[-(2f64.powi(127)), -(2f64.powi(128))])],
        ),
        (
            "decimals of scale 38 against floats",
            false,
            vec![decimals(&[ten_to_38 - 1, 1, 0, -1], 38), floats(&[1.0, 1e-38, 0.0, -1e-38])],
        ),
        (
            "a float of 55 digits against the decimal that is exactly it, and its neighbours",
            false,
            vec![
                wide_decimals(
                    &[-1, 0, 1].map(|last| one_tenth.wrapping_add(i256::from_i128(last))),
                    76,
                ),
                floats(&[0.1]),
            ],
        ),
        ("near timestamps", false, vec![seconds(&[1, 2]), nanoseconds(&[1_000_000_000, -1])]),
        (
            "huge timestamps",
            true,
            vec![seconds(&[i64::MAX, i64::MIN, 0]), nanoseconds(&[i64::MAX, i64::MIN, 0])],
        ),
        ("short strings", false, vec![strings(&["", "\0", "a", "a\0", "a\0\0", "b", "aaaaaaa"])]),
        ("strings of 8 bytes", true, vec![strings(&["", "aaaaaaaa", "aaaaaaab", "aaaaaaa\0"])]),
        ("strings of 15 bytes", true, vec![strings(&["123456789012345", "12345678901234\0", ""])]),
        ("strings of 16 bytes", false, vec![strings(&["1234567890123456", "123456789012345", ""])]),
        (
            "strings with a common prefix",
            false,
            vec![
                strings(&["https://example.org/a", "https://example.org/b"]),
                strings(&["https://example.org/", "https://example.org/a\0"]),
            ],
        ),
        (
            "long strings with a common prefix",
            false,
            vec![strings(&[
                "https://example.org/one/two/three/four",
                "https://example.org/one/two/three/fou",
                "https://example.org/one/two/three/four",
                "https://example.org/",
                "https://example.org/\0\0\0\0\0\0\0\0\0",
                "https://example.org/\0\0\0\0\0\0\0\0",
            ])],
        ),
    ]
}

#[test]
fn edge_cases_are_exact_and_as_narrow_as_expected() {
    for (name, wide, columns) in edge_cases() {
        println!("{name}");
        let keys = assert_ordered(&columns);
        for column in keys {
            assert_eq!(matches!(column.keys, Keys::U128(_)), wide, "width of {name}");
        }
        assert_groups(&columns.into_iter().map(|column| vec![column]).collect::<Vec<_>>());
    }
}

#[test]
fn nulls_do_not_widen_keys() {
    let values = vec![1, i64::MAX, 3].into();
    let array = TimestampSecondArray::new(values, Some(vec![true, false, true].into()));
    let keys = assert_ordered(&[column("seconds", vec![Arc::new(array)]), nanoseconds(&[5])]);
    assert!(matches!(keys[0].keys, Keys::U64(_)));
}

#[test]
fn columns_without_rows() {
    let chunkless = Column::new("empty", DataType::Utf8, vec![]);
    let keys = ordered_keys(&[chunkless.clone(), strings(&[])]).unwrap();
    assert!(keys.iter().all(|column| column.is_empty() && column.nulls.is_none()));
    assert!(ordered_keys(&[]).unwrap().is_empty());
    let groups = equality_groups(&[vec![chunkless], vec![strings(&["a"])]]).unwrap();
    assert_eq!(groups, Groups { ids: vec![vec![], vec![0]], count: 1 });
    assert_eq!(equality_groups(&[]).unwrap(), Groups { ids: vec![], count: 0 });
}

#[test]
fn columns_of_nulls_compare_with_all_types() {
    let nulls = column("nulls", vec![Arc::new(NullArray::new(3))]);
    for other in [ints(&[1]), floats(&[1.0]), strings(&["a"]), seconds(&[1]), nulls.clone()] {
        let keys = assert_ordered(&[nulls.clone(), other.clone()]);
        assert_eq!(keys[0].nulls.as_ref().unwrap().null_count(), 3);
        assert_groups(&[vec![nulls.clone()], vec![other]]);
    }
}

#[test]
fn values_of_a_dictionary_without_rows_are_no_groups() {
    let values: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), None, Some("a")]));
    let keys = Int8Array::from(vec![Some(2), None, Some(1), Some(2)]);
    let dictionary: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(keys, values));
    let groups = assert_groups(&[vec![column("d", vec![dictionary])], vec![strings(&["a"])]]);
    assert_eq!(groups.ids, [vec![0, NO_GROUP, NO_GROUP, 0], vec![0]]);
    assert_eq!(groups.count, 1);
}

#[test]
fn a_dictionary_without_values_is_all_null() {
    let values: ArrayRef = Arc::new(StringArray::from(Vec::<&str>::new()));
    let keys = Int8Array::from(vec![None, None]);
    let dictionary: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(keys, values));
    let dictionary = column("d", vec![dictionary]);
    let long = strings(&["a string of more than 16 bytes", "another one of those"]);
    assert_eq!(ordered_keys(&[dictionary.clone(), long]).unwrap()[0].len(), 2);
    let keys = ordered_keys(std::slice::from_ref(&dictionary)).unwrap();
    assert!(keys[0].is_null(0) && keys[0].is_null(1));
    assert_eq!(equality_groups(&[vec![dictionary]]).unwrap().ids, [[NO_GROUP, NO_GROUP]]);
}

// ---- errors -----------------------------------------------------------------------------------

#[test]
fn types_compare_within_their_family_only() {
    let families = families();
    for (i, left_family) in families.iter().enumerate() {
        for (j, right_family) in families.iter().enumerate() {
            for left in left_family {
                for right in right_family {
                    let wrapped =
                        DataType::Dictionary(Box::new(DataType::Int8), Box::new(right.clone()));
                    for right in [right, &wrapped] {
                        let columns = [("left", left), ("right", right)];
                        let verdict = check_ordered(&columns);
                        assert_eq!(verdict.is_ok(), i == j, "{left} with {right}");
                        let empty = columns.map(|(label, t)| Column::new(label, t.clone(), vec![]));
                        assert_eq!(ordered_keys(&empty).is_ok(), i == j, "{left} with {right}");
                    }
                }
            }
        }
    }
}

fn invalid(result: Result<impl std::fmt::Debug, Error>) -> String {
    match result.unwrap_err() {
        Error::Invalid(message) => message,
        other => panic!("expected an invalid input, found {other:?}"),
    }
}

#[test]
fn a_mismatch_names_both_columns_and_types() {
    let columns = [
        (r#"left column "a""#, &DataType::Utf8),
        ("nulls", &DataType::Null),
        (r#"right column "b""#, &DataType::Int64),
    ];
    let expected = r#"cannot compare left column "a" (Utf8) with right column "b" (Int64)"#;
    assert_eq!(invalid(check_ordered(&columns)), expected);

    let columns = columns.map(|(label, t)| Column::new(label, t.clone(), vec![]));
    assert_eq!(invalid(ordered_keys(&columns)), expected);
    let sides: Vec<_> = columns.into_iter().map(|column| vec![ints(&[]), column]).collect();
    assert_eq!(invalid(equality_groups(&sides)), expected);
}

#[test]
fn a_missing_time_zone_is_said() {
    let zoned = DataType::Timestamp(TimeUnit::Second, Some("UTC".into()));
    for local in [DataType::Timestamp(TimeUnit::Nanosecond, None), DataType::Date32] {
        let message = invalid(check_ordered(&[("a", &local), ("b", &zoned)]));
        assert_eq!(
            message,
            format!(
                "cannot compare a ({local}) with b ({zoned}): only one of them has a time zone"
            )
        );
    }
}

#[test]
fn types_without_an_order_are_named() {
    let item = Arc::new(Field::new("item", DataType::Int32, true));
    let entries = Field::new("entries", DataType::Struct(vec![item.clone()].into()), false);
    for data_type in [
        DataType::List(item.clone()),
        DataType::LargeList(item.clone()),
        DataType::FixedSizeList(item.clone(), 2),
        DataType::Struct(vec![item].into()),
        DataType::Map(Arc::new(entries), false),
        DataType::Interval(IntervalUnit::DayTime),
        DataType::Interval(IntervalUnit::MonthDayNano),
    ] {
        let message = invalid(check_ordered(&[(r#"left column "a""#, &data_type)]));
        let start = format!(
            r#"left column "a" has type {data_type}, which has no order; expected a number"#
        );
        assert!(message.starts_with(&start), "{message}");
    }
}

#[test]
fn sides_must_have_as_many_columns() {
    let number = ("n", &DataType::Int64);
    assert_eq!(
        invalid(check_equality(&[vec![number], vec![number, number]])),
        "1 key columns on one side and 2 on another; expected as many on each"
    );
    assert_eq!(
        invalid(check_equality(&[vec![], vec![]])),
        "no key column; expected at least one on each side"
    );
    assert_eq!(
        invalid(equality_groups(&[vec![ints(&[1, 2]), strings(&["a"])]])),
        "ints has 2 rows and strings has 1; expected columns of the same length"
    );
    check_equality(&[vec![number, number], vec![number, ("f", &DataType::Float32)]]).unwrap();
    check_equality(&[]).unwrap();
}

#[test]
fn chunks_must_have_the_type_of_their_column() {
    let chunk: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let column = Column::new("a", DataType::Int64, vec![chunk]);
    assert_eq!(invalid(ordered_keys(&[column])), "a has a chunk of type Int32; expected Int64");
}
