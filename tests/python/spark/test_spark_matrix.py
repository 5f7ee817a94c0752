"""Every cell of the support matrix in README.md is true on Spark."""

from __future__ import annotations

import matrix
import pytest
from matrix import CASES, Case

import dovetail.spark as ds


@pytest.mark.parametrize("case", CASES, ids=str)
def test_spark(case: Case, spark) -> None:
    def on_spark(case: Case):
        return case.run(ds, [spark.createDataFrame(table) for table in case.inputs()]).toArrow()

    matrix.check(case, "spark", on_spark)
