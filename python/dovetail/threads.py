"""How many threads a call may use."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from dovetail.errors import InvalidInputError

#: More threads than this are a slip of the pen.
MOST = 1024


def thread_count(workers: int | None) -> int:
    """``workers``, else DOVETAIL_THREADS, else a Spark task's cores, else the machine's.

    >>> thread_count(3)
    3
    """
    if workers is not None:
        if isinstance(workers, bool) or not isinstance(workers, int) or not 1 <= workers <= MOST:
            raise InvalidInputError(f"workers={workers!r}; expected a whole number, 1 to {MOST}")
        return workers
    own = _from_environment("DOVETAIL_THREADS", os.environ)
    if own is not None:
        return own
    if in_spark_task():
        # Spark tells libraries the task's cores this way; each task has a process of its own.
        return _from_environment("OMP_NUM_THREADS", os.environ) or 1
    return _machine()


def in_spark_task() -> bool:
    """Whether this process is a Spark worker at work, found out without importing pyspark."""
    module = sys.modules.get("pyspark.taskcontext")
    return module is not None and module.TaskContext.get() is not None


def _machine() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _from_environment(name: str, environment: Mapping[str, str]) -> int | None:
    text = environment.get(name)
    if text is None:
        return None
    if not text.isdecimal() or not 1 <= int(text) <= MOST:
        raise InvalidInputError(f"{name}={text!r}; expected a whole number, 1 to {MOST}")
    return int(text)
