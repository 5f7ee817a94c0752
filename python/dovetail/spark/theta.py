"""Theta joins of DataFrames."""

from __future__ import annotations

from pyspark.sql import DataFrame

import dovetail.theta as local
from dovetail._grammar import parse
from dovetail._resolve import pair_terms
from dovetail.errors import UnsupportedError
from dovetail.predicates import Predicate
from dovetail.spark.planning import (
    Side,
    check_cells,
    check_frame,
    default_cells,
    grid_for,
    join_grid,
    origins,
)
from dovetail.spark.session import warn_once_if_slow
from dovetail.spark.worker import CellJoin
from dovetail.theta import Columns, How, ThetaAlgorithm


def theta_join(
    left: DataFrame,
    right: DataFrame,
    where: str | Predicate,
    *,
    by: Columns | None = None,
    left_by: Columns | None = None,
    right_by: Columns | None = None,
    how: How = "inner",
    suffix: str = "_right",
    algorithm: ThetaAlgorithm = "auto",
    workers: int | None = None,
    partitions: int | None = None,
) -> DataFrame:
    """All pairs of a left and a right row for which ``where`` holds, as a DataFrame.

    The arguments, the rows and the errors are those of `dovetail.theta_join`, for inner joins;
    the order of rows is Spark's. The call checks them and plans: no job runs before the result
    is used. ::

        ds.theta_join(phones, laptops, "price > price", by="city").write.parquet("pairs")

    ``partitions`` is the least number of cells, and so of tasks, that the pairs are divided into;
    by default as many as tasks run at a time. Each task holds its share of the right input in
    memory: give more where that is too much, at the price of more copies (the left input is
    shuffled about √partitions times, and so is the right). ``workers`` is the number of threads
    in each task, by default the cores that Spark gave it.
    """
    left_side = Side(check_frame(left, "left"), "left")
    right_side = Side(check_frame(right, "right"), "right")
    if partitions is not None:
        check_cells(partitions)
    described = local.theta_join(
        left_side.empty_table(),
        right_side.empty_table(),
        where,
        by=by,
        left_by=left_by,
        right_by=right_by,
        how=how,
        suffix=suffix,
        algorithm=algorithm,
        workers=workers,
    )
    if how != "inner" or algorithm not in ("auto", "nested_loop"):
        raise UnsupportedError(
            f"dovetail.spark.theta_join offers how='inner' with algorithm 'auto' or 'nested_loop', "
            f"not how={how!r} with algorithm={algorithm!r}"
        )
    terms = pair_terms(parse(where), left_side.names, right_side.names)
    pairs = local.equality_pairs(by, left_by, right_by)
    for left_name, right_name in [(term[0], term[2]) for term in terms] + pairs:
        left_side.check_key(left_name)
        right_side.check_key(right_name)
    warn_once_if_slow(left.sparkSession)
    output = origins(left_side, right_side, pairs, described.schema.names)
    join = CellJoin(
        left_names=left_side.names,
        right_names=right_side.names,
        output_names=tuple(map(str, range(len(output)))),
        terms=tuple(terms),
        by=tuple(pairs),
        how=how,
        suffix=suffix,
        algorithm=algorithm,
        workers=workers,
    )
    grid = grid_for(partitions or default_cells(left.sparkSession))
    return join_grid(left_side, right_side, join, output, grid)
