"""The benchmarks against other engines run, on small tables, and notice a wrong answer."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

PEERS = Path(__file__).parents[2] / "benches" / "peers"


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a module that scripts in the folder of benchmarks import."""
    monkeypatch.syspath_prepend(PEERS)
    return import_module


@pytest.mark.parametrize("script", ["theta.py"])
def test_every_case_is_measured(script: str, tmp_path: Path) -> None:
    written = tmp_path / "report.json"
    subprocess.run([sys.executable, PEERS / script, "--quick", "--json", written], check=True)
    report = json.loads(written.read_text())
    left_out = {
        case["engine"]: case["left_out"]
        for case in report["cases"]
        if case["left_out"] and "not installed" not in case["left_out"]
    }
    assert left_out == {}
    assert {"dovetail", "duckdb", "polars", "datafusion"} <= set(report["versions"])
    assert report["goals"]


@pytest.mark.parametrize("how", ["table", "count"])
def test_a_wrong_answer_ends_the_benchmark(peers: Any, how: str, tmp_path: Path) -> None:
    measure = peers("measure")
    case = measure.Case(
        "ties",
        lambda rows: {"l": pa.table({"a": [1] * rows}), "r": pa.table({"b": [1, 2]})},
        1000,
        [
            measure.Formulation("dovetail", "dt.theta_join(l, r, 'a <= b')"),
            measure.Formulation("duckdb", "SELECT * FROM l JOIN r ON a < b"),
        ],
        how=how,
    )
    with measure.Measurement(tmp_path) as measurement, pytest.raises(SystemExit, match="different"):
        measurement.run(case)


def test_a_fingerprint_knows_values_not_types_or_order(peers: Any) -> None:
    fingerprint = peers("fingerprint").fingerprint
    table = pa.table(
        {
            "n": pa.array([1, 2, None, 2**60], pa.int64()),
            "f": [0.5, -0.0, None, 1e300],
            "s": ["a", "", None, "ab"],
            "t": pa.array([[1, 2], [], None, [2, 1, 0]], pa.list_(pa.int64())),
        }
    )
    same = fingerprint(table)
    other_types = pa.schema(
        [
            ("n", pa.int64()),
            ("f", pa.float64()),
            ("s", pa.string_view()),
            ("t", pa.large_list(pa.int32())),
        ]
    )
    assert fingerprint(table.take([3, 1, 0, 2])) == same
    assert fingerprint(table.select(["t", "f", "s", "n"])) == same
    assert fingerprint(table.cast(other_types)) == same
    assert fingerprint(pa.concat_tables([table[:1], table[1:]])) == same
    rows = table.to_pylist()
    changes: list[dict[str, Any]] = [
        {"n": 3},
        {"f": 0.25},
        {"s": "b"},
        {"s": None},
        {"t": [2, 1]},
        {"t": [1]},
        {"t": [1, 2, 0]},
        {"t": None},
    ]
    for change in changes:
        changed = pa.Table.from_pylist([{**rows[0], **change}, *rows[1:]], schema=table.schema)
        assert fingerprint(changed) != same, change
    swapped = [{**rows[0], "s": rows[3]["s"]}, *rows[1:3], {**rows[3], "s": rows[0]["s"]}]
    assert fingerprint(pa.Table.from_pylist(swapped, schema=table.schema)) != same
    assert fingerprint(pa.concat_tables([table, table[:1]])) != same
