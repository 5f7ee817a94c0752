"""Arrow in, Arrow out: every kind of input and reader, every type, nothing copied or harmed."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import datafusion
import duckdb
import numpy as np
import oracle
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from payloads import PAYLOADS

import dovetail as dt

LEFT = pa.table({"a": [1, 5, None, 9], "s": ["x", None, "y", "z"]})
RIGHT = pa.table({"b": [4, 8, None], "f": [0.5, None, 2.0]})
EXPECTED = {"a": [1, 1, 5], "s": ["x", "x", None], "b": [4, 8, 8], "f": [0.5, None, None]}


def join(left: Any = LEFT, right: Any = RIGHT, **options: Any) -> dt.JoinResult:
    return dt.theta_join(left, right, "a < b", **options)


# --- What comes in --------------------------------------------------------------------------------


def _pandas(table: pa.Table) -> pd.DataFrame:
    return table.to_pandas(types_mapper=pd.ArrowDtype)


INPUTS: dict[str, Callable[[pa.Table], Any]] = {
    "pyarrow.Table": lambda table: table,
    "pyarrow.Table of chunks": lambda table: pa.concat_tables([table.slice(0, 1), table.slice(1)]),
    "pyarrow.RecordBatch": lambda table: table.to_batches()[0],
    "pyarrow.RecordBatchReader": lambda table: table.to_reader(max_chunksize=1),
    "pyarrow.StructArray": lambda table: table.to_batches()[0].to_struct_array(),
    "pyarrow.Dataset": pyarrow.dataset.dataset,
    "pyarrow.Scanner": lambda table: pyarrow.dataset.dataset(table).scanner(batch_size=1),
    "pandas": _pandas,
    "polars": pl.DataFrame,
    "datafusion": lambda table: datafusion.SessionContext().from_arrow(table),
    "dovetail": lambda table: dt.theta_join(
        table, pa.table({"one": [1]}), f"{table.column_names[0]} >= one"
    ),
}


@pytest.mark.parametrize("kind", INPUTS)
def test_input(kind: str) -> None:
    make = INPUTS[kind]
    if kind == "dovetail":
        left, right = make(LEFT), make(RIGHT)
        output = join(left, right).to_arrow().select(list(EXPECTED))
    else:
        output = join(make(LEFT), make(RIGHT)).to_arrow()
    assert output.to_pydict() == EXPECTED


@pytest.mark.parametrize("kind", INPUTS)
def test_input_may_be_used_twice(kind: str) -> None:
    result = join(INPUTS[kind](LEFT))
    assert (result.count(), result.to_arrow().num_rows, result.count()) == (3, 3, 3)


def test_duckdb_relations_of_one_connection() -> None:
    """A connection has room for one open result, and the two sides are open at once."""
    with duckdb.connect() as connection:
        connection.register("lefts", LEFT)
        connection.register("rights", RIGHT)
        left, right = connection.sql("FROM lefts"), connection.sql("FROM rights")
        result = join(left, right)
        assert connection.sql("SELECT 42").fetchall() == [(42,)]
        assert result.to_arrow().to_pydict() == EXPECTED
        assert join(left, right).count() == 3, "relations are queries: they can be asked again"
        itself = dt.theta_join(left, left, "a < a")
        assert itself.count() == 3


def test_pandas_with_an_index_and_categories() -> None:
    frame = pd.DataFrame({"a": [1, 5], "c": pd.Categorical(["u", "v"])}, index=[7, 8])
    output = join(frame).to_pandas()
    assert output["c"].dtype == "category"
    assert output["__index_level_0__"].tolist() == [7, 7, 8]
    assert output["c"].tolist() == ["u", "u", "v"]


# --- What is refused ------------------------------------------------------------------------------

NOT_TABLES = [
    None, 5, "a.parquet", {"a": [1]}, [{"a": 1}], np.array([1]), object(), pa.Table,
    pa.scalar(1), pa.array([1]), pa.chunked_array([[1]]), pa.schema([("a", pa.int64())]),
    pl.Series("a", [1]), pd.Series([1], name="a"),
]  # fmt: skip


@pytest.mark.parametrize("data", NOT_TABLES, ids=lambda data: type(data).__name__)
@pytest.mark.parametrize("side", ["left", "right"])
def test_what_is_no_table_is_refused(data: Any, side: str) -> None:
    sides = (data, RIGHT) if side == "left" else (LEFT, data)
    with pytest.raises(dt.InvalidInputError) as caught:
        join(*sides)
    message = str(caught.value)
    assert message.startswith(f"{side} input")
    assert f"{type(data).__module__}.{type(data).__qualname__}" in message
    assert "\n" not in message


def test_lazy_frames_are_not_collected_behind_ones_back() -> None:
    class Mine(pl.LazyFrame):
        pass

    for frame in (pl.LazyFrame({"a": [1]}), Mine({"a": [1]})):
        with pytest.raises(
            dt.UnsupportedError, match=r"left input .* LazyFrame: call \.collect\(\)"
        ):
            join(frame)


def test_spark_frames_are_not_collected_behind_ones_back() -> None:
    frames = pytest.importorskip("pyspark.sql.classic.dataframe")

    class Mine(frames.DataFrame):  # type: ignore[misc, name-defined]
        pass

    for kind in (frames.DataFrame, Mine):
        without_a_session = object.__new__(kind)
        with pytest.raises(dt.UnsupportedError, match=r"right input is a Spark .* dovetail\.spark"):
            join(LEFT, without_a_session)


class Stream:
    """An object that hands out whatever it was given as its stream."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        if isinstance(self.capsule, Exception):
            raise self.capsule
        return self.capsule


