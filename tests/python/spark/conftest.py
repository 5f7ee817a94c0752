"""Spark for tests: an embedded session, and a standalone cluster of two workers on loopback."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession

import dovetail

HERE = Path(__file__).parent
PARTITIONS = 8


@pytest.fixture(scope="session")
def python_path() -> str:
    """Where Spark's Python workers find the package under test and the oracle."""
    ours = [str(Path(dovetail.__file__).parents[1]), str(HERE.parent)]
    return os.pathsep.join([*ours, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)


@pytest.fixture(scope="session")
def spark(python_path) -> SparkSession:
    if shutil.which("java") is None:
        pytest.fail("Spark needs Java 17 or later, and there is no java on the PATH")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = python_path
    session = (
        SparkSession.builder.master("local[2]")
        .appName("dovetail tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", PARTITIONS)
        .config("spark.sql.session.timeZone", "Europe/Berlin")
        .config("spark.sql.execution.arrow.pyspark.validateSchema.enabled", "true")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def cluster(python_path, tmp_path_factory):
    """The address of a standalone master with two workers of one core each."""
    folder = tmp_path_factory.mktemp("cluster")
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    master = ["Master", "-h", "127.0.0.1", "-p", str(port), "--webui-port", "0"]
    worker = ["Worker", "-h", "127.0.0.1", "-c", "1", "-m", "1g", "--webui-port", "0"]
    started: list[subprocess.Popen[bytes]] = []
    try:
        started.append(deploy(python_path, *master, log=folder / "master.log"))
        for name in ("one", "two"):
            arguments = [*worker, "-d", str(folder / name), address]
            started.append(deploy(python_path, *arguments, log=folder / f"{name}.log"))
        yield address
    finally:
        # Workers first: they stop their executors on the way out.
        for process in reversed(started):
            process.terminate()
        for process in started:
            stop(process)


def deploy(path: str, kind: str, *arguments: str, log: Path) -> subprocess.Popen[bytes]:
    """Starts a master or a worker; `spark-class` becomes the JVM, so its id is the JVM's."""
    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": path,
    }
    with log.open("wb") as out:
        return subprocess.Popen(
            [
                str(home / "bin" / "spark-class"),
                f"org.apache.spark.deploy.{kind.lower()}.{kind}",
                *arguments,
            ],
            env=environment,
            stdout=out,
            stderr=subprocess.STDOUT,
        )


def stop(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def spread(spark):
    """Makes a DataFrame of an Arrow table: eight partitions, five of them empty, one crowded."""

    def make(table: pa.Table) -> DataFrame:
        places = [(1, 1, 1, 1, 4, 1, 6, 1)[row % 8] for row in range(table.num_rows)]
        placed = table.append_column("#place", pa.array(places, "int32"))
        frame = spark.createDataFrame(placed).repartitionById(PARTITIONS, "#place")
        return frame.drop("#place")

    return make
