"""theta_join against the nested loops of `oracle`, and against DuckDB."""

from __future__ import annotations

from typing import Any

import duckdb
import oracle
import pyarrow as pa
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Input

import dovetail as dt

OPS = list(oracle.COMPARISONS)
WORKERS = st.integers(1, 8)


def where(terms: list[oracle.Term]) -> str:
    return " and ".join(f"left.{a} {op} right.{b}" for a, op, b in terms)


KINDS = ["inner", "left", "right", "full", "semi", "anti"]


def check(
    left: Input,
    right: Input,
    terms: Any,
    by: Any = (),
    how: str = "inner",
    *,
    as_reader: bool = False,
    workers: int | None = None,
) -> None:
    """Both algorithms give the rows and the schema that the oracle works out, one its order too."""
    lefts, rights = left.table(), right.table()
    pairs = oracle.theta_pairs(lefts, rights, terms, by)
    names = [name for name, _ in by] or None

    def run(algorithm: Any, how: Any) -> tuple[pa.Table, list[Any]]:
        sides = (left.reader(), right.reader()) if as_reader else (lefts, rights)
        options: Any = {"by": names, "workers": workers, "algorithm": algorithm, "how": how}
        result = dt.theta_join(*sides, where(terms), **options)
        output = result.to_arrow()
        output.validate(full=True)
        schema = oracle.pair_schema(left.schema, right.schema, by, how=how)
        assert output.schema == result.schema
        assert output.schema.names == schema.names
        assert output.schema.types == schema.types
        assert result.count() == output.num_rows
        rows = oracle.outcome(lefts, rights, pairs, how)
        return output, oracle.pair_rows(lefts, rights, rows, by, how)

    output, expected = run("nested_loop", "inner")
    assert oracle.row_list(output) == expected
    same_types = all(left.schema.field(a).type == right.schema.field(b).type for a, b in by)
    if how in ("right", "full") and not same_types:
        with pytest.raises(dt.UnsupportedError, match="same type"):
            run("auto", how)
        return
    output, expected = run("auto", how)
    assert oracle.rows(output) == oracle.Counter(expected)


@st.composite
def joins(draw: st.DrawFn) -> tuple[Input, Input, list[oracle.Term], list[tuple[str, str]]]:
    """Two inputs with one to three terms and up to two equality columns, families mixed freely."""
    terms, by = [], []
    left_kinds: dict[str, pa.DataType] = {}
    right_kinds: dict[str, pa.DataType] = {}
    for number in range(draw(st.integers(1, 3))):
        family = draw(st.sampled_from(list(strategies.FAMILIES)))
        left_kinds[f"a{number}"] = draw(strategies.key_types(family))
        right_kinds[f"b{number}"] = draw(strategies.key_types(family))
        terms.append((f"a{number}", draw(st.sampled_from(OPS)), f"b{number}"))
    for number in range(draw(st.sampled_from([0, 0, 1, 2]))):
        family = draw(st.sampled_from(list(strategies.FAMILIES)))
        left_kinds[f"k{number}"] = draw(strategies.key_types(family))
        right_kinds[f"k{number}"] = draw(strategies.key_types(family))
        by.append((f"k{number}", f"k{number}"))
    left = draw(strategies.inputs(left_kinds, "l"))
    right = draw(strategies.inputs(right_kinds, "r"))
    return left, right, terms, by


@settings(max_examples=300)
@given(joins(), st.sampled_from(KINDS), WORKERS, st.booleans())
def test_oracle_any_types_terms_and_cuts(
    join: Any, how: str, workers: int, as_reader: bool
) -> None:
    left, right, terms, by = join
    check(left, right, terms, by, how, as_reader=as_reader, workers=workers)


@settings(max_examples=300)
@given(st.data(), st.sampled_from(OPS))
def test_oracle_numbers_of_every_pair_of_types(data: st.DataObject, op: str) -> None:
    """Integers, floats and decimals meet exactly: no cast may lose a digit."""
    kinds = strategies.FAMILIES["number"]
    left = data.draw(strategies.inputs({"a": data.draw(st.sampled_from(kinds))}, "l"))
    right = data.draw(strategies.inputs({"b": data.draw(st.sampled_from(kinds))}, "r"))
    check(left, right, [("a", op, "b")])


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("kind", strategies.KEY_TYPES, ids=str)
def test_oracle_every_type_and_comparison(kind: pa.DataType, op: str) -> None:
    """All values of a type, edges and null, against each other."""
    narrow, edges = strategies._values(kind)
    items = [*narrow, None, *edges]
    array = strategies.plain_array(items, kind)
    left = Input(pa.schema([("a", kind)]), pa.table({"a": array}).to_batches())
    right = Input(pa.schema([("b", kind)]), pa.table({"b": array}).to_batches())
    check(left, right, [("a", op, "b")])