def test_capsules_of_another_kind_are_refused() -> None:
    for capsule in (5, None, LEFT.schema.__arrow_c_schema__()):
        with pytest.raises(dt.InvalidInputError, match=r"left input, a .*Stream, is not a table"):
            join(Stream(capsule))


def test_a_capsule_that_was_read_already_is_refused() -> None:
    once = Stream(LEFT.__arrow_c_stream__())
    assert join(once).count() == 3
    with pytest.raises(dt.InvalidInputError, match="already released"):
        join(once)


def test_an_error_of_the_source_itself_is_passed_on() -> None:
    with pytest.raises(RuntimeError, match="of mine"):
        join(Stream(RuntimeError("of mine")))


# --- Malformed data -------------------------------------------------------------------------------


def _offsets(*offsets: int) -> pa.Buffer:
    return pa.py_buffer(np.array(offsets, np.int32))


def _raw(kind: pa.DataType, buffers: list[Any], children: Any = None, length: int = 2) -> pa.Array:
    return pa.Array.from_buffers(kind, length, [None, *buffers], children=children)


THREE = pa.py_buffer(b"abc")
MALFORMED: dict[str, Callable[[], pa.Array]] = {
    "offsets beyond the end": lambda: _raw(pa.string(), [_offsets(0, 99, 3), THREE]),
    "offsets that go back": lambda: _raw(pa.string(), [_offsets(0, 3, 1), THREE]),
    "negative offsets": lambda: _raw(pa.binary(), [_offsets(0, -5, 3), THREE]),
    "invalid UTF-8": lambda: _raw(pa.string(), [_offsets(0, 1, 3), pa.py_buffer(b"\xffab")]),
    "a character cut in two": lambda: _raw(
        pa.string(), [_offsets(0, 1, 3), pa.py_buffer("éa".encode())]
    ),
    "list offsets beyond the end": lambda: _raw(
        pa.list_(pa.int64()), [_offsets(0, 99, 3)], [pa.array([1, 2, 3])]
    ),
    "dictionary keys beyond the end": lambda: pa.DictionaryArray.from_arrays(
        pa.array([0, 9], pa.int8()), pa.array(["x"]), safe=False
    ),
    "negative dictionary keys": lambda: pa.DictionaryArray.from_arrays(
        pa.array([0, -1], pa.int8()), pa.array(["x"]), safe=False
    ),
    "malformed inside a struct": lambda: pa.StructArray.from_arrays(
        [_raw(pa.string(), [_offsets(0, 99, 3), THREE])], ["s"]
    ),
    "views beyond the end": lambda: _raw(
        pa.string_view(), [pa.py_buffer(np.array([20, 0, 0, 90] * 2, np.int32)), THREE]
    ),
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_malformed_columns_are_refused(kind: str) -> None:
    left = pa.table({"a": [1, 2], "bad": MALFORMED[kind]()})
    result = join(left)
    for use in (result.count, result.to_arrow):
        with pytest.raises(dt.InvalidInputError, match=r'left input failed after 0 rows: .*"bad"'):
            use()


def test_nulls_in_a_column_that_has_none_by_its_schema() -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    left = pa.Table.from_arrays([pa.array([1, None])], schema=schema)
    with pytest.raises(dt.InvalidInputError, match="'a' is declared as non-nullable"):
        join(left).count()


@pytest.mark.parametrize("make", [lambda array: array, lambda array: pa.chunked_array([array])])
def test_rows_that_are_null_as_a_whole_are_refused(make: Callable[[pa.Array], Any]) -> None:
    """A struct array may be a table, but a null struct is no row."""
    with pytest.raises(dt.InvalidInputError, match=r"left input.*null"):
        join(make(pa.array([{"a": 1}, None, {"a": 3}]))).count()


def _misaligned(array: pa.Array, by: int) -> pa.Array:
    shifted = pa.py_buffer(b"\0" * by + array.buffers()[1].to_pybytes()).slice(by)
    return pa.Array.from_buffers(array.type, len(array), [array.buffers()[0], shifted])


@pytest.mark.parametrize("by", [1, 4, 8])
@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.float64(), pa.decimal128(10, 2), pa.decimal256(40, 0)], ids=str
)
def test_misaligned_buffers(kind: pa.DataType, by: int) -> None:
    plain = pa.array([1, 2, 3], kind)
    odd = _misaligned(plain, by)
    left = pa.table({"a": odd, "p": odd})
    output = join(left, pa.table({"b": [3]})).to_arrow()
    assert output["p"].to_pylist() == plain.slice(0, 2).to_pylist()


