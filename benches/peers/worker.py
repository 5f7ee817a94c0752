"""The process of one engine: `python worker.py ENGINE`, a JSON message a line, an answer a line.

    {"do": "load", "tables": {"l": "l.arrow"}, "settings": ""}  -> {"version"}
    {"do": "run", "question": "...", "how": "table"}  -> {"seconds", "cpu", "rows", "peak"}
    {"do": "fingerprint"}                   of the last answer  -> {"fingerprint"}
    {"do": "save", "path": "answer.arrow"}  the last answer     -> {}
    {"do": "forget"}                        the last answer     -> {}

`how` is table, count, stream or value. `peak` is the resident memory in bytes above what there was
when the run began. Whatever an engine prints goes to standard error. An exception is an answer too:
{"error": "…"}. The parent ends the process when it waits in vain.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, TextIO

import pyarrow as pa
from engines import THREADS, start
from fingerprint import fingerprint

#: Of the machine's memory; an engine that wants more fails, and the machine lives.
MOST_MEMORY = 0.7


class Worker:
    """What the messages do."""

    def __init__(self, engine: str) -> None:
        self._name = engine
        self._engine = start(engine)
        self._prepared = ""
        self._answer: Any = None

    def load(self, tables: dict[str, str], settings: str) -> dict[str, Any]:
        self._answer = None
        self._prepared = ""
        self._engine.load({name: read(path) for name, path in tables.items()}, settings)
        return {"version": version("pyarrow" if self._name == "write-only" else self._name)}

    def run(self, question: str, how: str) -> dict[str, Any]:
        self._answer = None
        if hasattr(self._engine, "prepare") and self._prepared != question:
            self._engine.prepare(question)
            self._prepared = question
        ask: Callable[[str], Any] = getattr(self._engine, how)
        before = forget_peak()
        cpu, begun = time.process_time(), time.perf_counter()
        answer = ask(question)
        if how == "stream":
            answer = sum(batch.num_rows for batch in answer)
        seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
        peak = max(0, memory("VmHWM") - before)
        rows = answer if isinstance(answer, int) else answer.num_rows
        self._answer = answer
        return {"seconds": seconds, "cpu": cpu, "rows": rows, "peak": peak}

    def fingerprint(self) -> dict[str, Any]:
        if isinstance(self._answer, int):
            return {"fingerprint": ""}
        return {"fingerprint": fingerprint(self._answer, THREADS)}

    def save(self, path: str) -> dict[str, Any]:
        with pa.ipc.new_file(path, self._answer.schema) as file:
            file.write_table(self._answer)
        return {}

    def forget(self) -> dict[str, Any]:
        self._answer = None
        return {}


def read(path: str) -> pa.Table:
    """A table in memory, in one piece."""
    with pa.ipc.open_file(path) as file:
        return file.read_all().combine_chunks()


def memory(field: str) -> int:
    """A field of this process's status, in bytes."""
    with open("/proc/self/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith(field + ":"))
    return int(line.split()[1]) * 1024


def forget_peak() -> int:
    """Lets the peak of resident memory start anew, and gives what is resident now."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")
    return memory("VmRSS")


def limit_resources() -> None:
    """Two processors, whatever a library makes of its settings; not all of the memory."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
    pa.set_cpu_count(THREADS)
    most = int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * MOST_MEMORY)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def answers() -> TextIO:
    """Standard output, for answers only: everybody else's output goes to standard error."""
    ours = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return ours


def main() -> None:
    """Answers messages until there are no more."""
    out = answers()
    limit_resources()
    worker: Worker | None = None
    for line in sys.stdin:
        message = json.loads(line)
        try:
            worker = worker or Worker(sys.argv[1])
            answer = getattr(worker, message.pop("do"))(**message)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