# --- The same result in every form ----------------------------------------------------------------


@settings(max_examples=60)
@given(joins(), WORKERS, st.integers(0, 40))
def test_agrees_count_head_and_batches(join: Any, workers: int, n: int) -> None:
    left, right, terms, by = join
    result = dt.theta_join(
        left.reader(), right.reader(), where(terms), by=[a for a, _ in by], workers=workers
    )
    everything = result.to_arrow()
    assert result.count() == everything.num_rows
    head = result.head(n)
    assert head.schema == everything.schema
    assert oracle.row_list(head) == oracle.row_list(everything)[:n]
    batches = list(result)
    assert all(batch.num_rows for batch in batches)
    assert pa.Table.from_batches(batches, result.schema).equals(everything)
    assert oracle.row_list(result.to_arrow()) == oracle.row_list(everything)


@pytest.fixture(scope="module")
def many() -> tuple[pa.Table, pa.Table]:
    """Enough rows for many tasks and batches: 4.5 million pairs, about a tenth of them match."""
    left = pa.table(
        {"x": [i * 7919 % 1500 for i in range(1500)], "l": [f"row {i}" for i in range(1500)]}
    )
    right = pa.table({"y": [i * 104_729 % 3000 for i in range(3000)], "r": range(3000)})
    return left, right


@pytest.mark.parametrize("where", ["x > y", "x > y and l != q", "x > r and x < y"])
def test_the_default_has_one_order(many: tuple[pa.Table, pa.Table], where: str) -> None:
    left, right = many
    right = right.append_column("q", right["y"].cast(pa.string()))
    alone, *others = (
        dt.theta_join(left, right, where, workers=workers).to_arrow() for workers in (1, 2, 3, 8)
    )
    assert alone.num_rows > 100_000
    assert all(other.equals(alone) for other in others)


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_order_and_batches_do_not_depend_on_threads(
    many: tuple[pa.Table, pa.Table], workers: int
) -> None:
    left, right = many
    expected = [
        (i, j)
        for i, x in enumerate(left["x"].to_pylist())
        for j, y in enumerate(right["y"].to_pylist())
        if x > y + 500
    ]
    shifted = right.set_column(0, "y", pa.array([y + 500 for y in right["y"].to_pylist()]))
    result = dt.theta_join(left, shifted, "x > y", workers=workers, algorithm="nested_loop")
    assert result.count() == len(expected)
    batches = list(result)
    assert len(batches) > 1
    output = pa.Table.from_batches(batches)
    assert output["l"].to_pylist() == [f"row {i}" for i, _ in expected]
    assert output["r"].to_pylist() == [j for _, j in expected]
    assert [b.num_rows for b in batches] == [
        b.num_rows
        for b in dt.theta_join(left, shifted, "x > y", workers=1, algorithm="nested_loop")
    ]


@pytest.mark.parametrize("sizes", [[], [1], [0, 0, 7], [100] * 14, [1] * 50 + [0]])
def test_rows_do_not_depend_on_batches(many: tuple[pa.Table, pa.Table], sizes: list[int]) -> None:
    left, right = (table.slice(0, 400) for table in many)
    expected = dt.theta_join(left, right, "x > y").to_arrow()
    sizes = [size for size, total in zip(sizes, _running(sizes), strict=True) if total <= 400]
    pieces = strategies.cut(left, sizes), strategies.cut(right, sizes[::-1])
    result = dt.theta_join(*map(pa.Table.from_batches, pieces), "x > y")
    assert result.to_arrow().combine_chunks() == expected.combine_chunks()


def _running(sizes: list[int]) -> list[int]:
    return [sum(sizes[: place + 1]) for place in range(len(sizes))]


def test_readers_are_held_and_may_be_used_twice() -> None:
    table = pa.table({"a": [1, 5, None, 9]})
    left = pa.RecordBatchReader.from_batches(table.schema, iter(table.to_batches(2)))
    result = dt.theta_join(left, pa.table({"b": [4, 8]}), "a < b")
    first = result.to_arrow()
    assert first.to_pydict() == {"a": [1, 1, 5], "b": [4, 8, 8]}
    assert result.count() == 3
    assert result.to_arrow() == first
    assert left.read_all().num_rows == 0, "the stream itself was read once, by us"


# --- Predicates -----------------------------------------------------------------------------------

