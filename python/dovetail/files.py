"""Tables in files, for the command line: Parquet, CSV and Arrow IPC, chosen by extension.

Output goes to a temporary file beside its destination and takes its name when it is complete:
whatever happens, there is a whole file or none.
"""

from __future__ import annotations

import os
import secrets
import stat
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
    """The format that the name of ``path`` stands for.

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
    """The table in ``path``; for Parquet also a folder of files, such as Spark writes.

    Arrow IPC files are mapped, not copied. CSV is read as pyarrow does: types are inferred, and an
    empty field is null except in a column of text, where it is the empty string.
    """
    kind = file_format(path)
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
        if is_folder and kind != "parquet":
            raise InvalidInputError(f"cannot read {path}: it is a folder, expected a file")
        if kind == "parquet":
            import pyarrow.parquet

            # Folders called key=value are columns of a folder, not of a single file in one.
            partitioning = "hive" if is_folder else None
            return pyarrow.parquet.read_table(path, partitioning=partitioning)
        if kind == "csv":
            import pyarrow.csv

            return pyarrow.csv.read_csv(path)
        return _read_ipc(path)
    except (OSError, pa.ArrowException) as error:
        raise InvalidInputError(f"cannot read {path}: {_reason(error)}") from error


def _read_ipc(path: Path) -> pa.Table:
    """Files and streams share their extensions; a file begins with its name."""
    with pa.memory_map(os.fspath(path)) as source:
        is_file = source.read(6) == b"ARROW1"
        source.seek(0)
        reader = pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)
        return reader.read_all()


def check_output(path: Path) -> None:
    """Refuse what ``write_batches`` could not write to, before the work rather than after it."""
    file_format(path)
    if path.is_dir():
        raise InvalidInputError(f"cannot write {path}: it is a folder, expected a file")
    folder = path.parent
    if not folder.is_dir():
        raise InvalidInputError(f"cannot write {path}: there is no folder {folder}")


def write_batches(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    """Writes ``batches`` to ``path``, all of them or nothing; returns the number of rows."""
    kind = file_format(path)
    rows = 0
    with _writing(path), _whole_file(path) as temporary, _writer(kind, temporary, schema) as writer:
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
            raise _ReadError(error) from error
        yield batch


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except _ReadError as error:
        raise error.args[0] from None
    except pa.ArrowNotImplementedError as error:
        raise InvalidInputError(f"cannot write {path}: {_reason(error)}") from error
    except (OSError, pa.ArrowException) as error:
        raise SpillError(f"cannot write {path}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """What went wrong, on one line and without the path, which the message has already."""
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno)
    return " ".join(str(error).split())


@contextmanager
def _whole_file(path: Path) -> Iterator[Path]:
    """A temporary file that becomes ``path`` if the block ends well, and vanishes if not."""
    path = Path(os.path.realpath(path))  # a link stays, and what it points to is replaced
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
