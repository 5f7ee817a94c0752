"""Runs joins on the cluster named by the first argument; exits with 1 if a row is wrong.

A script of its own, because a process has room for one SparkContext. Its second argument is a
folder that driver and executors share.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from pathlib import Path

import oracle
import pyarrow as pa
from pyspark.sql import SparkSession

import dovetail.spark as ds

TERMS = [("a", "<", "b"), ("x", ">=", "y")]
WHERE = "a < b and x >= y"


def check(name, found, wanted):
    if found != wanted or not wanted:
        print(f"{name}: {found.total()} rows, expected {wanted.total()}")
        sys.exit(1)
    print(f"{name}: {found.total()} rows as expected", flush=True)


def expected(left, right, by=()):
    tables = left.toArrow(), right.toArrow()
    return Counter(oracle.pair_rows(*tables, oracle.theta_pairs(*tables, TERMS, by), by))


def executors(spark):
    """The processes that ran the tasks of a small job."""

    def parent(batches):
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"pid": [executor_pid()]})

    return {row.pid for row in spark.range(0, 16, 1, 16).mapInArrow(parent, "pid long").collect()}


def executor_pid():
    """The JVM above this Python worker: worker, daemon, executor."""
    daemon = os.getppid()
    status = Path(f"/proc/{daemon}/stat").read_text(encoding="ascii")
    return int(status.rpartition(")")[2].split()[1])


def lose_an_executor(marker):
    """A step behind the join that kills its executor once, in the middle of the job."""

    def passing(batches):
        from pyspark import TaskContext

        for batch in batches:
            if TaskContext.get().partitionId() == 9 and not os.path.exists(marker):
                with open(marker, "w"):
                    os.kill(executor_pid(), signal.SIGKILL)
            yield batch

    return passing


def attempts(spark, group):
    """How often the stage of a job group ran that ran most often."""
    tracker = spark.sparkContext.statusTracker()
    jobs = map(tracker.getJobInfo, tracker.getJobIdsForGroup(group))
    stages = [tracker.getStageInfo(stage) for job in jobs for stage in job.stageIds]
    return 1 + max(stage.currentAttemptId for stage in stages if stage is not None)


def main(address, folder):
    path = os.environ["PYTHONPATH"]
    spark = (
        SparkSession.builder.master(address)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.executor.memory", "512m")
        .config("spark.executorEnv.PYTHONPATH", path)
        .config("spark.cores.max", "2")
        # Workers on one machine would read the files of a lost executor, as if it were still there.
        .config("spark.shuffle.readHostLocalDisk", "false")
        .config("spark.shuffle.io.maxRetries", "0")
        .config("spark.scheduler.minRegisteredResourcesRatio", "1.0")
        .config("spark.scheduler.maxRegisteredResourcesWaitingTime", "60s")
        .config("spark.sql.shuffle.partitions", "8")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    ds.configure(spark)
    assert len(executors(spark)) == 2, "expected one executor per worker"

    def rows(numbers, key, value):
        real = f"if(id % 9 = 0, null, double(id * 7 % 23)) as {value}"
        return numbers.selectExpr("id % 5 as k", f"id % 17 as {key}", real)

    # Ten partitions after the shuffle by key, five or more of them empty.
    left = rows(spark.range(0, 240, 1, 8), "a", "x").repartition(10, "k")
    right = rows(spark.range(0, 220, 1, 9), "b", "y")

    joined = ds.theta_join(left, right, WHERE, partitions=8)
    check("inequalities", oracle.rows(joined.toArrow()), expected(left, right))
    keyed = ds.theta_join(left, right, WHERE, by="k", partitions=12)
    check("with equality", oracle.rows(keyed.toArrow()), expected(left, right, [("k", "k")]))
    nothing = ds.theta_join(left.where("a < 0"), right, WHERE, partitions=8)
    assert nothing.toArrow().num_rows == 0, "an empty side has pairs"

    # Its shuffle output is lost with the executor, so some map tasks run again for some cells.
    marker = str(Path(folder) / "executor-lost")
    spark.sparkContext.setJobGroup("lost", "an executor is lost")
    joined = ds.theta_join(left, right, WHERE, partitions=16)
    survived = joined.mapInArrow(lose_an_executor(marker), joined.schema)
    check("executor lost", oracle.rows(survived.toArrow()), expected(left, right))
    assert Path(marker).exists(), "no executor was lost"
    assert attempts(spark, "lost") > 1, "no stage ran again"
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
