"""The result class: lazy, honest about its work, and stopped as soon as nobody wants more."""

from __future__ import annotations

import builtins
import io
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st

import dovetail as dt

LEFT = pa.table({"a": [1, 5, None, 9], "k": ["u", "v", "u", "w"]})
RIGHT = pa.table({"b": [4, 8, None], "k": ["u", "v", "u"]})
MILLION = 1_000_000


@pytest.fixture(scope="module")
def large() -> tuple[pa.Table, pa.Table]:
    """A million rows on each side: all pairs would take hours."""
    return pa.table({"x": np.arange(MILLION)}), pa.table({"y": np.arange(MILLION)})


def small(rows: int = 4000, **options: Any) -> dt.JoinResult:
    numbers = np.arange(rows)
    options.setdefault("algorithm", "nested_loop")
    return dt.theta_join(pa.table({"x": numbers}), pa.table({"y": numbers}), "x < y", **options)


# --- Before anything runs -------------------------------------------------------------------------


class Watched:
    """A one-shot stream that remembers how many batches were taken from it."""

    def __init__(self, table: pa.Table) -> None:
        self.taken = 0
        self.reader = pa.RecordBatchReader.from_batches(table.schema, self.batches(table))

    def batches(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        for batch in table.to_batches(max_chunksize=1):
            self.taken += 1
            yield batch


def test_nothing_is_read_before_the_first_use() -> None:
    left, right = Watched(LEFT), Watched(RIGHT)
    result = dt.theta_join(left.reader, right.reader, "a < b", by="k")
    assert result.schema == pa.schema([("a", pa.int64()), ("k", pa.string()), ("b", pa.int64())])
    assert result.metrics == {}
    repr(result)
    assert (left.taken, right.taken) == (0, 0)
    assert result.count() == 2
    assert (left.taken, right.taken) == (4, 3)
    result.to_arrow()
    assert (left.taken, right.taken) == (4, 3), "held: not read again"


def test_repr_says_what_it_is() -> None:
    result = dt.theta_join(LEFT, RIGHT, "a < b", by="k")
    lines = repr(result).splitlines()
    assert lines[0] == "<theta_join inner: a < b by k>"
    assert lines[1:4] == ["  a: int64", "  k: string", "  b: int64"]
    assert lines[4].startswith("not run yet")
    result.count()
    assert "last run: 2 rows in " in repr(result)


@pytest.mark.parametrize(
    ("options", "title"),
    [
        ({}, "theta_join inner: a < b"),
        ({"by": "k"}, "theta_join inner: a < b by k"),
        ({"by": ["k"]}, "theta_join inner: a < b by k"),
        ({"left_by": "k", "right_by": "k"}, "theta_join inner: a < b by k"),
        ({"left_by": ["k", "a"], "right_by": ["k", "b"]}, "theta_join inner: a < b by k, a = b"),
    ],
)
def test_title_names_the_equality_columns(options: Any, title: str) -> None:
    assert repr(dt.theta_join(LEFT, RIGHT, "a < b", **options)).startswith(f"<{title}>")


def test_explain() -> None:
    result = dt.theta_join(LEFT, RIGHT, "a < b", by="k", workers=3, algorithm="nested_loop")
    text = result.explain()
    assert text.splitlines()[0] == "theta_join inner where left.a < right.b by left.k = right.k"
    for part in (
        "nested_loop: 6 comparisons",
        "left       4 rows, 1 of them with a null key",
        "right      3 rows, 1 of them with a null key",
        "threads    3",
        "left row, then right row",
    ):
        assert part in text
    assert result.metrics == {}, "explaining is no run"


def test_explain_of_the_default_knows_the_result() -> None:
    result = dt.theta_join(LEFT, RIGHT, "a < b", by="k")
    assert f"auto: slices; {result.count()} pairs match" in result.explain()


# --- Metrics --------------------------------------------------------------------------------------


def conserved(metrics: dict[str, float]) -> bool:
    return all(
        metrics[f"rows_{side}"] == metrics[f"matched_{side}"] + metrics[f"unmatched_{side}"]
        for side in ("left", "right")
    )


@settings(max_examples=60)
@given(st.data(), st.integers(1, 8))
def test_metrics_conserve_rows(data: st.DataObject, workers: int) -> None:
    left = data.draw(strategies.inputs({"a": pa.int8()}, "l")).table()
    right = data.draw(strategies.inputs({"b": pa.float32()}, "r")).table()
    pairs = oracle.theta_pairs(left, right, [("a", "<", "b")])
    result = dt.theta_join(left, right, "a < b", workers=workers)
    for use in (result.count, result.to_arrow, lambda: list(result)):
        use()
        metrics = result.metrics
        assert conserved(metrics)
        assert metrics["rows_left"] == left.num_rows
        assert metrics["rows_right"] == right.num_rows
        assert metrics["matched_left"] == len({i for i, _ in pairs})
        assert metrics["matched_right"] == len({j for _, j in pairs})
    assert metrics["rows_out"] == len(pairs)


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_metrics_of_a_run_that_stopped_early_claim_nothing_wrong(
    large: tuple[pa.Table, pa.Table], workers: int
) -> None:
    """What was not looked at is not known to be unmatched: all four numbers or none."""
    result = dt.theta_join(*large, "x <= y", workers=workers, algorithm="nested_loop")
    result.head(5)
    metrics = result.metrics
    sides = {name for name in metrics if name.startswith(("matched", "unmatched"))}
    assert not sides or (len(sides) == 4 and conserved(metrics))


def test_metrics_are_of_the_last_run() -> None:
    result = small(10)
    assert len(result.head(3)) == 3
    assert result.metrics["rows_out"] == 3
    result.to_arrow()
    assert result.metrics["rows_out"] == 45
    assert result.metrics["batches_out"] == 1
    assert result.metrics["seconds"] >= 0


# --- Stopping early -------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_head_stops(large: tuple[pa.Table, pa.Table], workers: int) -> None:
    result = dt.theta_join(*large, "x <= y", workers=workers, algorithm="nested_loop")
    assert result.head(5).to_pydict() == {"x": [0] * 5, "y": [0, 1, 2, 3, 4]}
    assert result.metrics["comparisons"] < MILLION
    assert result.metrics["rows_out"] == 5


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_leaving_the_loop_stops(large: tuple[pa.Table, pa.Table], workers: int) -> None:
    result = dt.theta_join(*large, "x <= y", workers=workers, algorithm="nested_loop")
    for batch in result:
        assert batch.num_rows
        break
    at_once = result.metrics["comparisons"]
    assert at_once < 100 * MILLION
    assert result.metrics["batches_out"] == 1


def test_closing_the_generator_ends_it() -> None:
    batches = iter(small())
    assert next(batches).num_rows
    batches.close()  # type: ignore[attr-defined]
    with pytest.raises(StopIteration):
        next(batches)


def test_an_exported_stream_that_is_dropped_stops(large: tuple[pa.Table, pa.Table]) -> None:
    result = dt.theta_join(*large, "x <= y", workers=2, algorithm="nested_loop")
    reader = pa.RecordBatchReader.from_stream(result)
    assert reader.read_next_batch().num_rows
    del reader
    assert result.metrics["comparisons"] < 100 * MILLION


@pytest.mark.parametrize("n", [0, 1, 7, 10**6, 2**64, 10**30])
def test_head_gives_at_most_what_there_is(n: int) -> None:
    result = small(20)
    assert result.head(n) == result.to_arrow().slice(0, min(n, 190))


def test_head_takes_ten_unless_told_otherwise() -> None:
    assert small(20).head().num_rows == 10


@pytest.mark.parametrize("n", [-1, 2.0, "5", None, True])
def test_head_takes_a_number(n: Any) -> None:
    with pytest.raises(
        dt.InvalidInputError, match=r"head\(.*\): expected a whole number from 0 on"
    ):
        small(2).head(n)


def test_batches_are_capped() -> None:
    text = pa.array(["x" * 100_000] * 100)
    left = pa.table({"a": [0] * 100, "text": text})
    batches = list(dt.theta_join(left, pa.table({"b": [1] * 10}), "a < b"))
    assert sum(batch.num_rows for batch in batches) == 1000
    assert max(batch.nbytes for batch in batches) <= 16 << 20


# --- Progress -------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2, 8])
@pytest.mark.parametrize("use", ["count", "to_arrow", "iterate"])
def test_progress_goes_up_to_the_total(use: str, workers: int) -> None:
    seen: list[tuple[int, int]] = []
    result = small(progress=lambda done, total: seen.append((done, total)), workers=workers)
    list(result) if use == "iterate" else getattr(result, use)()
    assert seen == sorted(seen)
    assert seen[-1] == (4000 * 4000, 4000 * 4000)
    assert all(done <= total for done, total in seen)


class Mine(Exception):  # noqa: N818
    """Raised by a progress callable of the user's."""


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("use", ["count", "to_arrow", "iterate"])
def test_an_exception_in_the_progress_callable_is_raised_as_it_is(use: str, workers: int) -> None:
    error = Mine("enough")

    def progress(done: int, total: int) -> None:
        if total:
            raise error

    result = small(progress=progress, workers=workers)
    with pytest.raises(Mine) as caught:
        list(result) if use == "iterate" else getattr(result, use)()
    assert caught.value is error


def test_a_result_may_be_used_again_after_its_progress_callable_failed() -> None:
    fail = [True]

    def progress(done: int, total: int) -> None:
        if fail:
            raise Mine

    result = small(50, progress=progress)
    with pytest.raises(Mine):
        result.count()
    fail.clear()
    assert result.count() == 50 * 49 // 2


def test_progress_callable_may_look_at_the_metrics() -> None:
    seen = []
    result = small(progress=lambda done, total: seen.append(result.metrics))
    result.to_arrow()
    assert seen


def test_progress_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tqdm")
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    assert small(progress=True).count() == 4000 * 3999 // 2
    assert "theta_join inner: x < y" in screen.getvalue()
    assert "16.0M/16.0M" in screen.getvalue()
    assert "100%" in screen.getvalue()


def test_progress_bar_without_tqdm(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_tqdm(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] == "tqdm":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without_tqdm)
    for use in ("count", "to_arrow"):
        with pytest.warns(UserWarning, match="pip install tqdm") as caught:
            getattr(small(10, progress=True), use)()
        assert caught[0].filename == __file__, "the warning points at the caller"
    with pytest.warns(UserWarning, match="progress=True needs tqdm") as caught:
        list(small(10, progress=True))
    assert caught[0].filename == __file__


@pytest.mark.parametrize("progress", [1, "yes", None, 0.5])
def test_progress_is_a_flag_or_a_callable(progress: Any) -> None:
    with pytest.raises(dt.InvalidInputError, match="progress="):
        small(10, progress=progress)


def test_no_progress_for_head() -> None:
    """The total of a run that stops early is not known."""
    seen = []
    small(progress=lambda done, total: seen.append(done)).head(3)
    assert not seen


# --- Inputs that are used, or fail, twice ---------------------------------------------------------


def failing_reader(error: BaseException) -> pa.RecordBatchReader:
    def batches() -> Any:
        yield pa.record_batch({"a": [1, 2, 3]})
        raise error

    return pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), batches())


