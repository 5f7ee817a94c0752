"""Bands, `abs(a - b) <= width`, against exact arithmetic, NumPy, pandas and DuckDB."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import oracle
import pandas as pd
import pyarrow as pa
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st

import dovetail as dt
from dovetail.predicates import Band, Col, Compare, Predicate, Width
from dovetail.units import Duration

KINDS = ["inner", "left", "right", "full", "semi", "anti"]
TIMES = ["local time", "instant", "time of day", "duration"]
NUMBERS = strategies.FAMILIES["number"]
FLOATS = [kind for kind in NUMBERS if pa.types.is_floating(kind)]
DECIMALS = [kind for kind in NUMBERS if pa.types.is_decimal(kind)]


def numbers(*widths: str) -> list[tuple[Width, Fraction]]:
    return [(Decimal(width), Fraction(width)) for width in widths]


def lengths(*nanoseconds: int) -> list[tuple[Width, Fraction]]:
    return [(Duration(count), Fraction(count, 10**9)) for count in nanoseconds]


#: Widths as dovetail reads them and as the oracle does.
NUMBER_WIDTHS = numbers("0", "1", "2", "0.5", "0.01", "1e-10", "3.000", "297", "1e20", "1e76")
TIME_WIDTHS = lengths(0, 1, 999, 10**9 - 1, 10**9, 2 * 10**9, 86_400 * 10**9, 2**63 - 1)


@st.composite
def bands(draw: st.DrawFn) -> tuple[Any, Any, Width, Fraction]:
    """The types of two columns that have a difference, and a width for it."""
    family = draw(st.sampled_from(["number"] * 4 + TIMES))
    ours, theirs = draw(strategies.key_types(family)), draw(strategies.key_types(family))
    kinds = [strategies.plain_type(kind) for kind in (ours, theirs)]
    if any(kind in FLOATS for kind in kinds) and any(kind in DECIMALS for kind in kinds):
        theirs = ours
    return (
        ours,
        theirs,
        *draw(st.sampled_from(NUMBER_WIDTHS if family == "number" else TIME_WIDTHS)),
    )


def together(predicates: list[Predicate]) -> Predicate:
    first, *rest = predicates
    for predicate in rest:
        first = first & predicate
    return first


@settings(max_examples=500)
@given(
    st.data(),
    st.lists(bands(), min_size=1, max_size=2),
    st.sampled_from(["<=", "<"]),
    st.lists(st.sampled_from(list(oracle.COMPARISONS)), max_size=2),
    st.booleans(),
    st.sampled_from(KINDS),
    st.integers(1, 8),
)
def test_oracle_any_types_and_terms(
    data: st.DataObject,
    drawn: Any,
    op: Any,
    comparisons: Any,
    grouped: bool,
    how: Any,
    workers: int,
) -> None:
    """Alone and with other terms, on the same column or on another one."""
    lefts, rights, terms, where = {}, {}, [], []
    for number, (ours, theirs, width, exact) in enumerate(drawn):
        a, b = f"a{number}", f"b{number}"
        lefts[a], rights[b] = ours, theirs
        terms.append((a, op, b, exact))
        where.append(Band(Col(a, "left"), Col(b, "right"), width, op))
    for number, comparison in enumerate(comparisons):
        a, b = ("a0", "b0") if number == 0 else ("c", "d")
        lefts.setdefault(a, pa.int32())
        rights.setdefault(b, pa.int64())
        terms.append((a, comparison, b))
        where.append(Compare(Col(a, "left"), comparison, Col(b, "right")))
    by = [("k", "k")] if grouped else []
    if grouped:
        lefts["k"] = rights["k"] = pa.string()
    left = data.draw(strategies.inputs(lefts, "l"))
    right = data.draw(strategies.inputs(rights, "r"))
    names: Any = [name for name, _ in by] or None
    predicate = together(where)

    def join(how: Any, algorithm: Any) -> Any:
        return dt.theta_join(
            left.reader(),
            right.reader(),
            predicate,
            by=names,
            how=how,
            algorithm=algorithm,
            workers=workers,
        )

    if not all(_can_be_floats(left.table(), right.table(), a, b) for a, _, b, *w in terms if w):
        with pytest.raises(dt.InvalidInputError, match="no Float64 equals"):
            join(how, "auto").count()
        return
    pairs = oracle.theta_pairs(left.table(), right.table(), terms, by)
    for kind, algorithm in ((how, "auto"), ("inner", "nested_loop")):
        rows = oracle.outcome(left.table(), right.table(), pairs, kind)
        expected = oracle.pair_rows(left.table(), right.table(), rows, by, kind)
        result = join(kind, algorithm)
        assert result.count() == len(expected)
        output = result.to_arrow()
        output.validate(full=True)
        assert oracle.rows(output) == oracle.Counter(expected)


def _can_be_floats(left: pa.Table, right: pa.Table, a: str, b: str) -> bool:
    """Whether a band of floats has floats, or integers that are some, on both sides."""
    columns = (left[a], right[b])
    if not any(map(oracle.is_floating, columns)):
        return True
    values = [value for column in columns for value in oracle.comparable(column)]
    return all(value is None or oracle.is_float(value) for value in values)


# --- Floats, bit for bit --------------------------------------------------------------------------

TINY, LEAST, HUGE = 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308
EDGES = [
    0.0, -0.0, TINY, -TINY, 2 * TINY, LEAST, LEAST - TINY, -LEAST, 1e-300, 0.1, 0.2, 0.3, 1.1, 1.2,
    1 - 2**-53, 1.0, 1 + 2**-52, -1.0, 2**-53, 2**-54, 3.5, 1e16, 1e16 + 2, -1e16, 2.0**53, 1e300,
    HUGE, -HUGE, HUGE / 2, float("inf"), float("-inf"), float("nan"),
]  # fmt: skip
floats = st.one_of(st.sampled_from(EDGES), st.floats())


def float_pairs(left: pa.Array, right: pa.Array, width: float, op: str) -> list[tuple[int, int]]:
    lefts = pa.table({"a": left, "l": range(len(left))})
    rights = pa.table({"b": right, "r": range(len(right))})
    band = abs(dt.col("a") - dt.col("b"))
    result = dt.theta_join(lefts, rights, band <= width if op == "<=" else band < width)
    output = result.to_arrow()
    assert result.count() == output.num_rows
    return sorted(zip(output["l"].to_pylist(), output["r"].to_pylist(), strict=True))


def numpy_pairs(left: Any, right: Any, width: float, op: str) -> list[tuple[int, int]]:
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(left.astype("f8")[:, None] - right.astype("f8")[None, :])
        found = apart <= width if op == "<=" else apart < width
    return [(int(i), int(j)) for i, j in zip(*np.nonzero(found), strict=True)]


@pytest.mark.parametrize("op", ["<=", "<"])
@pytest.mark.parametrize(
    "width", [w for w in EDGES if 0 <= w < float("inf") and str(w) != "-0.0"], ids=repr
)
def test_numpy_all_edges(width: float, op: str) -> None:
    values = np.array(EDGES)
    pairs = float_pairs(pa.array(values), pa.array(values), width, op)
    assert pairs == numpy_pairs(values, values, width, op)


@settings(max_examples=300)
@given(
    st.lists(floats, min_size=1, max_size=20),
    st.lists(floats, min_size=1, max_size=20),
    st.data(),
    st.sampled_from(["f2", "f4", "f8"]),
    st.sampled_from(["f2", "f4", "f8"]),
    st.sampled_from(["<=", "<"]),
)
def test_numpy_widths_at_the_ends(
    lefts: Any, rights: Any, data: st.DataObject, ours: str, theirs: str, op: str
) -> None:
    """Widths that a pair lies exactly within, or just beside."""
    with np.errstate(invalid="ignore", over="ignore"):
        a, b = np.array(lefts).astype(ours), np.array(rights).astype(theirs)
        apart = np.abs(a.astype("f8")[:, None] - b.astype("f8")[None, :]).ravel()
    width = data.draw(st.sampled_from([*apart[np.isfinite(apart)].tolist(), 0.0]))
    width = data.draw(
        st.sampled_from([width, float(np.nextafter(width, 0)), float(np.nextafter(width, 1e308))])
    )
    assert float_pairs(pa.array(a), pa.array(b), width, op) == numpy_pairs(a, b, width, op)


# --- pandas and DuckDB ----------------------------------------------------------------------------


@settings(max_examples=100)
@given(
    st.lists(st.integers(-5, 5), max_size=12),
    st.lists(st.integers(-5, 5), max_size=12),
    st.sampled_from(["0s", "1ns", "2ns", "1us", "3us", "2ms", "4s"]),
    st.sampled_from(["s", "ms", "us", "ns"]),
    st.sampled_from(["s", "ms", "us", "ns"]),
)
def test_pandas_timestamps(lefts: Any, rights: Any, width: str, ours: str, theirs: str) -> None:
    now = pd.Timestamp("2024-02-29 12:00")
    a = [now + pd.Timedelta(count, unit=ours) for count in lefts]
    b = [now + pd.Timedelta(count, unit=theirs) for count in rights]
    left = pd.DataFrame({"a": pd.Series(a, dtype=f"datetime64[{ours}]"), "l": range(len(a))})
    right = pd.DataFrame({"b": pd.Series(b, dtype=f"datetime64[{theirs}]"), "r": range(len(b))})
    output = dt.theta_join(left, right, abs(dt.col("a") - dt.col("b")) <= pd.Timedelta(width))
    found = output.to_arrow().to_pydict()
    assert sorted(zip(found["l"], found["r"], strict=True)) == [
        (i, j)
        for i, x in enumerate(a)
        for j, y in enumerate(b)
        if abs(x.as_unit("ns") - y.as_unit("ns")) <= pd.Timedelta(width)
    ]


SQL = [
    (pa.int16(), "abs(a::hugeint - b::hugeint)", ["0", "1", "3", "300"]),
    (pa.int64(), "abs(a::hugeint - b::hugeint)", ["0", "1", "9223372036854775807"]),
    (pa.uint64(), "abs(a::hugeint - b::hugeint)", ["2", "18446744073709551614"]),
    (pa.decimal128(18, 3), "abs(a::decimal(30, 3) - b::decimal(30, 3))", ["0", "0.001", "2.5"]),
    (pa.float64(), "abs(a - b)", ["0", "0.5", "1.5", "1e300"]),
    (pa.date32(), "abs(a - b)", ["1", "2", "4"]),
]


@settings(max_examples=150)
@given(st.data(), st.sampled_from(SQL), st.sampled_from(["<=", "<"]), st.booleans())
def test_agrees_with_duckdb(data: st.DataObject, case: Any, op: str, sifted: bool) -> None:
    kind, difference, widths = case
    left = data.draw(strategies.inputs({"a": kind, "k": pa.int8()}, "l")).table()
    right = data.draw(strategies.inputs({"b": kind, "k": pa.int8()}, "r")).table()
    width = data.draw(st.sampled_from(widths))
    ours = f"'{width}d'" if pa.types.is_date(kind) else width
    also = " and left.l >= right.r" if sifted else ""
    result = dt.theta_join(left, right, f"abs(a - b) {op} {ours}{also}", by="k")
    output = result.to_arrow()
    with duckdb.connect() as connection:
        connection.register("lefts", left)
        connection.register("rights", right)
        condition = f"{difference} {op} {width}" + (" AND l >= r" if sifted else "")
        theirs = connection.execute(
            f"SELECT l, r FROM lefts JOIN rights ON {condition} AND lefts.k = rights.k"
        ).fetchall()
    assert sorted(zip(output["l"].to_pylist(), output["r"].to_pylist(), strict=True)) == sorted(
        theirs
    )


# --- Named cases ----------------------------------------------------------------------------------


def test_matches_are_in_left_and_then_in_key_order() -> None:
    left = pa.table({"a": [9, 1, 5]})
    right = pa.table({"b": [12, 8, 6, 1, 9, 4], "r": range(6)})
    output = dt.theta_join(left, right, "abs(a - b) <= 3").to_arrow()
    assert output.to_pydict() == {
        "a": [9, 9, 9, 9, 1, 1, 5, 5, 5],
        "b": [6, 8, 9, 12, 1, 4, 4, 6, 8],
        "r": [2, 1, 4, 0, 3, 5, 5, 2, 1],
    }


def test_a_date_is_its_midnight() -> None:
    left = pa.table({"d": pa.array([0, 1], pa.int32()).view(pa.date32())})
    right = pa.table({"t": pa.array([86_399, 86_400, 129_600], pa.timestamp("s"))})
    output = dt.theta_join(left, right, "abs(d - t) <= '12h'").to_arrow()
    stamps = [int(t.timestamp()) for t in output["t"].cast(pa.timestamp("s", "UTC")).to_pylist()]
    assert stamps == [86_399, 86_400, 129_600]


def test_wide_decimals() -> None:
    with localcontext() as context:
        context.prec = 100
        large = 10**70 * Decimal("1.5")
        left = pa.table({"a": pa.array([large, -large], pa.decimal256(76, 2))})
        right = pa.table({"b": pa.array([large + 1, large + 2], pa.decimal256(76, 0))})
        assert dt.theta_join(left, right, "abs(a - b) <= 1").count() == 1
        assert dt.theta_join(left, right, "abs(a - b) <= 2").count() == 2
        assert dt.theta_join(left, right, "abs(a - b) < 3e70").count() == 2
        assert dt.theta_join(left, right, "abs(a - b) < 4e70").count() == 4
