"""What is wrong with a call is said once, by the documented class, with names and types in it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pytest
import strategies

import dovetail as dt

LEFT = pa.table(
    {
        "n": [1, 2],
        "s": ["x", "y"],
        "t": pa.array([0, 1], pa.int64()).view(pa.timestamp("us")),
        "z": [datetime(2020, 1, 1, tzinfo=timezone.utc)] * 2,
        "list": [[1], [2]],
        "price (net)": [1, 2],
    }
)
RIGHT = pa.table({"m": [1.5, 2.5], "s": ["x", "y"], "b": [b"x", b"y"], "flag": [True, False]})


def refused(kind: type[Exception], parts: tuple[str, ...], *arguments: Any, **options: Any) -> None:
    """Describing the join raises exactly `kind`, in words that contain all `parts`."""
    left, right, where = (*arguments, *(LEFT, RIGHT, "n < m")[len(arguments) :])
    with pytest.raises(dt.DovetailError) as caught:
        dt.theta_join(left, right, where, **options)
    assert type(caught.value) is kind
    for part in parts:
        assert part in str(caught.value), f"{part!r} is not in {str(caught.value)!r}"


# --- Columns --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "parts"),
    [
        ("nn < m", ("left input", "'nn'", "did you mean 'n'")),
        ("n < mm", ("right input", "'mm'", "did you mean 'm'")),
        ("m < n", ("left input", "'m'", "the right input has one: right.m")),
        ("left.n < right.price", ("right input", "'price'", "its columns are 'm', 's'")),
        ("n < left.n", ("both columns of the left input",)),
        ("other.n < m", ("unknown input 'other'", "left and right")),
        ("n between m and zz", ("right input", "'zz'")),
    ],
)
def test_missing_column(where: str, parts: tuple[str, ...]) -> None:
    refused(dt.InvalidInputError, parts, LEFT, RIGHT, where)


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"by": "zz"}, ("left input", "zz", "its columns are")),
        ({"by": "n"}, ("right input", "'n'", "its columns are")),
        ({"by": ["s", "zz"]}, ("left input", "zz")),
        ({"left_by": "n", "right_by": "zz"}, ("right input", "zz")),
        ({"by": ""}, ("left input", "no column")),
    ],
)
def test_missing_by_column(options: Any, parts: tuple[str, ...]) -> None:
    refused(dt.InvalidInputError, parts, **options)


def test_two_columns_of_one_name() -> None:
    twice = pa.table([[1], [2]], names=["n", "n"])
    refused(dt.InvalidInputError, ("left input", "two columns", '"n"'), twice)
    refused(dt.InvalidInputError, ("right input", "two columns"), LEFT, twice, "n < n")


def test_two_output_columns_of_one_name() -> None:
    parts = ('right column "s"', '"s_right"', "taken", "choose another suffix")
    left = LEFT.append_column("s_right", pa.array([1, 2]))
    refused(dt.InvalidInputError, parts, left)
    right = RIGHT.append_column("s_right", pa.array([1, 2]))
    refused(dt.InvalidInputError, ('"s_right"', "taken"), LEFT, right)
    refused(dt.InvalidInputError, ('right column "s"', 'now ""'), LEFT, RIGHT, "n < m", suffix="")
    assert dt.theta_join(left, RIGHT, "n < m", suffix="_2").schema.names[-3:] == [
        "s_2",
        "b",
        "flag",
    ]


# --- Types ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "parts"),
    [
        ("n < s", ('left column "n" (Int64)', 'right column "s" (Utf8)')),
        ("s < b", ('left column "s" (Utf8)', 'right column "b" (Binary)')),
        ("n < flag", ('left column "n"', 'right column "flag" (Boolean)')),
        ("t < m", ('left column "t" (Timestamp(µs))', "Float64")),
        ("list < m", ('left column "list"', "no order")),
    ],
)
def test_types_that_do_not_compare(where: str, parts: tuple[str, ...]) -> None:
    refused(dt.InvalidInputError, parts, LEFT, RIGHT, where)
    refused(
        dt.InvalidInputError, parts, LEFT, RIGHT, "n < m",
        left_by=where.split(" < ", maxsplit=1)[0], right_by=where.split(" < ")[1],
    )  # fmt: skip


def test_times_with_and_without_a_zone() -> None:
    refused(dt.InvalidInputError, ("only one of them has a time zone",), LEFT, LEFT, "t < z")


def test_every_pair_of_families() -> None:
    """Types compare within their family, and nothing else compares."""
    for left_name, left_kinds in strategies.FAMILIES.items():
        for right_name, right_kinds in strategies.FAMILIES.items():
            left = pa.table({"a": pa.nulls(1, left_kinds[-1])})
            right = pa.table({"b": pa.nulls(1, right_kinds[0])})
            if left_name == right_name:
                assert dt.theta_join(left, right, "a < b").count() == 0
            else:
                parts = ("cannot compare", 'left column "a"', 'right column "b"')
                refused(dt.InvalidInputError, parts, left, right, "a < b")


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.int64()), pa.struct([("x", pa.int64())]), pa.map_(pa.string(), pa.int64()),
        pa.month_day_nano_interval(), pa.list_(pa.int8(), 2), pa.list_view(pa.int8()),
    ],
    ids=str,
)  # fmt: skip
def test_types_without_an_order(kind: pa.DataType) -> None:
    table = pa.table({"a": pa.nulls(1, kind)})
    refused(dt.InvalidInputError, ('left column "a"', "has no order"), table, table, "a < a")


# --- Predicates -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "parts"),
    [
        ("", ("found an empty text",)),
        ("n", ("expected a comparison", "found the end")),
        ("n <", ("expected a column, found the end",)),
        ("n => m", ("unknown operator '=>'", "did you mean '>='")),
        ("n ~ m", ("n ~ m", "^")),
        ("n < 5", ("expected a column", "filter the input")),
        ("n < m or n > m", ("'or' is not supported",)),
        ("n < m and", ("expected a column, found the end",)),
        ("price (net) < m", ("price (net) < m", "^")),
        ("__import__('os')", ("^",)),
        (5, ("expected a predicate as text", "found int")),
        (None, ("expected a predicate as text", "found NoneType")),
        (b"n < m", ("found bytes",)),
        (lambda n, m: n < m, ("found function",)),
    ],
)
def test_malformed_predicate(where: Any, parts: tuple[str, ...]) -> None:
    refused(dt.PredicateError, parts, LEFT, RIGHT, where)


@pytest.mark.parametrize(
    ("where", "kind", "parts"),
    [
        ("n = m", dt.InvalidInputError, ("left_by='n', right_by='m'",)),
        ("s == s", dt.InvalidInputError, ("write by='s'",)),
        ("n < m < m", dt.InvalidInputError, ("chain_join",)),
    ],
)
def test_predicates_that_belong_elsewhere(where: str, kind: Any, parts: tuple[str, ...]) -> None:
    refused(kind, parts, LEFT, RIGHT, where)


def test_quoted_names() -> None:
    assert dt.theta_join(LEFT, RIGHT, '"price (net)" < m').count() == 3


# --- Bands ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "parts"),
    [
        ("abs(n - m) <= '5s'", ('left column "n"', "Int64", "expects a number", "5s")),
        ("abs(t - t2) <= 5", ('left column "t"', "Timestamp", "expects a duration", "number 5")),
        ("abs(s - s) <= 5", ('left column "s"', "Utf8", "no difference")),
        ("abs(n - flag) <= 5", ('left column "n"', "Int64", 'right column "flag"', "Boolean")),
        ("abs(n - s) < 5", ('left column "n"', "Int64", 'right column "s"', "Utf8")),
        ("abs(list - m) < 5", ('left column "list"', "no order")),
        ("abs(z - t2) < '5s'", ("only one of them has a time zone",)),
        ("abs(d - m) < 5", ('left column "d"', "Decimal", 'right column "m"', "Float64", "cast")),
        ("abs(n - m) < 1e309", ("Float64", "cannot hold its width 1e309")),
    ],
)
def test_bands_without_a_difference(where: str, parts: tuple[str, ...]) -> None:
    left = LEFT.append_column("d", pa.array([1, 2], pa.decimal128(9, 2)))
    right = RIGHT.append_column("t2", LEFT["t"])
    refused(dt.InvalidInputError, parts, left, right, where)


@pytest.mark.parametrize("algorithm", ["prefap", "ftj", "cfs", "obt", "rbm"])
def test_the_papers_have_no_bands(algorithm: str) -> None:
    parts = (f'algorithm="{algorithm}"', "not by a band", "default algorithm")
    refused(dt.UnsupportedError, parts, LEFT, RIGHT, "abs(n - m) <= 5", algorithm=algorithm)


def test_integers_that_are_no_floats() -> None:
    left = pa.table({"n": pa.array([1, None, 2**53 + 1])})
    result = dt.theta_join(left, RIGHT, "abs(n - m) <= 5")
    with pytest.raises(dt.InvalidInputError) as caught:
        result.count()
    for part in ('left column "n" (Int64) holds 9007199254740993', "Float64", "cast"):
        assert part in str(caught.value)


# --- Options --------------------------------------------------------------------------------------

INVALID, UNSUPPORTED = dt.InvalidInputError, dt.UnsupportedError


@pytest.mark.parametrize(
    ("options", "kind", "parts"),
    [
        (
            {"how": "left", "algorithm": "nested_loop"},
            UNSUPPORTED,
            ('how="inner" only', 'how="left"', "default algorithm"),
        ),
        ({"by": "s", "algorithm": "prefap"}, UNSUPPORTED, ('algorithm="prefap"', "equality")),
        ({"how": "outer"}, INVALID, ('unknown how "outer"', "inner, left, right, full")),
        ({"how": "INNER"}, INVALID, ('unknown how "INNER"',)),
        ({"how": None}, INVALID, ("how=None",)),
        ({"algorithm": "hash"}, INVALID, ('unknown algorithm "hash"', "auto, nested_loop")),
        ({"algorithm": 1}, INVALID, ("algorithm=1",)),
        ({"suffix": None}, INVALID, ("suffix=None", "expected text")),
        ({"suffix": 5}, INVALID, ("suffix=5", "expected text")),
        ({"suffix": b"_r"}, INVALID, ("suffix=b'_r'",)),
        ({"suffix": "\ud800"}, INVALID, ("suffix=", "surrogates not allowed")),
        ({"by": "\ud800"}, INVALID, ("by=", "surrogates not allowed")),
        ({"by": 5}, INVALID, ("by=5", "expected a column name or a list")),
        ({"by": ["s", 5]}, INVALID, ("by=['s', 5]",)),
        ({"by": b"s"}, INVALID, ("by=b's'",)),
        ({"by": {"s": 1}}, INVALID, ("by={'s': 1}",)),
        ({"by": {"s"}}, INVALID, ("by={'s'}",)),
        ({"by": "s", "left_by": "s"}, INVALID, ("not both",)),
        ({"by": "s", "right_by": "s"}, INVALID, ("not both",)),
        ({"left_by": "s"}, INVALID, ("1 columns and right_by= 0",)),
        ({"left_by": ["s", "n"], "right_by": "s"}, INVALID, ("2 columns and right_by= 1",)),
        ({"workers": 0}, INVALID, ("workers=0",)),
        ({"progress": "yes"}, INVALID, ("progress='yes'",)),
    ],
    ids=ascii,
)
def test_bad_option(options: Any, kind: Any, parts: tuple[str, ...]) -> None:
    refused(kind, parts, **options)


def test_options_are_keywords() -> None:
    with pytest.raises(TypeError, match="positional"):
        dt.theta_join(LEFT, RIGHT, "n < m", "s")  # type: ignore[misc]
    with pytest.raises(TypeError, match="unexpected keyword"):
        dt.theta_join(LEFT, RIGHT, "n < m", on="s")  # type: ignore[call-arg]


# --- Little or nothing ----------------------------------------------------------------------------


def test_empty_tables() -> None:
    for left in (LEFT, LEFT.slice(0, 0), LEFT.schema.empty_table()):
        for right in (RIGHT, RIGHT.slice(0, 0), RIGHT.schema.empty_table()):
            if left.num_rows and right.num_rows:
                continue
            result = dt.theta_join(left, right, "n < m", by="s")
            output = result.to_arrow()
            assert output.num_rows == result.count() == result.head(3).num_rows == 0
            assert output.schema == result.schema
            assert list(result) == []
            assert pa.table(result).schema == result.schema
            assert "0 rows" in result.explain()


def test_streams_without_a_batch() -> None:
    nothing = pa.RecordBatchReader.from_batches(LEFT.schema, [])
    assert dt.theta_join(nothing, RIGHT, "n < m").to_arrow().num_rows == 0


def test_zero_columns() -> None:
    for nothing in (pa.table({}), pa.RecordBatch.from_arrays([], names=[])):
        refused(dt.InvalidInputError, ("left input has no column 'n'", "none at all"), nothing)


def test_only_null_columns() -> None:
    nulls = pa.table({"n": pa.nulls(3)})
    assert dt.theta_join(nulls, RIGHT, "n < m").count() == 0
    assert dt.theta_join(nulls, nulls, "n <= n", by="n").count() == 0


# --- Streams that fail ----------------------------------------------------------------------------


def _failing(rows: int) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        for _ in range(rows):
            yield LEFT.to_batches()[0].slice(0, 1)
        raise ValueError("the network is down")

    return pa.RecordBatchReader.from_batches(LEFT.schema, batches())


@pytest.mark.parametrize("rows", [0, 1, 7])
@pytest.mark.parametrize("use", ["count", "to_arrow", "head", "explain", "iterate", "export"])
def test_a_stream_that_raises_midway(rows: int, use: str) -> None:
    result = dt.theta_join(_failing(rows), RIGHT, "n < m")
    uses: dict[str, Any] = {"iterate": lambda: list(result), "export": lambda: pa.table(result)}
    messages = []
    for _ in range(2):
        with pytest.raises(dt.InvalidInputError) as caught:
            uses.get(use, getattr(result, use, None))()
        messages.append(str(caught.value))
    assert f"left input failed after {rows} rows" in messages[0]
    assert "the network is down" in messages[0]
    assert messages[0] == messages[1], "the second use says the same"


def test_a_stream_whose_batches_do_not_fit_its_schema() -> None:
    other = pa.record_batch({"n": pa.array(["text"])})
    schema = pa.schema([("n", pa.int64())])

    class Lying:
        """Promises one schema and gives another."""

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            reader = pa.RecordBatchReader.from_batches(schema, iter([other]))
            return reader.__arrow_c_stream__(requested_schema)

    with pytest.raises(dt.InvalidInputError, match="left input failed after 0 rows"):
        dt.theta_join(Lying(), RIGHT, "n < m").count()
