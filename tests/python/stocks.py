"""Daily high prices of stocks, from the folder that DOVETAIL_DATA names."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pytest

needs_data = pytest.mark.skipif(
    "DOVETAIL_DATA" not in os.environ,
    reason="DOVETAIL_DATA does not name the folder with the stocks' prices",
)


def highs(name: str) -> pa.Table:
    """The high of each of the 754 trading days up to 2019-12-31."""
    path = Path(os.environ["DOVETAIL_DATA"]) / "stocks" / f"{name}.csv"
    table = pyarrow.csv.read_csv(path)
    table = table.filter(pc.field("date") <= pa.scalar("2019-12-31").cast(pa.date32()))
    assert table.num_rows == 754
    return table.select(["high"])
