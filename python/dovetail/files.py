"""
Tables in files, for the command line: Parquet, CSV and Arrow IPC, chosen by extension.

Output goes to a temporary file beside its destination and takes its name when it is complete:
whatever happens, there is a whole file or none.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from dovetail.errors import InvalidInputError, SpillError

Format = Literal["parquet", "csv", "ipc"]

_FORMATS: dict[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".arrow": "ipc",
    ".ipc": "ipc",
    ".feather": "ipc",
}


def file_format(path: Path) -> Format:
    """
    The format that the name of ``path`` stands for.

    >>> file_format(Path("flights.csv"))
    'csv'
    """
    found = _FORMATS.get(path.suffix.lower())
    if found is None:
        known = " ".join(_FORMATS)
        raise InvalidInputError(
            f"{path}: unknown extension {path.suffix!r}; expected one of {known}"
        )
    return found


def read_table(path: Path) -> pa.Table:
    """The table in ``path``."""
    kind = file_format(path)
    try:
        if kind == "parquet":
            import pyarrow.parquet

            return pyarrow.parquet.read_table(path)
        if kind == "csv":
            import pyarrow.csv

            return pyarrow.csv.read_csv(path)
        with pa.memory_map(os.fspath(path)) as source:
            return pa.ipc.open_file(source).read_all()
    except (OSError, pa.ArrowException) as error:
        raise InvalidInputError(f"cannot read {path}: {error}") from error


def write_batches(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    """Writes ``batches`` to ``path``, all of them or nothing; returns the number of rows."""
    kind = file_format(path)
    rows = 0
    with _whole_file(path) as temporary, _writing(path), _writer(kind, temporary, schema) as writer:
        for batch in _reading(batches):
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


class _ReadError(Exception):
    """An error of the join, on its way past the handlers of write errors."""


def _reading(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    iterator = iter(batches)
    while True:
        try:
            batch = next(iterator)
        except StopIteration:
            return
        except (OSError, pa.ArrowException) as error:
            raise _ReadError from error
        yield batch


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except _ReadError as error:
        assert error.__cause__ is not None
        raise error.__cause__ from None
    except pa.ArrowNotImplementedError as error:
        raise InvalidInputError(f"cannot write {path}: {error}") from error
    except (OSError, pa.ArrowException) as error:
        raise SpillError(f"cannot write {path}: {error}") from error


@contextmanager
def _whole_file(path: Path) -> Iterator[Path]:
    """A temporary file that becomes ``path`` if the block ends well, and vanishes if not."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _writer(kind: Format, path: Path, schema: pa.Schema) -> Any:
    if kind == "parquet":
        import pyarrow.parquet

        return pyarrow.parquet.ParquetWriter(path, schema)
    if kind == "csv":
        import pyarrow.csv

        return pyarrow.csv.CSVWriter(path, schema)
    return pa.ipc.new_file(os.fspath(path), schema)
