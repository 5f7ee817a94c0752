"""What joins accept: anything that speaks the Arrow PyCapsule protocol, without copying it."""

from __future__ import annotations

import weakref
from typing import Any

from dovetail import _native
from dovetail.errors import InvalidInputError, UnsupportedError

# Readers that were given to a join. They can be read once, and the join holds what it read.
_given: weakref.WeakSet[Any] = weakref.WeakSet()


def read_pair(left: Any, right: Any) -> tuple[_native.Input, _native.Input]:
    """The two inputs of a join; an object that is both is read once."""
    first = read_input(left, "left")
    return first, first if right is left else read_input(right, "right")


def read_input(data: Any, label: str) -> _native.Input:
    """The input called ``label`` in messages; its rows are read when a join first needs them."""
    kind = type(data)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if _is_from("pyspark", kind):
        raise UnsupportedError(
            f"{label} input is a Spark DataFrame, which would be collected to the driver: "
            "use the function of the same name in dovetail.spark"
        )
    if _is_from("polars", kind, "LazyFrame"):
        raise UnsupportedError(f"{label} input is a Polars LazyFrame: call .collect() on it first")
    if _is_from("pyarrow", kind) and not hasattr(data, "__arrow_c_stream__"):
        data = _pyarrow_reader(data)
    if not (hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")):
        raise InvalidInputError(
            f"{label} input is a {name}; expected a table with __arrow_c_stream__, such as a "
            "pyarrow Table, a pandas or Polars DataFrame, or a DuckDB relation"
        )
    if _is_from("pyarrow", kind, "RecordBatchReader"):
        if data in _given:
            raise InvalidInputError(
                f"{label} input is a reader that was given to a join before, and a reader can be "
                "read once: read it into a table and use that, or use the first join's result again"
            )
        _given.add(data)
    try:
        opened = _native.Input(data, label)
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(
            f"{label} input, a {name}, is not a table of columns: {error}"
        ) from error
    if _is_from("duckdb", kind) or _is_from("_duckdb", kind):
        # A DuckDB connection has room for one open result: read it before the next one opens.
        opened.read()
    return opened


def _is_from(package: str, kind: type, name: str | None = None) -> bool:
    """Whether ``kind`` is, or derives from, a class of ``package``, found without importing it."""
    return any(
        base.__module__.partition(".")[0] == package and name in (None, base.__name__)
        for base in kind.__mro__
    )


def _pyarrow_reader(data: Any) -> Any:
    """Datasets and scanners do not speak the protocol themselves, but their readers do."""
    if hasattr(data, "scanner"):
        data = data.scanner()
    return data.to_reader() if hasattr(data, "to_reader") else data
