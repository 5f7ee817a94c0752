"""What takes long: outputs and inputs of real size."""

from __future__ import annotations

import resource

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import dovetail as dt

pytestmark = pytest.mark.slow


def test_a_quadratic_output_streams_in_little_memory() -> None:
    """Ninety million rows, three gigabytes of output, under 300 MB above the inputs."""
    random = np.random.default_rng(1)
    rows = 20_000
    left = pa.table({"a": random.uniform(20, 50, rows), "i": np.arange(rows)})
    right = pa.table({"b": random.uniform(10, 40, rows), "j": np.arange(rows)})
    result = dt.theta_join(left, right, "a <= b")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    streamed = sum(batch.num_rows for batch in result)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert (
        streamed
        == result.count()
        == np.less_equal.outer(left["a"].to_numpy(), right["b"].to_numpy()).sum()
    )
    assert (after - before) / 1024 < 300


@pytest.mark.parametrize(
    ("where", "sql"),
    [
        ("x > x2 and y < y2", "x > x2 AND y < y2"),
        ("overlaps(x, y, x2, y2)", "x < y2 AND y > x2"),
        (
            "left.k < right.k and left.x < right.x2 and left.y > right.x2",
            "x < x2 AND y > x2 AND l.k < r.k",
        ),
    ],
)
def test_agrees_with_duckdb_on_a_million_rows(where: str, sql: str) -> None:
    random = np.random.default_rng(7)

    def side(names: str) -> pa.Table:
        x, y = names.split()
        begin = random.uniform(0, 1e6, 1_000_000)
        keys = random.integers(0, 50, 1_000_000)
        return pa.table({x: begin, y: begin + random.uniform(0, 3, 1_000_000), "k": keys})

    left, right = side("x y"), side("x2 y2")
    ours = dt.theta_join(left, right, where).to_arrow()
    with duckdb.connect() as connection:
        connection.register("ours", ours)
        connection.register("lefts", left)
        connection.register("rights", right)
        theirs = (
            f"SELECT x, y, l.k, x2, y2, r.k AS k_right FROM lefts AS l JOIN rights AS r ON {sql}"
        )
        wrong = connection.execute(
            f"SELECT count(*) FROM ((FROM ours EXCEPT ALL {theirs}) "
            f"UNION ALL ({theirs} EXCEPT ALL FROM ours))"
        ).fetchone()
    assert ours.num_rows > 100_000
    assert wrong == (0,)
