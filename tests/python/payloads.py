"""Columns of every Arrow type that only pass through a join, and must come out unharmed.

Each of `PAYLOADS` builds an array from row numbers: row 3 has the same value in whichever array it
is built, every fifth row is null, and dictionaries depend on the rows, so that batches differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

Builder = Callable[[Sequence[int]], pa.Array]


def _nullable(rows: Sequence[int], value: Callable[[int], Any]) -> list[Any]:
    return [None if row % 5 == 4 else value(row) for row in rows]


def _of(kind: pa.DataType, value: Callable[[int], Any]) -> Builder:
    return lambda rows: pa.array(_nullable(rows, value), kind)


def _viewed(kind: pa.DataType) -> Builder:
    width = pa.int32() if pa.types.is_primitive(kind) and kind.bit_width == 32 else pa.int64()
    return lambda rows: pa.array(_nullable(rows, lambda row: row * 1000), width).view(kind)


def _text(row: int) -> str:
    return ("ä" * (row % 3) + "long enough not to be inlined ") * (row % 4) + str(row)


def _dictionary(index: pa.DataType, value: Callable[[int], Any], kind: pa.DataType) -> Builder:
    def build(rows: Sequence[int]) -> pa.Array:
        distinct = sorted({row % 7 for row in rows}, reverse=True)
        places = _nullable(rows, lambda row: distinct.index(row % 7))
        values = pa.array([value(row) for row in distinct], kind)
        return pa.DictionaryArray.from_arrays(pa.array(places, index), values)

    return build


def _lists(make: Callable[..., pa.Array], items: Builder, offset: pa.DataType) -> Builder:
    """Lists of none to three of `items`, whose type may be any."""

    def build(rows: Sequence[int]) -> pa.Array:
        offsets, children = [0], []
        for row in rows:
            children += [row + place for place in range(row % 4)]
            offsets.append(len(children))
        null = pa.array([row % 5 == 4 for row in rows], pa.bool_())
        return make(pa.array(offsets, offset), items(children), mask=null)

    return build


def _run_ends(rows: Sequence[int]) -> pa.Array:
    ends = pa.array(range(1, len(rows) + 1), pa.int32())
    return pa.RunEndEncodedArray.from_arrays(ends, PAYLOADS["string"](rows))


def _long_runs(rows: Sequence[int]) -> pa.Array:
    ends, values = [], []
    for place, row in enumerate(rows):
        if values and values[-1] == row // 3:
            ends[-1] = place + 1
        else:
            ends.append(place + 1)
            values.append(row // 3)
    return pa.RunEndEncodedArray.from_arrays(
        pa.array(ends, pa.int16()), pa.array(values, pa.int64())
    )


def _struct(rows: Sequence[int]) -> pa.Array:
    fields = [PAYLOADS["int64"](rows), PAYLOADS["string"](rows), PAYLOADS["list"](rows)]
    null = pa.array([row % 5 == 3 for row in rows], pa.bool_())
    return pa.StructArray.from_arrays(fields, ["n", "text", "list"], mask=null)


def _map(rows: Sequence[int]) -> pa.Array:
    kind = pa.map_(pa.string(), pa.int32())
    return pa.array(_nullable(rows, lambda row: [(f"k{n}", row) for n in range(row % 3)]), kind)


def _dense_union(rows: Sequence[int]) -> pa.Array:
    types = pa.array([row % 2 for row in rows], pa.int8())
    places = pa.array([place for place, _ in enumerate(rows)], pa.int32())
    children = [pa.array(list(rows), pa.int64()), pa.array([str(row) for row in rows], pa.string())]
    return pa.UnionArray.from_dense(types, places, children, ["n", "s"])


def _sparse_union(rows: Sequence[int]) -> pa.Array:
    types = pa.array([row % 2 for row in rows], pa.int8())
    children = [pa.array(list(rows), pa.int64()), pa.array([str(row) for row in rows], pa.string())]
    return pa.UnionArray.from_sparse(types, children, ["n", "s"])


def _uuid(rows: Sequence[int]) -> pa.Array:
    storage = pa.array(_nullable(rows, lambda row: row.to_bytes(16, "big")), pa.binary(16))
    return pa.ExtensionArray.from_storage(pa.uuid(), storage)


def _list_view(make: Callable[..., pa.Array], kind: pa.DataType) -> Builder:
    """Views that overlap and run backwards, which plain lists cannot."""

    def build(rows: Sequence[int]) -> pa.Array:
        offsets = pa.array([max(len(rows) - 1 - place, 0) for place, _ in enumerate(rows)], kind)
        sizes = pa.array([min(row % 2, len(rows)) for row in rows], kind)
        # The value at the offset must depend on the row alone.
        children = pa.array(list(reversed(rows)), pa.int64())
        return make(offsets, sizes, children)

    return build


def _half(rows: Sequence[int]) -> pa.Array:
    return pa.array(_nullable(rows, lambda row: row / 2), pa.float16())


def _interval(row: int) -> pa.MonthDayNano:
    return pa.MonthDayNano([row, -row, row * 10**9])


PAYLOADS: dict[str, Builder] = {
    "int64": _of(pa.int64(), lambda row: row - 3),
    "uint8": _of(pa.uint8(), lambda row: row % 256),
    "float64": _of(pa.float64(), lambda row: [float("nan"), -0.0, 0.5, 1e300][row % 4]),
    "float16": _half,
    "bool": _of(pa.bool_(), lambda row: row % 3 == 0),
    "null": lambda rows: pa.nulls(len(rows)),
    "string": _of(pa.string(), _text),
    "large_string": _of(pa.large_string(), _text),
    "string_view": _of(pa.string_view(), _text),
    "binary": _of(pa.binary(), lambda row: _text(row).encode()),
    "large_binary": _of(pa.large_binary(), lambda row: _text(row).encode()),
    "binary_view": _of(pa.binary_view(), lambda row: _text(row).encode()),
    "fixed_size_binary": _of(pa.binary(3), lambda row: bytes([row % 256, 0, 255])),
    "fixed_size_binary_0": _of(pa.binary(0), lambda _: b""),
    "decimal32": _of(pa.decimal32(9, 2), lambda row: Decimal(row).scaleb(-2)),
    "decimal64": _of(pa.decimal64(18, 5), lambda row: Decimal(-row).scaleb(-5)),
    "decimal128": _of(pa.decimal128(38, 10), Decimal),
    "decimal256": _of(pa.decimal256(76, 0), lambda row: Decimal(row) * 10**60),
    "date32": _viewed(pa.date32()),
    "date64": lambda rows: pa.array(_nullable(rows, lambda row: row), pa.date32()).cast(
        pa.date64()
    ),
    "time32": _viewed(pa.time32("ms")),
    "time64": _viewed(pa.time64("ns")),
    "timestamp": _viewed(pa.timestamp("ns", "America/New_York")),
    "duration": _viewed(pa.duration("us")),
    "month_day_nano": _of(pa.month_day_nano_interval(), _interval),
    "list": _of(pa.list_(pa.int64()), lambda row: [row, None][: row % 3]),
    "large_list": _of(pa.large_list(pa.string()), lambda row: [_text(row)] * (row % 3)),
    "list_of_lists": _of(pa.list_(pa.list_(pa.string())), lambda row: [[_text(row)], None, []]),
    "list_view": _list_view(pa.ListViewArray.from_arrays, pa.int32()),
    "large_list_view": _list_view(pa.LargeListViewArray.from_arrays, pa.int64()),
    "fixed_size_list": _of(pa.list_(pa.int32(), 2), lambda row: [row, None]),
    "fixed_size_list_of_strings": _of(pa.list_(pa.string(), 2), lambda row: [_text(row), None]),
    "fixed_size_list_0": _of(pa.list_(pa.string(), 0), lambda _: []),
    "struct": _struct,
    "empty_struct": lambda rows: pa.array([{} for _ in rows], pa.struct([])),
    "map": _map,
    "dictionary": _dictionary(pa.int8(), _text, pa.string()),
    "dictionary_of_views": _dictionary(pa.uint16(), _text, pa.string_view()),
    "dictionary_of_numbers": _dictionary(pa.int32(), lambda row: row * 10, pa.int64()),
    "list_of_dictionaries": _lists(
        pa.ListArray.from_arrays, _dictionary(pa.int8(), _text, pa.string()), pa.int32()
    ),
    "struct_of_dictionary": lambda rows: pa.StructArray.from_arrays(
        [PAYLOADS["dictionary"](rows)], ["d"]
    ),
    "run_end_encoded": _run_ends,
    "long_runs": _long_runs,
    "dense_union": _dense_union,
    "sparse_union": _sparse_union,
    "uuid": _uuid,
    "json": lambda rows: pa.ExtensionArray.from_storage(
        pa.json_(), pa.array(_nullable(rows, lambda row: f'{{"n": {row}}}'), pa.string())
    ),
}
"""Builders by the name of what is special about the type."""


def columns(rows: Sequence[int], names: Sequence[str] | None = None) -> dict[str, pa.Array]:
    """One column for each payload, or for those named."""
    return {name: PAYLOADS[name](rows) for name in names or PAYLOADS}