EVENTS = pa.table({"t": [0, 3, 5, 10, None], "e": range(5)})
SPANS = pa.table({"lo": [0, 4, 10, None], "hi": [3, 10, 4, 9], "s": range(4)})
PREDICATES = [
    ("t between lo and hi", [("t", ">=", "lo"), ("t", "<=", "hi")]),
    ("lo < right.hi and left.hi != right.lo", None),
    ("right.lo <= left.t", [("t", ">=", "lo")]),
    ("left.t > right.lo and right.hi > left.t", [("t", ">", "lo"), ("t", "<", "hi")]),
    (dt.col("t") < dt.col("hi"), [("t", "<", "hi")]),
    (
        (dt.col("t") >= dt.col("lo")) & (dt.col("t") <= dt.col("hi")),
        [("t", ">=", "lo"), ("t", "<=", "hi")],
    ),
]


@pytest.mark.parametrize(("predicate", "terms"), [p for p in PREDICATES if p[1]], ids=str)
def test_predicates_mean_what_they_say(predicate: Any, terms: list[oracle.Term]) -> None:
    pairs = oracle.theta_pairs(EVENTS, SPANS, terms)
    output = dt.theta_join(EVENTS, SPANS, predicate).to_arrow()
    assert oracle.rows(output) == oracle.Counter(oracle.pair_rows(EVENTS, SPANS, pairs))


def test_overlaps_is_both_ends_apart() -> None:
    left = pa.table({"lo": [0, 5, 9], "hi": [5, 9, 20]})
    right = pa.table({"lo": [4, 5, 20], "hi": [5, 6, 30]})
    terms = [("lo", "<", "hi"), ("hi", ">", "lo")]
    pairs = oracle.theta_pairs(left, right, terms)
    assert pairs == [(0, 0), (1, 1)]
    for text in ("overlaps(lo, hi)", "overlaps(left.lo, left.hi, right.lo, right.hi)"):
        output = dt.theta_join(left, right, text).to_arrow()
        assert oracle.rows(output) == oracle.Counter(oracle.pair_rows(left, right, pairs))


# --- Names ----------------------------------------------------------------------------------------


def test_by_columns_come_once_and_clashes_get_the_suffix() -> None:
    left = pa.table({"k": [1, 1], "v": [1, 2], "w": [0, 0]})
    right = pa.table({"k": [1, 2], "v": [5, 5], "u": [7, 8]})
    result = dt.theta_join(left, right, "v < v", by="k", suffix="_2")
    assert result.schema.names == ["k", "v", "w", "v_2", "u"]
    assert result.to_arrow().to_pydict() == {
        "k": [1, 1], "v": [1, 2], "w": [0, 0], "v_2": [5, 5], "u": [7, 7]
    }  # fmt: skip


def test_left_by_and_right_by_keep_the_left_name_and_type() -> None:
    left = pa.table({"k": pa.array([1, 2, 3], pa.int8()), "v": [1, 2, 3]})
    right = pa.table({"q": pa.array([2.0, 3.0, 2.5]), "v": [9, 9, 9]})
    result = dt.theta_join(left, right, "v < v", left_by="k", right_by="q")
    assert result.schema == pa.schema(
        [("k", pa.int8()), ("v", pa.int64()), ("v_right", pa.int64())]
    )
    assert result.to_arrow().to_pydict() == {"k": [2, 3], "v": [2, 3], "v_right": [9, 9]}


def test_by_is_kept_when_a_predicate_uses_it_too() -> None:
    table = pa.table({"k": [1, 2], "v": [1, 2]})
    assert dt.theta_join(table, table, "k <= k", by="k").to_arrow().to_pydict() == {
        "k": [1, 2], "v": [1, 2], "v_right": [1, 2]
    }  # fmt: skip


# --- A second oracle ------------------------------------------------------------------------------

SQL_TYPES = [
    pa.int8(), pa.int32(), pa.int64(), pa.uint64(), pa.float32(), pa.float64(),
    pa.decimal128(20, 3), pa.bool_(), pa.date32(), pa.timestamp("us"), pa.string(), pa.binary(),
]  # fmt: skip
"""Where DuckDB agrees: both sides of one type, because it compares mixed numbers through casts."""


@settings(max_examples=150)
@given(st.data(), st.sampled_from(SQL_TYPES), st.sampled_from(OPS))
def test_agrees_with_duckdb(data: st.DataObject, kind: pa.DataType, op: str) -> None:
    other = data.draw(st.sampled_from(SQL_TYPES))
    left = data.draw(strategies.inputs({"a": kind, "k": other}, "l")).table()
    right = data.draw(strategies.inputs({"b": kind, "k": other}, "r")).table()
    ours = dt.theta_join(left, right, f"a {op} b", by="k").to_arrow()
    with duckdb.connect() as connection:
        connection.register("lefts", left)
        connection.register("rights", right)
        theirs = connection.execute(
            f"SELECT l, r FROM lefts JOIN rights ON a {op} b AND lefts.k = rights.k"
        ).fetchall()
    assert sorted(zip(ours["l"].to_pylist(), ours["r"].to_pylist(), strict=True)) == sorted(theirs)
