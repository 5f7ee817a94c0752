"""Every cell of the support matrix in README.md is true on Spark."""

from __future__ import annotations

import matrix
import pytest
from matrix import CASES, LEFT, RIGHT, Case

import dovetail.spark as ds


@pytest.mark.parametrize("case", CASES, ids=str)
def test_spark(case: Case, spark) -> None:
    def on_spark(case: Case):
        left, right = spark.createDataFrame(LEFT), spark.createDataFrame(RIGHT)
        function = getattr(ds, case.function)
        return function(left, right, case.predicate, how=case.how, by=case.by).toArrow()

    matrix.check(case, "spark", on_spark)
