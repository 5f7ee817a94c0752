"""Theta joins of streams, window by window."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, Literal, SupportsIndex, get_args

import pyarrow as pa

from dovetail import _native
from dovetail._grammar import parse
from dovetail._resolve import check_equality_columns, pair_terms
from dovetail.errors import InvalidInputError
from dovetail.inputs import read_input
from dovetail.partitioning import Partitioning, check_options, check_positive
from dovetail.predicates import Predicate
from dovetail.theta import Columns, ThetaAlgorithm, check_text, equality_pairs
from dovetail.threads import thread_count
from dovetail.units import parse_bytes

#: One of the two streams.
InputName = Literal["left", "right"]


class ThetaJoin:
    """Joins two streams as the Prefap paper does: window i of one with window i of the other.

    Each window has ``window`` rows, in order of arrival; the last ones may be shorter, and windows
    without a counterpart match nothing. ``push`` takes rows and joins nothing, ``poll`` gives what
    is ready batch by batch, ``finish`` ends both streams and gives the rest:

    >>> import dovetail as dt, pyarrow as pa
    >>> join = dt.ThetaJoin("a < b", window=2)
    >>> join.push("left", pa.table({"a": [1, 5, 3]}))
    >>> join.push("right", pa.table({"b": [4, 2, 9, 9]}))
    >>> join.poll().to_pydict()
    {'a': [1, 1], 'b': [2, 4]}
    >>> join.poll() is None
    True
    >>> [batch.to_pydict() for batch in join.finish()]
    [{'a': [3, 3], 'b': [9, 9]}]
    >>> join.metrics["windows"], join.metrics["results"]
    (2, 4)

    The predicate, ``by``, ``suffix``, ``algorithm`` and its ``options`` are those of `theta_join`
    (``partitions`` is short for ``options=dt.Partitioning(partitions=…)``); joins are inner. The
    schemas are those of the first batches, or given as ``left_schema`` and ``right_schema``.

    Rows that wait, for the other stream or to be polled, take up ``memory`` (such as ``"64MB"``, by
    default without limit): a push beyond it takes nothing and is refused with a `BudgetError`. So
    after an error nothing is lost; a ``poll`` that was interrupted goes on behind the last batch.
    """

    def __init__(
        self,
        where: str | Predicate,
        *,
        window: int = 1000,
        partitions: int | None = None,
        by: Columns | None = None,
        left_by: Columns | None = None,
        right_by: Columns | None = None,
        suffix: str = "_right",
        algorithm: ThetaAlgorithm = "prefap",
        options: Partitioning | None = None,
        left_schema: pa.Schema | None = None,
        right_schema: pa.Schema | None = None,
        memory: str | SupportsIndex | None = None,
        workers: int | None = None,
    ) -> None:
        for option, value in (("suffix", suffix), ("algorithm", algorithm)):
            check_text(option, value)
        check_positive("window", window)
        check_options(options)
        if partitions is not None:
            if options is not None:
                raise InvalidInputError("give partitions=, or options=, not both")
            options = Partitioning(partitions=partitions)
        self._predicate = parse(where)
        self._by = equality_pairs(by, left_by, right_by)
        self._suffix = suffix
        self._algorithm = algorithm
        self._options = options
        self._join = _native.WindowJoin(
            window=window,
            memory=None if memory is None else parse_bytes(memory, option="memory"),
            threads=thread_count(workers),
        )
        # What came first of each stream, for its schema; gone when the join is described.
        self._first: dict[str, _native.Input] | None = {}
        self._beginning = threading.RLock()
        schemas: tuple[tuple[InputName, pa.Schema | None], ...]
        schemas = (("left", left_schema), ("right", right_schema))
        for name, schema in schemas:
            if schema is not None:
                if not isinstance(schema, pa.Schema):
                    raise InvalidInputError(f"{name}_schema={schema!r}; expected a pyarrow.Schema")
                self.push(name, schema.empty_table())

    def push(self, input: InputName, batch: Any) -> None:
        """Takes the next rows of one stream: a batch, or any table that a join takes."""
        if input not in get_args(InputName):
            raise InvalidInputError(f"unknown input {input!r}; expected 'left' or 'right'")
        rows = read_input(batch, input)
        if self._first is None:
            self._join.push(input, rows)
            return
        with self._beginning:
            self._describe(input, rows)
            self._join.push(input, rows)
            if self._first is not None:
                self._first.setdefault(input, rows)

    def poll(self) -> pa.RecordBatch | None:
        """The next batch of windows that are ready; ``None`` if there is none (yet)."""
        return self._join.poll()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Ends both streams, at once; the rest comes out batch by batch, here or from `poll`."""
        self._join.finish()
        return self._rest()

    def _rest(self) -> Iterator[pa.RecordBatch]:
        while (batch := self.poll()) is not None:
            yield batch

    @property
    def schema(self) -> pa.Schema | None:
        """The schema of the output; ``None`` until both streams have begun."""
        return self._join.schema

    @property
    def metrics(self) -> dict[str, float]:
        """What was counted over all windows that are done."""
        return self._join.metrics

    def _describe(self, name: str, rows: _native.Input) -> None:
        """Says what the join does once the schemas of both streams are known."""
        first = {name: rows, **(self._first or {})}
        if self._first is None or len(first) < 2:
            return
        left, right = first["left"], first["right"]
        check_equality_columns(self._by, left.names, right.names)
        self._join.describe(
            left,
            right,
            terms=pair_terms(self._predicate, left.names, right.names),
            by=self._by,
            suffix=self._suffix,
            algorithm=self._algorithm,
            options=self._options,
        )
        self._first = None
