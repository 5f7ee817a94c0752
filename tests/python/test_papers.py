"""The Prefap paper's tables and claims through the public API; options of its algorithms."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pytest
from stocks import highs, needs_data

import dovetail as dt
from dovetail import Partitioning

ABLATION = {
    "full": Partitioning(),
    "no prefilter": Partitioning(prefilter=False),
    "no amalgamation": Partitioning(amalgamation=False),
    "neither": Partitioning(prefilter=False, amalgamation=False),
}
PAPER: list[Any] = ["prefap", "ftj", "cfs", "obt", "rbm"]


def products(result: dt.JoinResult) -> float:
    result.count()
    return result.metrics["cartesian_products"]


def ordered(full: float, no_prefilter: float, no_amalgamation: float, neither: float) -> bool:
    return full <= no_prefilter and full <= no_amalgamation <= neither


@needs_data
def test_table_3() -> None:
    jnj, msft = highs("JNJ"), highs("MSFT")
    assert dt.theta_join(jnj, msft, "high <= high").count() == 92_240
    published = [104_138, 105_132, 121_647, 134_449]
    found = []
    for options in ABLATION.values():
        result = dt.theta_join(jnj, msft, "high <= high", algorithm="prefap", options=options)
        assert result.count() == result.metrics["results"] == 92_240
        found.append(products(result))
    assert all(ours <= theirs for ours, theirs in zip(found, published, strict=True)), found
    assert ordered(*found)
    assert found[0] <= 1.1 * 92_240


@needs_data
def test_table_4() -> None:
    inputs = {name: highs(name) for name in ("FB", "ADBE", "IBM")}
    where = "high >= high < high"
    assert dt.theta_join(inputs["FB"], inputs["ADBE"], "high >= high").count() == 155_329
    assert dt.chain_join(inputs, where).count() == 72_355_085
    published = [74_923_241, 75_093_479, 79_619_026, 84_558_245]
    found = []
    for options in ABLATION.values():
        result = dt.chain_join(inputs, where, algorithm="prefap", options=options)
        assert result.count() == 72_355_085
        assert result.metrics["results"] == 155_329 + 72_355_085
        found.append(result.metrics["cartesian_products"])
    assert all(ours <= 1.01 * theirs for ours, theirs in zip(found, published, strict=True)), found
    assert ordered(*found)


def test_the_worked_example_of_section_3_3() -> None:
    """The amalgamated cuts 0, 1, 2.67, 3.67, 5.33, 6.33, 8, 9 show in what the partitions hold."""
    r, s = pa.table({"r": np.arange(10.0)}), pa.table({"s": np.arange(13.0)})
    options = Partitioning(partitions=3, repartition=False)
    text = dt.theta_join(r, s, "r > s", algorithm="prefap", options=options).explain()
    assert "1 filtered, 9 in 6 partitions: [1, 2] 2, [3, 3] 1, [4, 5] 2, [6, 6] 1, [7, 7] 1" in text
    assert "4 filtered, 9 in 7 partitions: [0, 0] 1, [1, 2] 2, [3, 3] 1, [4, 5] 2" in text


@pytest.fixture(scope="module")
def uniform() -> tuple[pa.Table, pa.Table]:
    """Figure 5: R in [20, 50], S in [10, 40], 1,000 rows each."""
    random = np.random.default_rng(5)
    return (
        pa.table({"r": random.uniform(20, 50, 1000)}),
        pa.table({"s": random.uniform(10, 40, 1000)}),
    )


def test_metrics_differ_as_the_paper_says(uniform: tuple[pa.Table, pa.Table]) -> None:
    results = {name: dt.theta_join(*uniform, "r <= s", algorithm=name) for name in PAPER}
    counts = {name: result.count() for name, result in results.items()}
    assert len(set(counts.values())) == 1
    metrics = {name: result.metrics for name, result in results.items()}
    found = [metrics[name]["cartesian_products"] for name in PAPER]
    assert counts["prefap"] < found[0] < found[1] < found[2] < found[3] == found[4] == 1_000_000
    for measured in metrics.values():
        assert measured["results"] == counts["prefap"]
        assert measured["seconds"] > 0
        assert 1 <= measured["load_balance_in"] <= 4
        assert 1 <= measured["load_balance_out"] <= 4
    assert metrics["prefap"]["load_balance_out"] <= metrics["ftj"]["load_balance_out"]


def test_options_do_what_they_say(uniform: tuple[pa.Table, pa.Table]) -> None:
    def run(algorithm: Any = "prefap", **options: Any) -> dict[str, float]:
        result = dt.theta_join(
            *uniform, "r <= s", algorithm=algorithm, options=Partitioning(**options)
        )
        result.count()
        return result.metrics

    full = run()
    more = [run(partitions=p)["cartesian_products"] for p in (1, 3, 5, 8, 10)]
    assert more == sorted(more, reverse=True)
    assert more[0] > more[-1] == full["cartesian_products"]
    assert run(prefilter=False)["filtered_left"] == 0 < full["filtered_left"]
    ftj = run("ftj")
    bare = run(prefilter=False, amalgamation=False)
    assert ftj["cartesian_products"] == bare["cartesian_products"] > full["cartesian_products"]
    parts = [run(repartition=how)["partitions_left"] for how in (False, "once", True)]
    assert parts[0] < parts[1] <= parts[2] == full["partitions_left"]
    # Values between 20 and 50: spans are rounded up to 1, 2, …
    assert run(ceiling=True)["partitions_left"] < full["partitions_left"]
    # A larger w makes larger averages, hence fewer oversized partitions.
    assert run(window=100_000)["partitions_left"] == parts[0]
    assert run("obt", seed=1)["load_balance_out"] != run("obt", seed=2)["load_balance_out"]


@pytest.mark.parametrize("algorithm", PAPER)
def test_options_change_no_rows(algorithm: Any) -> None:
    random = np.random.default_rng(1)
    left = pa.table({"a": random.integers(0, 20, 60), "l": range(60)})
    right = pa.table({"b": random.integers(5, 30, 50), "r": range(50)})
    expected = oracle.rows(dt.theta_join(left, right, "a >= b").to_arrow())
    for options in (
        Partitioning(partitions=1),
        Partitioning(partitions=7, prefilter=False, repartition="once", window=3),
        Partitioning(partitions=100, amalgamation=False, ceiling=True, seed=2**64 - 1),
    ):
        result = dt.theta_join(left, right, "a >= b", algorithm=algorithm, options=options)
        assert oracle.rows(result.to_arrow()) == expected


BAD: list[tuple[dict[str, Any], str]] = [
    ({"partitions": 0}, "partitions=0; expected a whole number from 1 on"),
    ({"partitions": -1}, "partitions=-1"),
    ({"partitions": 2.5}, "partitions=2.5"),
    ({"partitions": True}, "partitions=True"),
    ({"window": 0}, "window=0; expected a whole number from 1 on"),
    ({"window": "1000"}, "window='1000'"),
    ({"prefilter": 1}, "prefilter=1; expected True or False"),
    ({"amalgamation": None}, "amalgamation=None"),
    ({"ceiling": "yes"}, "ceiling='yes'"),
    ({"repartition": "twice"}, "repartition='twice'; expected True, False or 'once'"),
    ({"seed": -1}, "seed=-1"),
    ({"seed": 2**64}, "seed=18446744073709551616"),
]


@pytest.mark.parametrize(("options", "said"), BAD)
def test_bad_options(options: Any, said: str) -> None:
    with pytest.raises(dt.InvalidInputError, match=said):
        Partitioning(**options)


def test_options_belong_to_the_algorithms_that_partition() -> None:
    table = pa.table({"a": [1]})
    for algorithm in ("auto", "nested_loop"):
        with pytest.raises(dt.InvalidInputError, match=f'options= .*, not for .*"{algorithm}"'):
            dt.theta_join(table, table, "a < a", algorithm=algorithm, options=Partitioning())  # type: ignore[arg-type]
    with pytest.raises(dt.InvalidInputError, match="partitions=10001; expected 1 to 10000"):
        dt.theta_join(
            table, table, "a < a", algorithm="cfs", options=Partitioning(partitions=10_001)
        )
    with pytest.raises(dt.InvalidInputError, match=r"options=5; expected a dovetail\.Partitioning"):
        dt.theta_join(table, table, "a < a", options=5)  # type: ignore[arg-type]


def test_options_are_values() -> None:
    assert Partitioning(partitions=3) == Partitioning(partitions=3) != Partitioning()
    with pytest.raises(FrozenInstanceError):
        Partitioning().partitions = 5  # type: ignore[misc]
