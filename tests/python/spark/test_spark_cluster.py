"""The same rows on a standalone cluster of two workers, also when an executor is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_oracle_rows_on_two_workers(cluster, python_path, tmp_path):
    script = Path(__file__).with_name("cluster_joins.py")
    environment = {**os.environ, "PYTHONPATH": python_path, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, script, cluster, tmp_path],
        env=environment,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    assert "executor lost" in done.stdout
