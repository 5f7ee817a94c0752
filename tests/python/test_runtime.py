"""Ctrl-C, the GIL, forks, threads, logging and optional packages, mostly in processes of their own.

Clocks appear only as generous bounds: a hang is a failure, a slow machine is not.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dovetail as dt
from dovetail import threads

LONGEST = 60
"""Seconds after which a process counts as hung."""

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def python(
    code: str, *, check: bool = True, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs `code` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        check=check,
        capture_output=True,
        text=True,
        timeout=LONGEST,
        env={**os.environ, **environment},
    )


# --- Ctrl-C ---------------------------------------------------------------------------------------

HOURS = """
    import pyarrow as pa, numpy as np, dovetail as dt
    numbers = np.arange(2_000_000)
    left, right = pa.table({{"x": numbers}}), pa.table({{"y": numbers}})
    result = dt.theta_join(
        left, right, "{where}", workers={workers}, algorithm="nested_loop"
    )
    result.explain()
    print("begun", flush=True)
    try:
        {use}
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    else:
        print("finished", flush=True)
    {after}
"""
NEVER = "x < y and x > y"  # compares for hours and gives nothing
ALWAYS = "x != y"  # gives batches for hours

USES = {
    "count": ("result.count()", ALWAYS),
    "to_arrow": ("result.to_arrow()", NEVER),
    "head": ("result.head(5)", NEVER),
    "iteration without a batch": ("list(result)", NEVER),
    "iteration": ("for batch in result: pass", ALWAYS),
}

READERS = {
    "pyarrow": ("pa.RecordBatchReader.from_stream(result).read_all()", NEVER),
    "pyarrow, batch by batch": (
        "for batch in pa.RecordBatchReader.from_stream(result): pass",
        ALWAYS,
    ),
    "pyarrow.table": ("pa.table(result)", NEVER),
    "polars": ("polars.DataFrame(result)", NEVER),
}
"""Their calls know nothing of Python's signals: they fail with an error of their own first."""


def interrupted(code: str) -> tuple[str, str, float]:
    """Sends SIGINT to `code` once it prints a line; gives its output and how long it went on."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    watchdog = threading.Timer(LONGEST, process.kill)
    watchdog.start()
    try:
        assert process.stdout.readline() == "begun\n", process.stderr.read()
        # Not at once: let it get into the work. Whichever moment it is, the test must hold.
        pause = threading.Event()
        pause.wait(0.1)
        process.send_signal(signal.SIGINT)
        begun = os.times().elapsed
        first = process.stdout.readline()
        waited = os.times().elapsed - begun
        rest, errors = process.stdout.read(), process.stderr.read()
        process.wait()
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate()
    assert process.returncode == 0, errors
    return first + rest, errors, waited


@pytest.mark.parametrize(
    ("use", "workers"), [("count", 1), ("iteration", 1), *((use, 2) for use in USES)]
)
def test_ctrl_c(use: str, workers: int) -> None:
    statement, where = USES[use]
    code = HOURS.format(where=where, workers=workers, use=statement, after="")
    output, errors, waited = interrupted(code)
    assert output == "interrupted\n", (output, errors)
    assert waited < 5


@pytest.mark.parametrize("reader", READERS)
def test_ctrl_c_while_another_library_reads(reader: str) -> None:
    """KeyboardInterrupt is never lost: it comes at the next call after the library's own error."""
    statement, where = READERS[reader]
    code = f"""
        import pyarrow as pa, numpy as np, polars, dovetail as dt
        numbers = np.arange(2_000_000)
        left, right = pa.table({{"x": numbers}}), pa.table({{"y": numbers}})
        result = dt.theta_join(left, right, "{where}", algorithm="nested_loop")
        result.explain()
        print("begun", flush=True)
        try:
            try:
                {statement}
            except Exception as error:
                assert "cancelled" in str(error), error
                for _ in range(10):
                    (lambda: None)()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    output, errors, waited = interrupted(code)
    assert output == "interrupted\n", errors
    assert waited < 5


def test_a_result_works_after_ctrl_c() -> None:
    code = HOURS.format(
        where=NEVER, workers=2, use="result.count()", after="print(result.head(0).num_rows)"
    )
    assert interrupted(code)[0] == "interrupted\n0\n"


def test_ctrl_c_while_an_input_is_read() -> None:
    """The source is Python code: its KeyboardInterrupt is not a mistake in the input."""
    code = """
        import time, pyarrow as pa, dovetail as dt
        left = pa.table({"x": [1]})
        def batches():
            print("begun", flush=True)
            while True:
                time.sleep(0.01)
                yield left.to_batches()[0]
        stream = pa.RecordBatchReader.from_batches(left.schema, batches())
        try:
            dt.theta_join(stream, pa.table({"y": [2]}), "x < y").count()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    output, errors, waited = interrupted(code)
    assert output == "interrupted\n", errors
    assert waited < 5