# --- Types that pass through ----------------------------------------------------------------------


def cuts(name: str) -> dict[str, list[pa.RecordBatch]]:
    """Rows 0 to 11 with a payload, as one batch and as slices of several, one of them empty."""

    def batch(rows: range) -> pa.RecordBatch:
        around = [0, 1, *rows, 3]
        whole = pa.record_batch({"a": pa.array(around), "p": PAYLOADS[name](around)})
        return whole.slice(2, len(rows))

    return {
        "one": [batch(range(12))],
        "several": [batch(range(5)), batch(range(5, 6)), batch(range(6, 12))],
        "with an empty one": [batch(range(7)), batch(range(7, 7)), batch(range(7, 12))],
        "only an empty one": [batch(range(0))],
    }


@pytest.mark.parametrize("cut", ["one", "several", "with an empty one", "only an empty one"])
@pytest.mark.parametrize("name", PAYLOADS)
def test_payload_unharmed(name: str, cut: str) -> None:
    batches = cuts(name)[cut]
    schema = batches[0].schema
    table = pa.Table.from_batches(batches)
    table.validate(full=True)
    other = pa.table({"b": [2, 5, 9, None]})

    def reader() -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(schema, iter(batches))

    on_the_left = dt.theta_join(reader(), other, "a < b")
    pairs = oracle.theta_pairs(table, other, [("a", "<", "b")])
    assert on_the_left.schema.field("p").equals(schema.field("p"), check_metadata=True)
    output = on_the_left.to_arrow()
    output.validate(full=True)
    assert oracle.row_list(output) == oracle.pair_rows(table, other, pairs)
    exported = pa.table(on_the_left)
    assert oracle.row_list(exported) == oracle.row_list(output)

    on_the_right = dt.theta_join(other, reader(), "b > a", workers=3)
    pairs = oracle.theta_pairs(other, table, [("b", ">", "a")])
    assert oracle.row_list(on_the_right.to_arrow()) == oracle.pair_rows(other, table, pairs)


# A union has no validity of its own: its child is null instead, see the test behind this one.
PADDED = {name for name in PAYLOADS if "union" not in name}


@pytest.mark.parametrize("cut", ["one", "several"])
@pytest.mark.parametrize("name", sorted(PADDED))
def test_payload_is_padded_with_nulls(name: str, cut: str) -> None:
    table = pa.Table.from_batches(cuts(name)[cut])
    other = pa.table({"b": [2, -7, 5, None]})
    pairs = oracle.theta_pairs(other, table, [("b", ">", "a")])
    output = dt.theta_join(other, table, "b > a", how="full").to_arrow()
    output.validate(full=True)
    rows = oracle.outcome(other, table, pairs, "full")
    expected = oracle.pair_rows(other, table, rows, how="full")
    assert oracle.rows(output) == oracle.Counter(expected)


@pytest.mark.parametrize("cut", ["one", "several"])
@pytest.mark.parametrize("name", sorted(set(PAYLOADS) - PADDED))
def test_unions_are_padded_with_null_values(name: str, cut: str) -> None:
    table = pa.Table.from_batches(cuts(name)[cut])
    output = dt.theta_join(pa.table({"b": [-7, None]}), table, "b > a", how="left").to_arrow()
    assert [row["p"] for row in output.to_pylist()] == [None, None]


