"""Driver side: turns two DataFrames into one whose partitions hold all pairs of their rows.

The plan is a grid of cells (the 1-Bucket-Theta of Okcan and Riedewald, SIGMOD 2011): every left
row belongs to one of `rows` blocks, every right row to one of `columns`, and cell (i, j) joins left
block i with right block j::

                right block 0   1   2          a left row of block 1 is sent to the cells of
    left block 0           [0] [1] [2]         row 1: 3, 4, 5; a right row of block 2 to those
    left block 1           [3] [4] [5]         of column 2: 2 and 5; they meet in cell 5 only

So any predicate can be joined, cells are equally large whatever the skew of the keys, and one
shuffle moves `columns` copies of the left rows and `rows` copies of the right ones. Left and right
rows go through that shuffle together, as one union of tagged rows, so that a task can read the
cell's right rows first and stream the left rows past them: `cogroup` would need both sides and all
of the output in memory.

**Which block.** Each pair meets once if a row goes to all the cells of one block. Copies are made
in one go, so whatever the block, one attempt of a task keeps to that. But when an executor is lost
Spark runs again only the map tasks whose output is gone, for only those cells that still want it:
the second attempt has to choose the same block as the first, or pairs are lost and doubled (where
Spark notices, it fails the job). So the block is no random number and no row number (the order of
rows changes between attempts), but a hash of the row's values and of the number of the partition it
is in; that number spreads rows that are equal. Of the values only exact scalars count, where there
are any: a sum of floats or a collected list upstream may come out different the second time. What
remains: rows that are equal in all these columns and in one partition share a block; and inputs
have to give the same rows when they are computed again, as for any other shuffle by value.

**Types.** Inside the plan columns are called by number, so that names with dots, backticks or
another case do no harm, and types that lose a detail on the way through Arrow are cast there and
back. The output has the types of the input columns; all of it is nullable.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import PySparkAttributeError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everyone calls it
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_type

from dovetail.errors import InternalError, InvalidInputError, UnsupportedError
from dovetail.spark.worker import LEFT, TAG, CellJoin, join_cells

_EXACT: Final = (
    T.BooleanType,
    T.IntegralType,
    T.DecimalType,
    T.StringType,
    T.BinaryType,
    T.DateType,
    T.TimestampType,
    T.TimestampNTZType,
    T.TimeType,
)
_FLOATS: Final = (T.FloatType, T.DoubleType)
_PLAIN_COLLATION: Final = "UTF8_BINARY"
# More cells than that are a slip of the pen: tags have to fit 32 bits.
_MOST_CELLS: Final = 1_000_000


@dataclass(frozen=True)
class Grid:
    """`rows` blocks of the left input by `columns` blocks of the right one."""

    rows: int
    columns: int

    @property
    def cells(self) -> int:
        return self.rows * self.columns


def grid_for(cells: int) -> Grid:
    """The grid of the fewest cells from `cells` on whose longer side is at most twice the other.

    Rows are copied as often as the grid is long and wide, so it is best nearly square; the right
    input is cut the finer, because its blocks are held in memory.

    >>> [grid_for(cells) for cells in (1, 2, 7, 16)]  # doctest: +NORMALIZE_WHITESPACE
    [Grid(rows=1, columns=1), Grid(rows=1, columns=2), Grid(rows=2, columns=4),
     Grid(rows=4, columns=4)]
    """
    for size in count(cells):
        for rows in range(int(size**0.5), 0, -1):
            columns, rest = divmod(size, rows)
            if rest == 0 and columns <= 2 * rows:
                return Grid(rows, columns)
    raise AssertionError


def default_cells(spark: SparkSession) -> int:
    """As many cells as tasks run at a time; a Connect session does not know, so the shuffle's."""
    try:
        return max(1, int(spark.sparkContext.defaultParallelism))
    except PySparkAttributeError:
        return max(1, int(spark.conf.get("spark.sql.shuffle.partitions") or "1"))


def check_cells(partitions: object) -> None:
    """Refuses what is no number of cells."""
    whole = isinstance(partitions, int) and not isinstance(partitions, bool)
    if not whole or not 1 <= partitions <= _MOST_CELLS:  # type: ignore[operator]
        raise InvalidInputError(
            f"partitions={partitions!r}; expected a whole number from 1 to {_MOST_CELLS}"
        )


def check_frame(data: Any, label: str) -> DataFrame:
    """The input called `label` if it is a DataFrame that a batch plan can read."""
    if not isinstance(data, DataFrame):
        kind = type(data)
        name = f"{kind.__module__}.{kind.__qualname__}"
        what = "pandas-on-Spark: call .to_spark() on it"
        if not name.startswith("pyspark.pandas."):
            what = (
                "expected a Spark DataFrame: use the function of the same name in dovetail for "
                "local tables, or spark.createDataFrame"
            )
        raise InvalidInputError(f"{label} input is a {name}; {what}")
    if data.isStreaming:
        raise UnsupportedError(
            f"{label} input is a streaming DataFrame, of which this join would see one "
            "micro-batch at a time; it takes batch DataFrames"
        )
    return data