@pytest.mark.parametrize(
    ("error", "first"),
    [
        (KeyboardInterrupt(), KeyboardInterrupt),
        (KeyboardInterrupt("x"), KeyboardInterrupt),
        (ValueError("caught a KeyboardInterrupt"), dt.InvalidInputError),
    ],
)
def test_rows_of_a_broken_stream_are_never_taken_for_all(
    error: BaseException, first: type[BaseException]
) -> None:
    result = dt.theta_join(failing_reader(error), pa.table({"b": [9]}), "a < b")
    with pytest.raises(first):
        result.count()
    for _ in range(2):
        with pytest.raises(dt.InvalidInputError, match="left input failed after 3 rows"):
            result.count()


def test_a_reader_on_both_sides_is_read_once() -> None:
    table = pa.table({"a": [1, 2, 3]})
    reader = pa.RecordBatchReader.from_batches(table.schema, iter(table.to_batches()))
    assert dt.theta_join(reader, reader, "a <= a").count() == 6


def test_a_reader_given_to_two_joins_is_refused() -> None:
    table = pa.table({"a": [1, 2, 3]})
    reader = pa.RecordBatchReader.from_batches(table.schema, iter(table.to_batches()))
    assert dt.theta_join(reader, table, "a <= a").count() == 6
    with pytest.raises(dt.InvalidInputError, match="left input is a reader that was given"):
        dt.theta_join(reader, table, "a <= a")


def test_a_progress_callable_that_asks_its_own_result_is_told() -> None:
    """The first call comes while the inputs are read: waiting for itself would be for ever."""

    def ask(done: int, total: int) -> None:
        result.count()

    result = small(10, progress=ask, algorithm="auto")
    with pytest.raises(dt.InvalidInputError, match="still running"):
        result.count()
    assert result.head(1).num_rows == 1, "and works afterwards"


def test_many_threads_may_ask_at_once() -> None:
    from concurrent.futures import ThreadPoolExecutor

    result = small(2000, algorithm="auto")
    with ThreadPoolExecutor(8) as threads:
        counts = list(threads.map(lambda _: result.count(), range(32)))
    assert counts == [2000 * 1999 // 2] * 32


def test_one_huge_value_does_not_make_huge_batches() -> None:
    """A batch is cut by the bytes of its own rows, not of average ones."""
    left = pa.table({"a": range(1000), "s": ["x" * 2_000_000] + ["y"] * 999})
    result = dt.theta_join(left, pa.table({"b": [1000] * 50}), "a < b", workers=1)
    sizes = [batch.nbytes for batch in result]
    assert sum(sizes) > 100_000_000
    assert max(sizes) < 17_000_000