STRINGS = pa.array(["some text", "more of it", "the end"])
EMPTY_SLICES = {
    "string": STRINGS,
    "binary": STRINGS.cast(pa.binary()),
    "list": pa.array([["x", "y"], ["z"], []]),
    "map": pa.array([[("k", 1)], [("k", 2)], []], pa.map_(pa.string(), pa.int8())),
    "struct": pa.StructArray.from_arrays([STRINGS], ["s"]),
}


@pytest.mark.parametrize("kind", EMPTY_SLICES)
def test_empty_slices_are_well_formed(kind: str) -> None:
    """Nothing of the middle of an array: its first offset is not zero, and that is allowed."""
    array = EMPTY_SLICES[kind]
    empty = pa.record_batch({"a": pa.array([1, 2, 3]), "p": array}).slice(2, 0)
    assert join(empty).to_arrow().num_rows == 0
    batches = [empty, pa.record_batch({"a": pa.array([1]), "p": array.slice(1, 1)}), empty]
    reader = pa.RecordBatchReader.from_batches(empty.schema, iter(batches))
    assert join(reader).to_arrow()["p"].to_pylist() == array.slice(1, 1).to_pylist() * 2


def test_empty_slices_inside_others_are_well_formed() -> None:
    nothing = STRINGS.slice(2, 0)
    columns = {
        "a": pa.array([1, 2]),
        "list": pa.ListArray.from_arrays(pa.array([0, 0, 0], pa.int32()), nothing),
        "dictionary": pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int8()), nothing),
    }
    output = join(pa.table(columns), pa.table({"b": [2]})).to_arrow()
    assert output.to_pydict() == {"a": [1], "list": [[]], "dictionary": [None], "b": [2]}


def test_dictionaries_that_together_are_too_large_for_their_keys() -> None:
    kind = pa.dictionary(pa.int8(), pa.int64())
    parts = [
        pa.DictionaryArray.from_arrays(
            pa.array(range(100), pa.int8()), pa.array(range(first, first + 100))
        )
        for first in (0, 1000)
    ]
    left = pa.table({"a": [0] * 200, "d": pa.chunked_array(parts, kind)})
    with pytest.raises(dt.InvalidInputError, match=r'column "d" .* cast it to wider keys'):
        join(left, pa.table({"b": [1]})).to_arrow()
    assert join(left, pa.table({"b": [1]})).count() == 200


def test_nested_dictionaries_that_together_are_too_large_for_their_keys() -> None:
    def part(first: int) -> pa.Array:
        keys, values = pa.array(range(100), pa.int8()), pa.array(range(first, first + 100))
        return pa.StructArray.from_arrays([pa.DictionaryArray.from_arrays(keys, values)], ["d"])

    left = pa.table({"a": [0] * 200, "s": pa.chunked_array([part(0), part(1000)])})
    with pytest.raises(dt.InvalidInputError, match=r'column "s" .* cast it to wider keys'):
        join(left, pa.table({"b": [1]})).to_arrow()


def test_field_metadata_is_kept_and_schema_metadata_is_not() -> None:
    field = pa.field("a", pa.int64(), metadata={"unit": "km"})
    left = pa.table([[1]], schema=pa.schema([field], metadata={"about": "the left input"}))
    schema = join(left).to_arrow().schema
    assert schema.field("a").metadata == {b"unit": b"km"}
    assert schema.metadata is None


# --- What goes out --------------------------------------------------------------------------------


def test_exports() -> None:
    result = join()
    assert pa.table(result).to_pydict() == EXPECTED
    assert pa.RecordBatchReader.from_stream(result).read_all().to_pydict() == EXPECTED
    assert pl.DataFrame(result).to_dict(as_series=False) == EXPECTED
    assert result.to_polars().to_dict(as_series=False) == EXPECTED
    assert datafusion.SessionContext().from_arrow(result).to_pydict() == EXPECTED
    frame = result.to_pandas()
    assert list(frame.columns) == list(EXPECTED)
    assert frame["b"].tolist() == EXPECTED["b"]


def test_export_to_duckdb_by_name_and_by_value() -> None:
    result = join()
    with duckdb.connect() as connection:
        assert connection.from_arrow(result).fetchall() == list(
            zip(*EXPECTED.values(), strict=True)
        )
        connection.register("pairs", result)
        for _ in range(2):
            assert connection.sql("SELECT sum(a), count(*) FROM pairs").fetchall() == [(7, 3)]


