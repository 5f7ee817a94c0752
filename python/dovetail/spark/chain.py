"""Chains of DataFrames: not offered, and said so."""

from __future__ import annotations

from typing import Any, NoReturn

from dovetail.errors import UnsupportedError


def chain_join(inputs: Any, where: Any, **options: Any) -> NoReturn:
    """Refuses: a chain needs all of its inputs in one process."""
    raise UnsupportedError(
        "chain_join is not offered on Spark: join two of the DataFrames with "
        "dovetail.spark.theta_join and the result with the next, or use dovetail.chain_join in a "
        "task that has all inputs"
    )
