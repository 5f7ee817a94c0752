"""Libraries for overlapping intervals: whole numbers, half-open, one chromosome.

They live in an environment of their own (requirements-intervals.txt): some need older versions of
the engines that they would be compared with. The only question is which columns are the intervals:
`x y x2 y2`. What a library wants beside that (frames of its own, a column of chromosomes) is made
before the clock starts, and columns that it adds are dropped where that costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa
from engines import THREADS

#: Where all intervals are.
PLACE = "chrom"


def pandas(table: pa.Table) -> Any:
    """A DataFrame whose texts and lists stay Arrow's, which is quicker than Python's objects."""
    arrow = import_module("pandas").ArrowDtype
    return table.to_pandas(
        types_mapper=lambda kind: None if pa.types.is_primitive(kind) else arrow(kind)
    )


class PolarsBio:
    """Rust over DataFusion; settings name its algorithm."""

    def load(self, tables: dict[str, pa.Table], settings: str) -> None:
        pl = import_module("polars")
        self._library = import_module("polars_bio")
        self._library.set_option("datafusion.execution.target_partitions", str(THREADS))
        self._algorithm = settings or "Coitrees"
        self._frames = []
        for table in tables.values():
            frame = pl.from_arrow(table).with_columns(pl.lit("1").alias(PLACE))
            frame.config_meta.set(coordinate_system_zero_based=True)
            self._frames.append(frame)

    def table(self, question: str) -> pa.Table:
        begin, end, begin2, end2 = question.split()
        left, right = self._frames
        pairs = self._library.overlap(
            left,
            right,
            cols1=[PLACE, begin, end],
            cols2=[PLACE, begin2, end2],
            suffixes=("", "_2"),
            algorithm=self._algorithm,
        )
        theirs = [name for name in right.columns if name != PLACE]
        wanted = [name for name in left.columns if name != PLACE] + [f"{n}_2" for n in theirs]
        pairs = pairs.select(wanted).rename({f"{name}_2": name for name in theirs})
        return pairs.collect().to_arrow()


class Ncls:
    """The nested containment list under pyranges, and Arrow's `take` for the rows."""

    def load(self, tables: dict[str, pa.Table], settings: str) -> None:
        self._index = import_module("ncls").NCLS
        self._tables = list(tables.values())

    def table(self, question: str) -> pa.Table:
        left, right = self._tables
        begin, end, begin2, end2 = question.split()
        index = self._index(right[begin2].to_numpy(), right[end2].to_numpy(), np.arange(len(right)))
        lefts, rights = index.all_overlaps_both(
            left[begin].to_numpy(), left[end].to_numpy(), np.arange(len(left))
        )
        taken = [left.take(pa.array(lefts)), right.take(pa.array(rights))]
        columns = [column for table in taken for column in table.columns]
        return pa.table(columns, names=[name for table in taken for name in table.column_names])


class PyRanges:
    """A join of two PyRanges; its answer is a pandas DataFrame."""

    def load(self, tables: dict[str, pa.Table], settings: str) -> None:
        self._library = import_module("pyranges")
        self._tables = list(tables.values())
        self._ranges: list[Any] = []

    def prepare(self, question: str) -> None:
        """Its columns have fixed names."""
        names = question.split()
        self._ranges = []
        for table, begin, end in zip(self._tables, names[::2], names[1::2], strict=True):
            frame = pandas(table).rename(columns={begin: "Start", end: "End"})
            frame["Chromosome"] = "1"
            self._ranges.append(self._library.PyRanges(frame))

    def table(self, question: str) -> pa.Table:
        left, right = self._ranges
        frame = left.join(right).df
        fixed = ("Start", "End", "Start_b", "End_b")
        names = dict(zip(fixed, question.split(), strict=True))
        frame = frame.rename(columns=names).drop(columns="Chromosome")
        return pa.Table.from_pandas(frame, preserve_index=False)


class Bioframe:
    """Pandas in, pandas out."""

    def load(self, tables: dict[str, pa.Table], settings: str) -> None:
        self._library = import_module("bioframe")
        self._frames = [pandas(table).assign(**{PLACE: "1"}) for table in tables.values()]

    def table(self, question: str) -> pa.Table:
        begin, end, begin2, end2 = question.split()
        left, right = self._frames
        frame = self._library.overlap(
            left,
            right,
            how="inner",
            cols1=(PLACE, begin, end),
            cols2=(PLACE, begin2, end2),
            suffixes=("", "_2"),
        )
        names = {f"{name}_2": name for name in right.columns if name != PLACE}
        frame = frame.drop(columns=[PLACE, f"{PLACE}_2"]).rename(columns=names)
        return pa.Table.from_pandas(frame, preserve_index=False)