def test_a_handler_of_the_users_own_is_called_while_work_goes_on() -> None:
    """Signals that do not raise do not stop anything."""
    code = """
        import os, signal, threading, numpy as np, pyarrow as pa, dovetail as dt
        seen = []
        signal.signal(signal.SIGUSR1, lambda *_: seen.append(len(seen)))
        numbers = np.arange(30_000)
        result = dt.theta_join(
            pa.table({"x": numbers}), pa.table({"y": numbers}), "x < y", algorithm="nested_loop"
        )
        stop = threading.Event()
        def poke():
            while not stop.wait(0.01):
                os.kill(os.getpid(), signal.SIGUSR1)
        thread = threading.Thread(target=poke)
        thread.start()
        assert result.count() == 30_000 * 29_999 // 2
        during = len(seen)
        stop.set(); thread.join()
        assert during > 1, during
    """
    python(code)


# --- The GIL --------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("use", ["count", "to_arrow", "head"])
def test_other_threads_run_meanwhile(use: str, workers: int) -> None:
    """A thread counts on while a call works: it would not get one step in if the GIL were held."""
    numbers = pa.array(np.arange(12_000))
    left, right = pa.table({"x": numbers}), pa.table({"y": numbers})
    result = dt.theta_join(left, right, "x < y and x > y", workers=workers, algorithm="nested_loop")
    steps, stop, started = [0], threading.Event(), threading.Event()

    def count() -> None:
        while not stop.is_set():
            steps[0] += 1
            started.set()

    thread = threading.Thread(target=count)
    thread.start()
    started.wait()
    try:
        before = steps[0]
        result.count() if use == "count" else getattr(result, use)()
        during = steps[0] - before
    finally:
        stop.set()
        thread.join()
    assert during > 1000


def test_one_result_on_many_threads() -> None:
    numbers = pa.array(np.arange(500))
    result = dt.theta_join(pa.table({"x": numbers}), pa.table({"y": numbers}), "x < y", workers=2)
    answers: list[Any] = []

    def use() -> None:
        answers.append((result.count(), result.to_arrow().num_rows, result.head(3).num_rows))

    pool = [threading.Thread(target=use) for _ in range(8)]
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join(LONGEST)
    assert answers == [(124_750, 124_750, 3)] * 8


def test_two_results_in_lock_step() -> None:
    numbers = pa.array(np.arange(2000))
    left, right = pa.table({"x": numbers}), pa.table({"y": numbers})
    first = dt.theta_join(left, right, "x < y", workers=2)
    second = dt.theta_join(left, right, "x >= y", workers=3)
    rows = [a.num_rows + b.num_rows for a, b in zip(first, second, strict=False)]
    assert sum(rows) > 2_000_000
    assert sum(a.num_rows for a, _ in zip(first, first, strict=True)) == 1_999_000


def test_a_result_feeds_another() -> None:
    numbers = pa.array(np.arange(300))
    pairs = dt.theta_join(pa.table({"x": numbers}), pa.table({"y": numbers}), "x < y", workers=2)
    both = dt.theta_join(pairs, pa.table({"z": [298]}), "y > z", workers=2)
    assert both.count() == 299


# --- Forks ----------------------------------------------------------------------------------------


def table(rows: int, name: str) -> pa.Table:
    return pa.table({name: np.arange(rows)})


def _in_child(queue: Any, result: dt.JoinResult | None) -> None:
    result = result or dt.theta_join(table(50, "x"), table(50, "y"), "x < y", workers=4)
    queue.put((result.count(), result.to_arrow().num_rows))


