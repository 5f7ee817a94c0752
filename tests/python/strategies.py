"""Hypothesis generators for join inputs: narrow values that tie, nulls, edge values, odd cuts.

`inputs` draws an `Input`: key columns of given types, a payload column, and batches of any size,
empty ones included, each a slice out of the middle of a larger array. Types that compare with each
other are in one family of `FAMILIES`; `key_types` draws a type, plain, dictionary-encoded or
run-end encoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

INF, NAN = float("inf"), float("nan")
UNITS = ("s", "ms", "us", "ns")

FAMILIES: dict[str, list[pa.DataType]] = {
    "number": [
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.uint8(),
        pa.uint16(),
        pa.uint32(),
        pa.uint64(),
        pa.float16(),
        pa.float32(),
        pa.float64(),
        pa.decimal32(7, 2),
        pa.decimal64(16, 0),
        pa.decimal128(38, 10),
        pa.decimal128(4, -2),
        pa.decimal256(76, 3),
    ],
    "boolean": [pa.bool_()],
    "local time": [pa.date32(), pa.date64(), *(pa.timestamp(unit) for unit in UNITS)],
    "instant": [
        *(pa.timestamp(unit, "UTC") for unit in UNITS),
        pa.timestamp("ms", "Europe/Berlin"),
        pa.timestamp("us", "+05:30"),
    ],
    "time of day": [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")],
    "duration": [pa.duration(unit) for unit in UNITS],
    "string": [pa.string(), pa.large_string(), pa.string_view()],
    "binary": [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2)],
}
"""Types within a family compare with each other; types of different families do not."""

KEY_TYPES = [kind for kinds in FAMILIES.values() for kind in kinds]


def family_of(kind: pa.DataType) -> str:
    """The family that a plain key type belongs to."""
    return next(name for name, kinds in FAMILIES.items() if kind in kinds)


# --- Values ---------------------------------------------------------------------------------------


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of a plain type, few enough to tie, and now and then an edge value; never null.

    Temporal values are integers in the type's own unit.
    """
    narrow, edges = _values(kind)
    return st.one_of(st.sampled_from(narrow), st.sampled_from(narrow), st.sampled_from(edges))


def _values(kind: pa.DataType) -> tuple[Sequence[Any], Sequence[Any]]:
    if pa.types.is_integer(kind):
        least = 0 if pa.types.is_unsigned_integer(kind) else -(2 ** (kind.bit_width - 1))
        most = least + 2**kind.bit_width - 1
        near = [value for value in (2**53, 2**53 + 1, 300) if value <= most]
        return range(max(-2, least), 4), [least, least + 1, most - 1, most, *near]
    if pa.types.is_floating(kind):
        wide = [2.0**53, 2.0**53 + 2, 1e300, 2.0**63, 2.0**64] if kind == pa.float64() else []
        return [-1.0, -0.0, 0.0, 0.5, 1.0, 2.0, NAN], [INF, -INF, 5e-324, -0.5, 300.0, *wide]
    if pa.types.is_decimal(kind):
        with localcontext() as context:
            context.prec = 100
            step = Decimal(1).scaleb(-kind.scale)
            most = step * (10**kind.precision - 1)
            near = [Decimal(n) for n in range(-2, 4)] if kind.scale >= 0 else []
            return [Decimal(0), step, -step, *near], [most, -most, most - step]
    if pa.types.is_boolean(kind):
        return [False, True], [False]
    if pa.types.is_date64(kind):
        day = 86_400_000
        return [n * day for n in range(-2, 3)], [day * 10**6, -day * 10**6]
    if pa.types.is_date32(kind):
        return range(-2, 3), [-(2**31), 2**31 - 1]
    if pa.types.is_time(kind):
        per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        return [0, 1, per_second, 2 * per_second], [86_400 * per_second - 1]
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        days = [n * 86_400 * per_second for n in (-1, 0, 1)]
        # The least 64-bit value stands for "not a time" in pandas, but is a value to Arrow.
        return [0, 1, per_second, 2 * per_second, *days], [-(2**63) + 1, 2**63 - 1]
    if pa.types.is_fixed_size_binary(kind):
        return [b"ab", b"a\0", b"\0\0"], [b"\xff\xff"]
    if family_of(kind) == "binary":
        return [b"", b"a", b"ab", b"a\0", b"b"], [b"\0", b"\xff", b"\xff" * 20, b"a" * 40]
    long = "the same twenty bytes" * 2
    return ["", "a", "ab", "b", "ä"], ["\0", "\U0010ffff", "\uffff", "z" * 16, long, long + "x"]