def _requested(schema: pa.Schema) -> pa.Table:
    capsule = join().__arrow_c_stream__(schema.__arrow_c_schema__())
    return pa.RecordBatchReader._import_from_c_capsule(capsule).read_all()


def test_requested_schema() -> None:
    types = [pa.int32(), pa.large_string(), pa.int64(), pa.float32()]
    wanted = pa.schema(zip(EXPECTED, types, strict=True))
    output = _requested(wanted)
    assert output.schema == wanted
    assert output.to_pydict() == EXPECTED


@pytest.mark.parametrize(
    "wanted",
    [
        [("a", pa.int64())],
        [("a", pa.int64()), ("other", pa.string()), ("b", pa.int64()), ("f", pa.float64())],
        [("a", pa.int64()), ("s", pa.int64()), ("b", pa.int64()), ("f", pa.float64())],
        [("a", pa.int64()), ("s", pa.string()), ("b", pa.int64()), ("f", pa.int64())],
    ],
    ids=["fewer columns", "another name", "text that is no number", "a number cut off"],
)
def test_a_requested_schema_that_would_lose_something_is_refused(wanted: Any) -> None:
    with pytest.raises((ValueError, pa.ArrowException)):
        _requested(pa.schema(wanted))


def test_a_requested_schema_is_a_capsule() -> None:
    with pytest.raises((TypeError, ValueError)):
        join().__arrow_c_stream__(5)


def test_an_exported_stream_outlives_its_result_and_inputs() -> None:
    reader = pa.RecordBatchReader.from_stream(join(pa.table({"a": list(range(100))}), RIGHT))
    gc.collect()
    assert reader.read_all().num_rows == 4 + 8


def test_an_error_while_exporting_reaches_the_reader() -> None:
    keys = pa.array(range(100), pa.int8())
    parts = [
        pa.DictionaryArray.from_arrays(keys, pa.array(range(first, first + 100)))
        for first in (0, 1000)
    ]
    left = pa.table({"a": [0] * 200, "d": pa.chunked_array(parts)})
    reader = pa.RecordBatchReader.from_stream(join(left, pa.table({"b": [1]})))
    with pytest.raises(pa.ArrowException, match="cast it to wider keys"):
        reader.read_all()


# --- Nothing is copied ----------------------------------------------------------------------------


def test_views_and_dictionaries_share_the_inputs_values() -> None:
    text = "long enough to live in a buffer of its own"
    dictionary = pa.array([text, text + "!"])
    left = pa.table(
        {
            "a": [1, 2],
            "view": pa.array([text, text + "?"], pa.string_view()),
            "dictionary": pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int8()), dictionary),
        }
    )
    output = join(left, pa.table({"b": [3]})).to_arrow()
    (given,), (made,) = left["view"].chunks, output["view"].chunks
    assert made.buffers()[2].address == given.buffers()[2].address
    (made,) = output["dictionary"].chunks
    assert [b.address for b in made.dictionary.buffers()[1:]] == [
        b.address for b in dictionary.buffers()[1:]
    ]


def test_inputs_are_held_not_copied_and_then_let_go() -> None:
    gc.collect()
    before = pa.total_allocated_bytes()
    left = pa.table({"a": [1] * 100_000, "p": pa.nulls(100_000, pa.int64())}).slice(10)
    held = pa.total_allocated_bytes() - before
    assert held >= 1_600_000
    result = join(left)
    result.count()
    del left
    gc.collect()
    # pyarrow itself needs a little to export a table.
    assert held <= pa.total_allocated_bytes() - before < held + 100_000
    del result
    gc.collect()
    assert pa.total_allocated_bytes() - before < 100_000


def test_a_large_payload_is_not_copied_to_count() -> None:
    """In a process of its own, where the most memory ever used says what was allocated."""
    code = """
        import resource, numpy as np, pyarrow as pa, dovetail as dt
        payload = pa.array(np.ones(16 << 20))  # 128 MiB
        left = pa.table({"a": pa.array(np.ones(16 << 20, np.int8)), "p": payload})
        right = pa.table({"b": [0]})
        peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        before = peak()
        result = dt.theta_join(left.slice(0, 1000), right, "a < b")
        assert result.count() == 0
        assert peak() - before < 32, (before, peak())
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)