@needs_fork
@pytest.mark.parametrize("before", ["nothing", "a use", "a half-read result", "the same result"])
def test_forked_processes_can_join(before: str) -> None:
    """After import, after use, with threads of ours under way: the child starts its own."""
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    given = dt.theta_join(table(50, "x"), table(50, "y"), "x < y", workers=4)
    batches: Iterator[pa.RecordBatch] | None = None
    if before == "a use":
        dt.theta_join(table(50, "x"), table(50, "y"), "x < y", workers=4).to_arrow()
    elif before == "a half-read result":
        batches = iter(dt.theta_join(table(3000, "x"), table(3000, "y"), "x < y", workers=4))
        next(batches)
    elif before == "the same result":
        given.to_arrow()
    process = context.Process(
        target=_in_child, args=(queue, given if before == "the same result" else None)
    )
    process.start()
    process.join(LONGEST)
    assert process.exitcode == 0
    assert queue.get() == (1225, 1225)
    if batches is not None:
        assert sum(batch.num_rows for batch in batches) > 0, "the parent goes on"


@needs_fork
@pytest.mark.parametrize("workers", [1, 4])
def test_a_half_read_result_does_not_go_on_in_a_forked_process(workers: int) -> None:
    code = f"""
        import os, sys, traceback, numpy as np, pyarrow as pa, dovetail as dt
        numbers = np.arange(3000)
        result = dt.theta_join(
            pa.table({{"x": numbers}}), pa.table({{"y": numbers}}), "x < y", workers={workers}
        )
        batches = iter(result)
        next(batches)
        child = os.fork()
        if child == 0:
            try:
                for _ in batches: pass  # a batch that was ready may still come
            except dt.InvalidInputError as error:
                assert "another process" in str(error), error
                assert result.count() == 3000 * 2999 // 2
                del batches, result
                os._exit(0)
            except BaseException:
                traceback.print_exc()
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert sum(batch.num_rows for batch in batches) > 0
    """
    python(code)


@needs_fork
def test_a_forked_process_ends_by_itself() -> None:
    """Nothing at interpreter exit waits for threads that are not there."""
    code = """
        import os, sys, numpy as np, pyarrow as pa, dovetail as dt
        left, right = pa.table({"x": np.arange(3000)}), pa.table({"y": np.arange(3000)})
        result = dt.theta_join(left, right, "x < y", workers=4)
        batches = iter(result)
        next(batches)
        child = os.fork()
        if child == 0:
            sys.exit(7)  # finalizes everything, the half-read generator too
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    """
    python(code)


# --- Threads --------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, -1, 1.5, "2", True])
def test_workers_is_a_whole_number_from_one_on(workers: Any) -> None:
    with pytest.raises(
        dt.InvalidInputError, match=r"workers=.*; expected a whole number, 1 to 1024"
    ):
        dt.theta_join(table(1, "x"), table(1, "y"), "x < y", workers=workers)


def test_default_is_the_environments_then_the_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOVETAIL_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "57")
    assert threads.thread_count(None) == len(os.sched_getaffinity(0))
    monkeypatch.setenv("DOVETAIL_THREADS", "3")
    assert threads.thread_count(None) == 3
    assert threads.thread_count(5) == 5
    assert "threads    3\n" in dt.theta_join(table(1, "x"), table(1, "y"), "x < y").explain()


