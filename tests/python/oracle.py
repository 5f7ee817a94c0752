"""What a join must give, worked out row by row in plain Python.

Nothing here is shared with `src`: values are exact Python numbers (`Fraction`), and every pair of
rows is looked at. Slow on purpose, and short enough to be believed.

- `comparable` turns a column into values that Python compares as dovetail promises to.
- `theta_pairs` gives the pairs (i, j) of a theta join, in the documented order.
- `chain_tuples` gives the tuples (i, j, k, …) of a chain.
- `cells`, `row_list` and `rows` turn Arrow data into hashable rows, so that whole rows can be
  compared as sequences or multisets, whatever their type.
- `pair_schema` and `pair_rows` are the output that belongs to given pairs.
"""

from __future__ import annotations

import operator
import struct
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Term = tuple[str, str, str]
#: Columns, "<=" or "<", and the width: a number, or seconds for times.
Band = tuple[str, str, str, Fraction | int]
Pairs = list[tuple[int, int]]

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "!=": operator.ne,
}

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def comparable(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """The values of a key column so that `<` and `==` mean what they mean in a join."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return [value for chunk in chunks for value in _comparable(chunk)]


def _comparable(array: pa.Array) -> list[Any]:
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _picked(_comparable(array.dictionary), array.indices.to_pylist())
    if pa.types.is_run_end_encoded(kind):
        return _comparable(pc.run_end_decode(array))
    if pa.types.is_null(kind):
        return [None] * len(array)
    if pa.types.is_floating(kind):
        return [None if value is None else _float(value) for value in array.to_pylist()]
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return [None if value is None else (0, Fraction(value)) for value in array.to_pylist()]
    seconds = _seconds(kind)
    if seconds is not None:
        return [None if value is None else value * seconds for value in _raw(array)]
    if pa.types.is_boolean(kind):
        return [None if value is None else int(value) for value in array.to_pylist()]
    # Python orders str by code point, which is the order of UTF-8 bytes, and bytes as bytes.
    return array.to_pylist()


def _picked(values: list[Any], indices: list[int | None]) -> list[Any]:
    return [None if index is None else values[index] for index in indices]


def _float(value: float) -> tuple[int, Fraction]:
    """NaN above infinity above every number; Fraction(-0.0) is 0 anyway."""
    if value != value:  # noqa: PLR0124 - NaN
        return (2, Fraction(0))
    if value in (float("inf"), float("-inf")):
        return (1 if value > 0 else -1, Fraction(0))
    return (0, Fraction(value))


def _seconds(kind: pa.DataType) -> Fraction | None:
    """How many seconds one step of a temporal type is."""
    if pa.types.is_date32(kind):
        return Fraction(86_400)
    if pa.types.is_date64(kind):
        return Fraction(1, 1000)
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind):
        return Fraction(1, _PER_SECOND[kind.unit])
    return None


def _raw(array: pa.Array) -> list[int | None]:
    """The integers behind dates, times, timestamps and durations."""
    width = pa.int32() if array.type.bit_width == 32 else pa.int64()
    return array.view(width).to_pylist()


def theta_pairs(
    left: pa.Table,
    right: pa.Table,
    terms: Iterable[Term | Band],
    by: Iterable[tuple[str, str]] = (),
) -> Pairs:
    """The pairs of rows for which all `terms` and all equalities hold: left row, then right row."""
    tests: list[tuple[list[Any], Callable[[Any, Any], bool], list[Any]]] = []
    for a, symbol, b, *width in terms:
        if width:
            floats = is_floating(left[a]) or is_floating(right[b])
            holds = within(symbol, width[0], floats=floats)
        else:
            holds = COMPARISONS[symbol]
        tests.append((comparable(left[a]), holds, comparable(right[b])))
    tests += [(comparable(left[a]), operator.eq, comparable(right[b])) for a, b in by]
    return [
        (i, j)
        for i in range(left.num_rows)
        for j in range(right.num_rows)
        if all(a[i] is not None and b[j] is not None and holds(a[i], b[j]) for a, holds, b in tests)
    ]


def within(symbol: str, width: Fraction | int, *, floats: bool) -> Callable[[Any, Any], bool]:
    """Whether two comparable values lie within a band.

    Exactly, but for floats as 64-bit floats do it, where infinity - infinity is not a number.
    """
    compare = COMPARISONS[symbol]
    if floats:
        return lambda a, b: compare(abs(as_float(a) - as_float(b)), float(width))

    def exactly(a: Any, b: Any) -> bool:
        (_, a), (_, b) = (x if isinstance(x, tuple) else (0, x) for x in (a, b))
        return compare(abs(a - b), width)

    return exactly


def as_float(value: tuple[int, Fraction]) -> float:
    """A comparable number as a float."""
    kind, number = value
    return {-1: float("-inf"), 0: float(number), 1: float("inf"), 2: float("nan")}[kind]


def is_float(value: tuple[int, Fraction]) -> bool:
    """Whether a comparable number is a float exactly."""
    return value[0] != 0 or Fraction(as_float(value)) == value[1]


def is_floating(column: pa.ChunkedArray) -> bool:
    """Whether a column holds floats, encoded or not."""
    kind = column.type
    while pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        kind = kind.value_type
    return pa.types.is_floating(kind)


def chain_tuples(
    tables: Sequence[pa.Table], links: Iterable[Iterable[Term]], by: Iterable[str] = ()
) -> list[tuple[int, ...]]:
    """The tuples of rows for which all terms hold between neighbours and `by` is equal in all."""
    equal = [(name, name) for name in by]
    tuples: list[tuple[int, ...]] = [(row,) for row in range(tables[0].num_rows)]
    for left, right, terms in zip(tables, tables[1:], links, strict=False):
        pairs = theta_pairs(left, right, terms, equal)
        tuples = [(*rows, j) for rows in tuples for i, j in pairs if rows[-1] == i]
    return tuples


def chain_rows(
    tables: Sequence[pa.Table], tuples: Iterable[tuple[int, ...]], by: Iterable[str] = ()
) -> list[tuple[Hashable, ...]]:
    """The output rows of `tuples`: `by` columns once, as those of the first table."""
    kept = [tables[0], *(table.drop_columns(list(by)) for table in tables[1:])]
    parts = [row_list(table) for table in kept]
    return [
        tuple(cell for part, row in zip(parts, rows, strict=True) for cell in part[row])
        for rows in tuples
    ]


def cells(column: pa.ChunkedArray | pa.Array) -> list[Hashable]:
    """The values of any column as hashable cells that are equal exactly if the values are."""
    if isinstance(column, pa.ChunkedArray):
        return [cell for chunk in column.chunks for cell in cells(chunk)]
    kind = column.type
    if isinstance(column, pa.ExtensionArray):
        return cells(column.storage)
    if pa.types.is_dictionary(kind):
        return _picked(cells(column.dictionary), column.indices.to_pylist())
    if pa.types.is_run_end_encoded(kind):
        values = cells(column.values)
        return [values[place] for place in _physical(column)]
    if pa.types.is_union(kind):
        return [(scalar.type_code, cells(_single(scalar.value))[0]) for scalar in column]
    if pa.types.is_struct(kind):
        fields = [cells(child) for child in column.flatten()]
        whole = list(zip(*fields, strict=True)) if fields else [()] * len(column)
        return [row if valid else None for row, valid in _with_validity(whole, column)]
    if pa.types.is_nested(kind):  # lists of every layout, maps
        return [None if not scalar.is_valid else tuple(cells(scalar.values)) for scalar in column]
    if pa.types.is_floating(kind):
        return [None if value is None else _bits(value) for value in column.to_pylist()]
    if _seconds(kind) is not None:
        return list(_raw(column))
    return column.to_pylist()


def _single(scalar: pa.Scalar) -> pa.Array:
    return pa.array([scalar.as_py()], scalar.type)


def _with_validity(values: Sequence[Any], array: pa.Array) -> Iterable[tuple[Any, bool]]:
    return zip(values, array.is_valid().to_pylist(), strict=True)


def _physical(array: pa.RunEndEncodedArray) -> list[int]:
    """Which run each row of a (possibly sliced) run-end encoded array lies in."""
    ends = array.run_ends.to_pylist()
    return [
        next(run for run, end in enumerate(ends) if row < end)
        for row in range(array.offset, array.offset + len(array))
    ]


def _bits(value: float) -> Hashable:
    """Tells -0.0 from 0.0; all NaN are one."""
    return "NaN" if value != value else struct.pack("<d", value)  # noqa: PLR0124


def row_list(table: pa.Table | pa.RecordBatch) -> list[tuple[Hashable, ...]]:
    """The rows of a table, in order."""
    columns = [cells(column) for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def rows(table: pa.Table | pa.RecordBatch) -> Counter[tuple[Hashable, ...]]:
    """The rows of a table as a multiset."""
    return Counter(row_list(table))


#: Rows by number, `None` for a side that is padded.
Outcome = list[tuple[int | None, int | None]]


def outcome(left: pa.Table, right: pa.Table, pairs: Pairs, how: str) -> Outcome:
    """What a join of kind `how` gives, from its matching pairs."""
    matched_left, matched_right = {i for i, _ in pairs}, {j for _, j in pairs}
    lefts: Outcome = [(i, None) for i in range(left.num_rows) if i not in matched_left]
    rights: Outcome = [(None, j) for j in range(right.num_rows) if j not in matched_right]
    return {
        "inner": [*pairs],
        "left": [*pairs, *lefts],
        "right": [*pairs, *rights],
        "full": [*pairs, *lefts, *rights],
        "semi": [(i, None) for i in sorted(matched_left)],
        "anti": lefts,
    }[how]


def pair_schema(
    left: pa.Schema,
    right: pa.Schema,
    by: Iterable[tuple[str, str]] = (),
    suffix: str = "_right",
    how: str = "inner",
) -> pa.Schema:
    """Left columns, then right ones without those of `by`; a name that is taken gets `suffix`."""
    dropped = {name for _, name in by}
    fields = list(left)
    for field in right if how not in ("semi", "anti") else ():
        if field.name not in dropped:
            taken = field.name in left.names
            fields.append(field.with_name(field.name + suffix) if taken else field)
    return pa.schema(fields)


def pair_rows(
    left: pa.Table,
    right: pa.Table,
    pairs: Outcome | Pairs,
    by: Iterable[tuple[str, str]] = (),
    how: str = "inner",
) -> list[tuple[Hashable, ...]]:
    """The output rows of `pairs`, in their order; equality columns come from whichever is there."""
    twins = dict(by)
    kept = [name for name in right.column_names if name not in set(twins.values())]
    lefts, rights = row_list(left), row_list(right.select(kept))
    others = {name: cells(right[twin]) for name, twin in twins.items()}
    names = left.column_names

    def left_part(i: int | None, j: int | None) -> tuple[Hashable, ...]:
        if i is not None:
            return lefts[i]
        return tuple(others[name][j] if name in others else None for name in names)

    def right_part(j: int | None) -> tuple[Hashable, ...]:
        if how in ("semi", "anti"):
            return ()
        return (None,) * len(kept) if j is None else rights[j]

    return [left_part(i, j) + right_part(j) for i, j in pairs]
