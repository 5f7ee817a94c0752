"""Executor side: joins the cells of one partition, Arrow batches in, Arrow batches out.

A partition holds the rows of one or more cells, tagged and sorted by `planning`: cell by cell, and
in each cell the right rows before the left ones. The right rows of a cell are held; its left rows
stream past them in chunks no larger than what is held anyway, and output leaves batch by batch. So
a task needs memory for the right rows of one cell, about as much again for left rows, and an
output batch per thread, however many pairs match.

The functions here are module level and get plain values only: they are pickled by name, and a
worker process that Spark reuses brings nothing along from one task to the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from dovetail import _native
from dovetail._resolve import PairTerm
from dovetail.errors import InternalError
from dovetail.inputs import read_input
from dovetail.result import JoinResult

# The columns of a tagged row: `tag` is twice the cell, plus one for left rows.
TAG: Final = "tag"
LEFT: Final = "left"
RIGHT: Final = "right"

# The least that a chunk of left rows may grow to. Each chunk encodes the keys of the right rows
# again, so it also may grow to as many rows, or bytes, as there are on the right.
_CHUNK_ROWS: Final = 1 << 16
_CHUNK_BYTES: Final = 1 << 26


@dataclass(frozen=True)
class CellJoin:
    """What a task has to know to join the rows of a cell."""

    left_names: tuple[str, ...]
    right_names: tuple[str, ...]
    output_names: tuple[str, ...]
    terms: tuple[PairTerm, ...]
    by: tuple[tuple[str, str], ...]
    how: str
    suffix: str
    algorithm: str
    workers: int | None

    def run(self, left: pa.Table, right: _native.Input) -> Iterator[pa.RecordBatch]:
        """The pairs of these rows; columns are called as the plan has them, not as the user."""
        join = _native.theta_join(
            read_input(left, LEFT),
            right,
            terms=list(self.terms),
            by=list(self.by),
            how=self.how,
            suffix=self.suffix,
            algorithm=self.algorithm,
        )
        for batch in JoinResult(join, "theta_join", workers=self.workers, progress=False):
            yield pa.RecordBatch.from_arrays(batch.columns, names=list(self.output_names))


def join_cells(batches: Iterator[pa.RecordBatch], join: CellJoin) -> Iterator[pa.RecordBatch]:
    """Joins every cell of a partition of tagged rows; for `mapInArrow`."""
    cell = _Cell(-1, join)
    for tag, rows in _runs(batches):
        number, is_left = divmod(tag, 2)
        if number != cell.number:
            yield from cell.finish()
            cell = _Cell(number, join)
        if is_left:
            yield from cell.add_left(rows)
        else:
            cell.add_right(rows)
    yield from cell.finish()


class _Cell:
    """The rows of one cell, as far as they are in memory."""

    def __init__(self, number: int, join: CellJoin) -> None:
        self.number = number
        self._join = join
        self._left = _Rows(LEFT, join.left_names)
        self._right = _Rows(RIGHT, join.right_names)
        self._held: _native.Input | None = None

    def add_right(self, rows: pa.RecordBatch) -> None:
        self._right.add(rows)

    def add_left(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if self._right.count == 0:
            return
        self._left.add(rows)
        if self._left.count >= max(_CHUNK_ROWS, self._right.count) or self._left.bytes >= max(
            _CHUNK_BYTES, self._right.bytes
        ):
            yield from self.finish()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Joins the left rows that wait."""
        if self._left.count == 0:
            return
        if self._held is None:
            self._held = read_input(self._right.table(), RIGHT)
        left, self._left = self._left, _Rows(LEFT, self._join.left_names)
        yield from self._join.run(left.table(), self._held)


class _Rows:
    """Rows of one side, taken out of their tagged form without copying."""

    def __init__(self, side: str, names: tuple[str, ...]) -> None:
        self._side = side
        self._names = list(names)
        self._batches: list[pa.RecordBatch] = []
        self.count = 0
        self.bytes = 0

    def add(self, tagged: pa.RecordBatch) -> None:
        struct: Any = tagged.column(self._side)
        batch = pa.RecordBatch.from_arrays(struct.flatten(), names=self._names)
        self._batches.append(batch)
        self.count += batch.num_rows
        self.bytes += batch.nbytes

    def table(self) -> pa.Table:
        return pa.Table.from_batches(self._batches)


def _runs(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Cuts batches, sorted by tag, where the tag changes."""
    before = -1
    for batch in batches:
        if batch.num_rows == 0:
            continue
        runs: Any = pc.call_function("run_end_encode", [batch.column(TAG)])
        begin = 0
        for tag, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            if tag < before:
                raise InternalError(f"rows of tag {tag} came after those of tag {before}")
            yield tag, batch.slice(begin, end - begin)
            begin, before = end, tag