class Side:
    """One input as the plan sees it: its columns, and how they travel."""

    def __init__(self, frame: DataFrame, label: str) -> None:
        self.label = label
        self.fields: list[T.StructField] = list(frame.schema.fields)
        self.names = tuple(field.name for field in self.fields)
        self._frame = frame
        self._travel = [
            travelling_type(field.dataType, f"{label} column {field.name!r}")
            for field in self.fields
        ]

    def empty_table(self) -> pa.Table:
        """A local table of the same columns without rows, for the local join to check."""
        types = [to_arrow_type(data_type, timezone="UTC") for data_type in self._travel]
        fields = [pa.field(name, kind) for name, kind in zip(self.names, types, strict=True)]
        schema = pa.schema(fields)
        return pa.Table.from_batches([], schema)

    def check_key(self, name: str) -> None:
        """Refuses a key that Spark and dovetail would compare differently."""
        for field in self.fields:
            collation = getattr(field.dataType, "collation", _PLAIN_COLLATION)
            if field.name == name and collation != _PLAIN_COLLATION:
                raise UnsupportedError(
                    f"{self.label} column {name!r} has the collation {collation}; joins compare "
                    f"text by {_PLAIN_COLLATION}: cast the column to STRING to have that"
                )

    def tagged(self, grid: Grid) -> DataFrame:
        """Every row once per cell it belongs to: the tag, and the row in its side's struct."""
        is_left = self.label == LEFT
        numbered = self._frame.toDF(*map(str, range(len(self.fields))))
        columns = [
            F.col(str(place)) if kind == field.dataType else F.col(str(place)).cast(kind)
            for place, (field, kind) in enumerate(zip(self.fields, self._travel, strict=True))
        ]
        named = [column.alias(str(place)) for place, column in enumerate(columns)]
        rows = numbered.select(
            self._block(grid.rows if is_left else grid.columns).alias("block"),
            F.struct(*named).alias(self.label),
        )
        block = F.col("block")
        if is_left:
            first, last, step = block * grid.columns, (block + 1) * grid.columns - 1, 1
        else:
            first, last, step = block, block + (grid.rows - 1) * grid.columns, grid.columns
        copies = rows.select(
            F.explode(F.sequence(first, last, F.lit(step))).alias("cell"), F.col(self.label)
        )
        # The other side's struct is missing; `unionByName` makes it null.
        return copies.select((F.col("cell") * 2 + int(is_left)).alias(TAG), F.col(self.label))

    def _block(self, blocks: int) -> Column:
        """Which of `blocks` a row belongs to; see the module's text."""
        if blocks == 1:
            return F.lit(0)
        hashed = self._columns_of(_EXACT) or self._columns_of(_FLOATS)
        digest = F.xxhash64(F.spark_partition_id(), *hashed)
        return F.pmod(digest, F.lit(blocks)).cast("int")

    def _columns_of(self, kinds: tuple[type[T.DataType], ...]) -> list[Column]:
        numbered = enumerate(self.fields)
        return [F.col(str(place)) for place, field in numbered if isinstance(field.dataType, kinds)]


def travelling_type(data_type: T.DataType, label: str) -> T.DataType:
    """The type that a column has on its way through Arrow; `label` names it in errors."""
    if isinstance(data_type, T.StringType):
        return T.StringType()  # Arrow knows no collation
    if isinstance(data_type, T.DayTimeIntervalType):
        return T.DayTimeIntervalType()  # nor which fields an interval shows
    if isinstance(data_type, (*_EXACT, *_FLOATS, T.NullType)):
        return data_type
    if isinstance(data_type, T.ArrayType):
        element = travelling_type(data_type.elementType, label)
        return T.ArrayType(element, data_type.containsNull)
    if isinstance(data_type, T.MapType):
        key = travelling_type(data_type.keyType, label)
        value = travelling_type(data_type.valueType, label)
        return T.MapType(key, value, data_type.valueContainsNull)
    if isinstance(data_type, T.StructType):
        if len(set(data_type.names)) < len(data_type.names):
            raise UnsupportedError(f"{label} has a struct with two fields of one name")
        fields = [
            T.StructField(field.name, travelling_type(field.dataType, label), field.nullable)
            for field in data_type.fields
        ]
        return T.StructType(fields)
    raise UnsupportedError(
        f"{label} is of type {data_type.simpleString()}, which cannot travel through a Spark task "
        "as Arrow: cast or drop it before the join"
    )


def join_grid(
    left: Side,
    right: Side,
    join: CellJoin,
    output: list[tuple[str, T.StructField]],
    grid: Grid,
) -> DataFrame:
    """Joins every cell of the grid; `output` are the names and origins of the output columns."""
    tagged = left.tagged(grid).unionByName(right.tagged(grid), allowMissingColumns=True)
    placed = tagged.repartitionById(grid.cells, F.shiftright(TAG, 1))
    schema = T.StructType(
        [
            T.StructField(number, travelling_type(field.dataType, name))
            for number, (name, field) in zip(join.output_names, output, strict=True)
        ]
    )
    task = partial(join_cells, join=join)
    task.__name__ = "theta_join"  # type: ignore[attr-defined]  # what Spark's plans show
    joined = placed.sortWithinPartitions(TAG).mapInArrow(task, schema)
    return joined.select(
        [
            F.col(travelled.name).cast(field.dataType).alias(name, metadata=field.metadata)
            if travelled.dataType != field.dataType
            else F.col(travelled.name).alias(name, metadata=field.metadata)
            for travelled, (name, field) in zip(schema.fields, output, strict=True)
        ]
    )


def origins(
    left: Side, right: Side, by: list[tuple[str, str]], names: list[str]
) -> list[tuple[str, T.StructField]]:
    """Each output column's name and the input column it comes from, in order."""
    once = {name for _, name in by}
    fields = left.fields + [field for field in right.fields if field.name not in once]
    if len(fields) != len(names):
        raise InternalError(f"{len(names)} output columns from {len(fields)} input columns")
    return list(zip(names, fields, strict=True))
