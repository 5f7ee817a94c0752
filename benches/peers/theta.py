"""Theta joins against DuckDB, Polars and DataFusion: same data, same run, two threads each.

Every engine's output is checked (rows, and the sums of both sides' ids) before its time counts.
Run it: `python benches/peers/theta.py [--rows 300000] [--repeat 5] [--json out.json]`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

THREADS = 2
os.environ["POLARS_MAX_THREADS"] = str(THREADS)  # read when Polars is imported

import datafusion
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

import dovetail as dt

#: DataFusion joins by inequality with a nested loop: minutes from here on.
MOST_PAIRS = 10**9


@dataclass(frozen=True)
class Workload:
    """Two tables with ids `i` and `j`, and one question in each engine's words."""

    name: str
    left: pa.Table
    right: pa.Table
    where: str
    sql: str
    expressions: list[pl.Expr]


def workloads(rows: int) -> list[Workload]:
    """One inequality, two inequalities that few pairs satisfy, overlapping intervals."""
    random = np.random.default_rng(1)

    def table(number: str, **columns: np.ndarray) -> pa.Table:
        size = len(next(iter(columns.values())))
        return pa.table({**columns, number: np.arange(size)})

    def spans(first: str, second: str, number: str, longest: float) -> pa.Table:
        begin = random.uniform(0, 1e6, rows)
        return table(number, **{first: begin, second: begin + random.uniform(1, longest, rows)})

    a, b, x, y = (pl.col(name) for name in "abxy")
    x2, y2 = pl.col("x2"), pl.col("y2")
    return [
        Workload(
            "one inequality, 20,000 rows",
            table("i", a=random.uniform(20, 50, 20_000)),
            table("j", b=random.uniform(10, 40, 20_000)),
            "a <= b",
            "a <= b",
            [a <= b],
        ),
        Workload(
            f"two inequalities, {rows:,} rows",
            spans("x", "y", "i", 30),
            spans("x2", "y2", "j", 30),
            "x > x2 and y < y2",
            "x > x2 AND y < y2",
            [x > x2, y < y2],
        ),
        Workload(
            f"overlap, {rows:,} rows",
            spans("x", "y", "i", 20),
            spans("x2", "y2", "j", 20),
            "overlaps(x, y, x2, y2)",
            "x < y2 AND y > x2",
            [x < y2, y > x2],
        ),
    ]


def engines(work: Workload) -> dict[str, Callable[[], pa.Table]]:
    """How each engine answers, as an Arrow table."""
    connection = duckdb.connect(config={"threads": THREADS})
    connection.register("l", work.left)
    connection.register("r", work.right)
    left, right = pl.from_arrow(work.left), pl.from_arrow(work.right)
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(THREADS))
    context.register_record_batches("l", [work.left.to_batches()])
    context.register_record_batches("r", [work.right.to_batches()])
    query = f"SELECT * FROM l JOIN r ON {work.sql}"
    return {
        "dovetail": lambda: dt.theta_join(
            work.left, work.right, work.where, workers=THREADS
        ).to_arrow(),
        "duckdb": lambda: connection.sql(query).to_arrow_table(),
        "polars": lambda: left.join_where(right, *work.expressions).to_arrow(),
        "datafusion": lambda: context.sql(query).to_arrow_table(),
    }


def summary(table: pa.Table) -> tuple[int, int, int]:
    """What must agree: the number of rows, and the sums of the ids."""
    return table.num_rows, pc.sum(table["i"]).as_py(), pc.sum(table["j"]).as_py()


def main() -> None:
    """Measures and prints; the median of the repeats counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    modules = {"dovetail": dt, "duckdb": duckdb, "polars": pl, "datafusion": datafusion}
    versions = {name: module.__version__ for name, module in modules.items()}
    print(", ".join(f"{name} {version}" for name, version in versions.items()))
    results = []
    for work in workloads(options.rows):
        print(f"\n{work.name}")
        expected = None
        for name, run in engines(work).items():
            pairs = work.left.num_rows * work.right.num_rows
            if name == "datafusion" and pairs > MOST_PAIRS:
                print(f"  {name:12} left out: it compares all {pairs:,} pairs")
                continue
            seconds = []
            for _ in range(options.repeat):
                begun = time.perf_counter()
                output = run()
                seconds.append(time.perf_counter() - begun)
                found = summary(output)
                del output
                expected = expected or found
                if found != expected:
                    raise SystemExit(f"{name} gives {found}, expected {expected}")
            median = statistics.median(seconds)
            print(f"  {name:12} {median * 1000:10.1f} ms   {expected[0]:>12,} rows", flush=True)
            results.append({"workload": work.name, "engine": name, "seconds": median})
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(
                {"versions": versions, "threads": THREADS, "results": results}, file, indent=2
            )


if __name__ == "__main__":
    main()