@pytest.mark.parametrize("text", ["0", "-1", "many", "", "1.5"])
def test_a_bad_environment_is_said(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("DOVETAIL_THREADS", text)
    with pytest.raises(dt.InvalidInputError, match=f"DOVETAIL_THREADS='{text}'; expected"):
        dt.theta_join(table(1, "x"), table(1, "y"), "x < y")


def test_inside_a_spark_task_the_default_is_the_tasks_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class TaskContext:
        @staticmethod
        def get() -> object:
            return object()

    stand_in = type(sys)("pyspark.taskcontext")
    stand_in.TaskContext = TaskContext  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pyspark.taskcontext", stand_in)
    monkeypatch.delenv("DOVETAIL_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert threads.thread_count(None) == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert threads.thread_count(None) == 2


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_threads_come_and_go_with_a_run() -> None:
    code = """
        import gc, os, time
        import pyarrow, pyarrow.compute, numpy as np
        tasks = lambda: len(os.listdir("/proc/self/task"))
        before = tasks()
        import dovetail as dt
        assert tasks() == before, "import starts no thread"
        numbers = np.arange(3000)
        left, right = pyarrow.table({"x": numbers}), pyarrow.table({"y": numbers})
        result = dt.theta_join(left, right, "x < y", workers=6)
        assert tasks() == before, "describing a join starts no thread"
        batches = iter(result)
        next(batches)
        assert tasks() >= before + 6
        batches.close()
        for use in (lambda: None, result.count, result.to_arrow, lambda: result.head(1)):
            use()
            for _ in range(1000):  # threads end by themselves, soon
                if tasks() <= before + 1:
                    break
                time.sleep(0.01)
            assert tasks() <= before + 1, (before, tasks())
    """
    python(code)


# --- Logging --------------------------------------------------------------------------------------


def test_records_of_the_core_reach_python_logging(caplog: pytest.LogCaptureFixture) -> None:
    """At debug level, every run says what it is about to do."""
    with caplog.at_level(logging.DEBUG, logger="dovetail"):
        dt.theta_join(table(20, "x"), table(30, "y"), "x < y", workers=2).count()
    records = [record for record in caplog.records if record.name.startswith("dovetail")]
    assert any("theta_join" in record.getMessage() for record in records)
    assert all(record.levelno == logging.DEBUG for record in records)


class Raising(logging.Handler):
    """A handler that fails, as one does in which Ctrl-C arrives."""

    def emit(self, record: logging.LogRecord) -> None:
        raise KeyboardInterrupt


@pytest.mark.parametrize("use", ["count", "to_arrow", "head", "iterate"])
def test_what_a_logging_handler_raises_is_raised(use: str) -> None:
    result = dt.theta_join(table(20, "x"), table(30, "y"), "x < y", workers=2)
    logger, handler = logging.getLogger("dovetail"), Raising()
    level = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            list(result) if use == "iterate" else getattr(result, use)()
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    assert result.count() == 390, "and the next use works"


def test_nothing_is_logged_by_default() -> None:
    code = """
        import numpy as np, pyarrow as pa, dovetail as dt
        result = dt.theta_join(pa.table({"x": [1]}), pa.table({"y": [2]}), "x < y")
        assert result.count() == 1
    """
    done = python(code)
    assert (done.stdout, done.stderr) == ("", "")


# --- Optional packages ----------------------------------------------------------------------------

WITHOUT = """
    import sys
    class Blocked:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in {blocked}:
                raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
    sys.meta_path.insert(0, Blocked())
"""
OPTIONAL = {"pyspark", "pandas", "polars", "tqdm", "duckdb", "datafusion", "numpy"}


def test_import_and_joins_need_pyarrow_only() -> None:
    code = textwrap.dedent(WITHOUT.format(blocked=OPTIONAL)) + textwrap.dedent("""
        import pyarrow as pa, dovetail as dt, dovetail.cli
        result = dt.theta_join(pa.table({"x": [1, 3]}), pa.table({"y": [2]}), "x < y")
        assert result.to_arrow().to_pydict() == {"x": [1], "y": [2]}
        assert result.count() == 1 and result.explain() and repr(result)
        assert len(list(result)) == 1
    """)
    python(code)


def test_import_does_not_import_optional_packages() -> None:
    code = f"""
        import sys, dovetail, dovetail.cli
        loaded = {OPTIONAL - {"numpy"}} & set(sys.modules)
        assert not loaded, loaded
    """
    python(code)


def test_to_polars_without_polars_says_so() -> None:
    code = textwrap.dedent(WITHOUT.format(blocked={"polars"})) + textwrap.dedent("""
        import pyarrow as pa, dovetail as dt
        result = dt.theta_join(pa.table({"x": [1]}), pa.table({"y": [2]}), "x < y")
        try:
            result.to_polars()
        except ModuleNotFoundError as error:
            assert "polars" in str(error)
        else:
            raise AssertionError("polars was blocked")
    """)
    python(code)


def test_what_a_signal_handler_raises_comes_through_another_library() -> None:
    """An alarm of the user's own is no Ctrl-C."""
    done = python(
        f"""
        import signal, pyarrow as pa, dovetail as dt
        class Boom(Exception): pass
        def alarm(*_): raise Boom
        signal.signal(signal.SIGALRM, alarm)
        numbers = list(range(200_000))
        result = dt.theta_join(
            pa.table({{"x": numbers}}), pa.table({{"y": numbers}}), "{NEVER}",
            workers=2, algorithm="nested_loop",
        )
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        try:
            try:
                pa.table(result)
            except pa.ArrowInvalid:
                for _ in range(1000): pass
            print("nothing")
        except Boom:
            print("boom")
        """
    )
    assert done.stdout.strip() == "boom"
