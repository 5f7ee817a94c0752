"""The result of every join: lazy, iterable, exportable, countable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dovetail.errors import InvalidInputError
from dovetail.progress import Progress, check_progress, progress_callback
from dovetail.threads import thread_count

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from dovetail import _native

#: More rows than a run can give: a limit beyond it is none.
_MOST_ROWS = 2**63


class JoinResult:
    """A join that was checked but has not run: each use of it runs it, batch by batch.

    Pass it to any library that reads Arrow streams, loop over it, or convert it:

    >>> import dovetail as dt, pyarrow as pa
    >>> phones = pa.table({"phone": ["x", "y"], "price": [300, 900]})
    >>> laptops = pa.table({"laptop": ["u", "v"], "price": [500, 800]})
    >>> pairs = dt.theta_join(phones, laptops, "price > price")
    >>> pairs.count()
    2
    >>> pairs.to_arrow().to_pydict()["laptop"]
    ['u', 'v']

    ``progress=`` of the join shows in `count`, `to_arrow` and its kin, and in loops; another
    library that reads the stream has its own.
    """

    def __init__(
        self, join: _native.Join, title: str, *, workers: int | None, progress: Progress
    ) -> None:
        self._join = join
        self._title = title
        check_progress(progress)
        self._threads = thread_count(workers)
        self._progress = progress
        self._last_run: _native.Stream | dict[str, float] | None = None

    @property
    def schema(self) -> pa.Schema:
        """The schema of the output; known before anything ran."""
        return self._join.schema

    @property
    def metrics(self) -> dict[str, float]:
        """What the last run counted; empty before the first."""
        if self._last_run is None:
            return {}
        return self._last_run if isinstance(self._last_run, dict) else self._last_run.metrics

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Batches as they are made; leaving the loop stops the work."""
        with progress_callback(self._progress, self._title) as progress:
            stream = self._run(progress=progress)
            try:
                while (batch := stream.next_batch()) is not None:
                    yield batch
            finally:
                stream.close()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The output as an Arrow stream, for any library that reads those.

        A ``requested_schema`` may ask for other types; a value that one cannot hold is an error.
        """
        capsule = self._run().__arrow_c_stream__()
        if requested_schema is None:
            return capsule
        reader: Any = pa.RecordBatchReader._import_from_c_capsule(capsule)
        return reader.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """The whole output as a pyarrow Table."""
        with progress_callback(self._progress, self._title) as progress:
            batches = self._run(progress=progress).read_all()
        return pa.Table.from_batches(batches, self.schema)

    def to_pandas(self) -> pd.DataFrame:
        """The whole output as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """The whole output as a Polars DataFrame."""
        import polars as pl

        frame = pl.from_arrow(self.to_arrow())
        assert isinstance(frame, pl.DataFrame)
        return frame

    def head(self, n: int = 10) -> pa.Table:
        """The first ``n`` rows; the join stops when it has them."""
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:
            raise InvalidInputError(f"head({n!r}): expected a whole number from 0 on")
        stream = self._run(limit=min(n, _MOST_ROWS))
        batches = stream.read_all()
        stream.close()
        return pa.Table.from_batches(batches, self.schema)

    def count(self) -> int:
        """The number of output rows; none of them is built."""
        with progress_callback(self._progress, self._title) as progress:
            rows, self._last_run = self._join.count(threads=self._threads, progress=progress)
        return rows

    def explain(self) -> str:
        """What a run does and how much work it is, for people to read."""
        return self._join.explain(threads=self._threads)

    def __repr__(self) -> str:
        columns = "".join(f"\n  {field.name}: {field.type}" for field in self.schema)
        state = "not run yet"
        if metrics := self.metrics:
            state = f"last run: {metrics['rows_out']:,} rows in {metrics['seconds']:.3g} s"
        return (
            f"<{self._title}>{columns}\n"
            f"{state}; .head() shows rows, .to_arrow() and .to_pandas() give all of them"
        )

    def _run(self, *, limit: int | None = None, progress: Any = None) -> _native.Stream:
        stream = self._join.stream(threads=self._threads, limit=limit, progress=progress)
        self._last_run = stream
        return stream