def plain_array(items: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """An array of `values(kind)` and nulls."""
    if pa.types.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array(items, width).view(kind)
    return pa.array(items, kind)


def encoded_array(items: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Like `plain_array`, for dictionary and run-end encoded types too."""
    if pa.types.is_dictionary(kind):
        distinct, numbers = _numbered(items)
        dictionary = plain_array(distinct, kind.value_type)
        return pa.DictionaryArray.from_arrays(pa.array(numbers, kind.index_type), dictionary)
    if pa.types.is_run_end_encoded(kind):
        return _runs(items, kind)
    return plain_array(items, kind)


def _numbered(items: Sequence[Any]) -> tuple[list[Any], list[int | None]]:
    """A dictionary by hand, in reverse: pyarrow cannot encode every type, and NaN is not itself."""
    distinct = {repr(item): item for item in reversed(items) if item is not None}
    numbers = {key: number for number, key in enumerate(distinct)}
    return list(distinct.values()), [
        None if item is None else numbers[repr(item)] for item in items
    ]


def _runs(items: Sequence[Any], kind: pa.DataType) -> pa.Array:
    ends, kept = [], []
    for place, item in enumerate(items):
        if place and repr(items[place - 1]) == repr(item):
            ends[-1] = place + 1
        else:
            ends.append(place + 1)
            kept.append(item)
    run_ends = pa.array(ends, kind.run_end_type)
    return pa.RunEndEncodedArray.from_arrays(run_ends, plain_array(kept, kind.value_type))


@st.composite
def key_types(draw: st.DrawFn, family: str | None = None) -> pa.DataType:
    """A key type, of `family` if given; now and then dictionary or run-end encoded."""
    kinds = KEY_TYPES if family is None else FAMILIES[family]
    kind = draw(st.sampled_from(kinds))
    how = draw(st.sampled_from(["plain"] * 4 + ["dictionary", "run ends"]))
    if how == "dictionary":
        return pa.dictionary(draw(st.sampled_from([pa.int8(), pa.int32(), pa.uint16()])), kind)
    if how == "run ends" and kind not in (pa.string_view(), pa.binary_view()):
        return pa.run_end_encoded(pa.int32(), kind)
    return kind


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values behind an encoding."""
    encoded = pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind)
    return kind.value_type if encoded else kind


# --- Inputs ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Input:
    """One input of a join, as batches that may be empty."""

    schema: pa.Schema
    batches: list[pa.RecordBatch]

    def table(self) -> pa.Table:
        """All of it in one table."""
        return pa.Table.from_batches(self.batches, self.schema)

    def reader(self) -> pa.RecordBatchReader:
        """A one-shot stream that keeps the empty batches."""
        return pa.RecordBatchReader.from_batches(self.schema, iter(self.batches))


@st.composite
def inputs(
    draw: st.DrawFn, kinds: dict[str, pa.DataType], payload: str, max_rows: int = 12
) -> Input:
    """An input with key columns of `kinds` and an int64 column `payload` that numbers the rows."""
    rows = draw(st.integers(0, max_rows))
    columns: dict[str, list[Any]] = {}
    for name, kind in kinds.items():
        of_kind = values(plain_type(kind))
        if draw(st.integers(0, 3)) == 0:  # skew: one value for nearly all rows
            common = draw(of_kind)
            of_kind = st.one_of(st.just(common), st.just(common), st.just(common), of_kind)
        cell = st.one_of(of_kind, of_kind, of_kind, of_kind, st.none())
        columns[name] = draw(st.lists(cell, min_size=rows, max_size=rows))
    columns[payload] = list(range(rows))
    schema = pa.schema([*kinds.items(), (payload, pa.int64())])
    return Input(schema, draw(batches_of(columns, schema)))


@st.composite
def batches_of(
    draw: st.DrawFn, columns: dict[str, list[Any]], schema: pa.Schema
) -> list[pa.RecordBatch]:
    """The columns cut anywhere; each batch is a slice of arrays with more rows around it.

    Dictionaries are made batch by batch, so they differ.
    """
    rows = len(next(iter(columns.values())))
    inner = draw(st.lists(st.integers(0, rows), max_size=4).map(sorted))
    ends = [0, *inner, rows]
    batches = []
    for begin, end in pairwise(ends):
        before, after = draw(st.integers(0, 3)), draw(st.integers(0, 2))
        arrays = []
        for name, kind in zip(schema.names, schema.types, strict=True):
            items = columns[name][begin:end]
            filler = [items[0] if items else None]
            padded = filler * before + items + filler * after
            arrays.append(encoded_array(padded, kind).slice(before, end - begin))
        batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return batches


def cut(table: pa.Table, sizes: Sequence[int]) -> list[pa.RecordBatch]:
    """`table` as batches of these sizes, the rest in a last one."""
    batches, begin = [], 0
    whole = table.combine_chunks()
    for size in [*sizes, table.num_rows - sum(sizes)]:
        batches += whole.slice(begin, size).to_batches() or [
            pa.RecordBatch.from_arrays(
                [pa.array([], field.type) for field in table.schema], schema=table.schema
            )
        ]
        begin += size
    return batches


def decoded(table: pa.Table) -> pa.Table:
    """`table` with run ends and dictionaries decoded, for libraries that cannot read them."""
    for place, field in enumerate(table.schema):
        column = table.column(place)
        if pa.types.is_run_end_encoded(field.type):
            column = pa.chunked_array(
                [pc.run_end_decode(c) for c in column.chunks], field.type.value_type
            )
        elif pa.types.is_dictionary(field.type):
            column = column.cast(field.type.value_type)
        table = table.set_column(place, field.name, column)
    return table
