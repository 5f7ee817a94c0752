"""The session settings that Arrow in Spark's tasks wants; only `configure` ever sets them."""

from __future__ import annotations

import logging
from typing import Final

from pyspark.sql import SparkSession

_log = logging.getLogger("dovetail.spark")

_MAX_BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
_MAX_RECORDS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
_VALIDATE: Final = "spark.sql.execution.arrow.pyspark.validateSchema.enabled"

# At any other value the JVM adds up the size of the batch again after every row: measured, it
# then hands rows over five times more slowly.
_NO_BYTE_LIMIT: Final = "2147483647"
# With no limit in bytes the rows are what bounds a batch.
_RECORDS: Final = 10_000
_MOST_RECORDS: Final = 100_000

_warned = False


def configure(spark: SparkSession) -> dict[str, tuple[str, str]]:
    """Sets what Arrow in Spark's tasks wants; gives the settings changed, (before, after) each.

    - ``spark.sql.execution.arrow.maxBytesPerBatch`` = 2147483647: handing rows to a task's Python
      side is about five times faster than with the default.
    - ``spark.sql.execution.arrow.maxRecordsPerBatch`` bounds batches instead: kept where it is
      between 1 and 100,000, else 10,000.
    - ``spark.sql.execution.arrow.pyspark.validateSchema.enabled`` = true: what a Python function
      gives back is checked against the schema that was promised.

    They hold for the whole session and so for your own Arrow functions too; to undo them set each
    to what it was before.
    """
    records = spark.conf.get(_MAX_RECORDS) or "0"
    bounded = 1 <= int(records) <= _MOST_RECORDS
    wanted = {
        _MAX_BYTES: _NO_BYTE_LIMIT,
        _MAX_RECORDS: records if bounded else str(_RECORDS),
        _VALIDATE: "true",
    }
    changed = {}
    for name, after in wanted.items():
        before = spark.conf.get(name) or ""
        if not _is(before, after):
            spark.conf.set(name, after)
            changed[name] = (before, after)
    return changed


def warn_once_if_slow(spark: SparkSession) -> None:
    """Says once per process that `configure` would make the session's joins faster."""
    global _warned  # noqa: PLW0603 - once per process is what it says
    if _warned or _is(spark.conf.get(_MAX_BYTES) or "", _NO_BYTE_LIMIT):
        return
    _warned = True
    _log.warning(
        "%s is not %s, which makes handing rows to Spark's Python tasks several times slower: "
        "dovetail.spark.configure(spark) sets it",
        _MAX_BYTES,
        _NO_BYTE_LIMIT,
    )


def _is(value: str, wanted: str) -> bool:
    """Whether a setting has the value; Spark gives sizes back with a unit."""
    return value.lower() in (wanted, wanted + "b")
