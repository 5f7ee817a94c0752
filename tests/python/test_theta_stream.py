"""ThetaJoin: windows of two streams against nested loops, its budget, and life after errors."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from typing import Any

import oracle
import pyarrow as pa
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from stocks import highs, needs_data

import dovetail as dt

ALGORITHMS: list[Any] = ["prefap", "ftj", "cfs", "obt", "rbm", "nested_loop", "auto"]


def drain(join: dt.ThetaJoin) -> list[pa.RecordBatch]:
    batches = []
    while (batch := join.poll()) is not None:
        batches.append(batch)
    return batches


@settings(max_examples=200)
@given(st.data(), st.sampled_from(ALGORITHMS), st.integers(1, 9), st.integers(1, 4))
def test_oracle_windows_of_any_size_and_cut(
    data: st.DataObject, algorithm: Any, window: int, workers: int
) -> None:
    family = data.draw(st.sampled_from(list(strategies.FAMILIES)))
    kinds = [data.draw(strategies.key_types(family)) for _ in range(2)]
    left = data.draw(strategies.inputs({"a": kinds[0]}, "l", max_rows=25))
    right = data.draw(strategies.inputs({"b": kinds[1]}, "r", max_rows=25))
    op = data.draw(st.sampled_from(["<", "<=", ">", ">="]))
    pairs = oracle.theta_pairs(left.table(), right.table(), [("a", op, "b")])
    expected = [(i, j) for i, j in pairs if i // window == j // window]
    join = dt.ThetaJoin(f"a {op} b", window=window, algorithm=algorithm, workers=workers)
    todo = [("left", batch) for batch in left.batches] + [("right", b) for b in right.batches]
    order = data.draw(st.permutations(range(len(todo))))
    # Any interleaving that keeps each stream's own order.
    sides = [todo[place][0] for place in order]
    streams = {"left": iter(left.batches), "right": iter(right.batches)}
    found = []
    for side in sides:
        join.push(side, next(streams[side]))  # type: ignore[arg-type]
        if data.draw(st.booleans()):
            found += drain(join)
    full = min(left.table().num_rows, right.table().num_rows) // window * window
    ready = [pair for batch in found for pair in zip(*ids(batch), strict=True)]
    assert all(i < full for i, _ in ready)
    found += list(join.finish())
    pairs_found = [pair for batch in found for pair in zip(*ids(batch), strict=True)]
    assert sorted(pairs_found) == sorted(expected)
    assert all(batch.schema == join.schema for batch in found)
    metrics = join.metrics
    for side, input in (("left", left), ("right", right)):
        rows = input.table().num_rows
        parts = (metrics.get(f"{p}_{side}", 0) for p in ("matched", "unmatched", "filtered"))
        assert sum(parts) == metrics[f"rows_{side}"] == rows
    if "rows_out" in metrics:
        assert metrics["rows_out"] == len(expected)


def ids(batch: pa.RecordBatch) -> tuple[list[int], list[int]]:
    return batch["l"].to_pylist(), batch["r"].to_pylist()


def table(name: str, values: list[Any]) -> pa.Table:
    return pa.table({name: values})


@needs_data
@pytest.mark.parametrize("batch", [1, 100, 754])
def test_one_window_of_stocks_is_the_join(batch: int) -> None:
    """A window of 1,000 holds all 754 days: the metrics are those of the whole join."""
    jnj, msft = highs("JNJ"), highs("MSFT")
    join = dt.ThetaJoin("high <= high", window=1000, partitions=10)
    for name, prices in (("left", jnj), ("right", msft)):
        for piece in prices.to_batches(max_chunksize=batch):
            join.push(name, piece)  # type: ignore[arg-type]
    assert sum(b.num_rows for b in join.finish()) == 92_240
    whole = dt.theta_join(jnj, msft, "high <= high", algorithm="prefap")
    whole.count()
    for name in ("cartesian_products", "results", "load_balance_in", "load_balance_out"):
        assert join.metrics[name] == whole.metrics[name]
    assert join.metrics["windows"] == 1


def test_metrics_add_up_over_windows() -> None:
    options = dt.Partitioning(partitions=3)
    left, right = (
        table(name, [i * 7919 % 1000 for i in range(n)]) for name, n in (("a", 950), ("b", 880))
    )
    join = dt.ThetaJoin("a <= b", window=100, options=options)
    join.push("left", left)
    join.push("right", right)
    drain(join)
    assert join.metrics["windows"] == 8
    list(join.finish())
    each = []
    for begin in range(0, 900, 100):
        one = dt.theta_join(
            left.slice(begin, 100), right.slice(begin, 100), "a <= b",
            algorithm="prefap", options=options,
        )  # fmt: skip
        one.count()
        each.append(one.metrics)
    for name in ("cartesian_products", "results", "pairs_kept", "matched_right"):
        assert join.metrics[name] == sum(metrics[name] for metrics in each)
    assert join.metrics["windows"] == 9
    assert join.metrics["unmatched_left"] >= 50  # the tenth window has no counterpart
    assert 1 <= join.metrics["load_balance_out"] <= 4


def test_schemas_are_those_of_the_first_batches_or_given() -> None:
    join = dt.ThetaJoin("a < b")
    assert join.schema is None
    join.push("left", table("a", [1]))
    assert join.schema is None
    join.push("right", table("b", []).cast(pa.schema([("b", pa.float64())])))
    assert join.schema == pa.schema([("a", pa.int64()), ("b", pa.float64())])
    left, right = pa.schema([("a", pa.int64())]), pa.schema([("b", pa.int64())])
    assert dt.ThetaJoin("a < b", left_schema=left, right_schema=right).schema is not None
    with pytest.raises(dt.InvalidInputError, match="no column 'c'"):
        dt.ThetaJoin("a < c", left_schema=left, right_schema=right)
    join = dt.ThetaJoin("a < b", left_schema=left)
    with pytest.raises(dt.InvalidInputError, match='left batch has the columns "x"'):
        join.push("left", table("x", [1]))


def test_any_table_may_be_pushed() -> None:
    import polars as pl

    join = dt.ThetaJoin("a < b", by="k", window=2, algorithm="auto")
    join.push("left", pl.DataFrame({"a": [1, 5], "k": [1, 1]}))
    join.push("right", pa.RecordBatch.from_pydict({"b": [9, 9], "k": [1, 2]}))
    assert [batch.to_pydict() for batch in drain(join)] == [{"a": [1, 5], "k": [1, 1], "b": [9, 9]}]


def test_memory_is_for_rows_that_wait() -> None:
    batch = table("a", list(range(100)))  # 800 bytes
    join = dt.ThetaJoin("a <= a", window=100, memory="2kB")
    join.push("left", batch)
    join.push("left", batch)
    with pytest.raises(dt.BudgetError, match=r"left stream .* waits for rows of the right stream"):
        join.push("left", batch)
    join = dt.ThetaJoin("a <= a", window=100, memory="2kB")
    join.push("left", batch)
    join.push("right", batch)
    with pytest.raises(dt.BudgetError, match=r"ready: poll, then push again.*only 400 of 2000"):
        join.push("right", batch)
    assert sum(b.num_rows for b in drain(join)) == 5050
    join.push("right", batch)
    join.push("left", batch)
    assert sum(b.num_rows for b in join.finish()) == 5050


def test_a_push_is_taken_whole_or_not_at_all() -> None:
    pieces = pa.Table.from_batches(table("a", list(range(100))).to_batches(max_chunksize=10))
    join = dt.ThetaJoin("a <= a", memory=500)
    with pytest.raises(dt.BudgetError):
        join.push("left", pieces)
    join.push("left", pieces.slice(0, 50))
    join.push("right", table("a", [0]))
    list(join.finish())
    assert join.metrics["rows_left"] == 50


def test_it_works_on_after_errors() -> None:
    join = dt.ThetaJoin("a < b", window=2)
    with pytest.raises(dt.InvalidInputError, match="unknown input 'middle'; expected 'left' or"):
        join.push("middle", table("a", [1]))  # type: ignore[arg-type]
    with pytest.raises(dt.InvalidInputError, match=r"left input is a builtins\.int"):
        join.push("left", 5)
    join.push("left", table("a", [1, 2]))
    with pytest.raises(dt.InvalidInputError, match="the right input has no column 'b'"):
        join.push("right", table("c", [1]))
    with pytest.raises(dt.InvalidInputError, match=r'left column "a".*right column "b"'):
        join.push("right", table("b", ["text"]))
    join.push("right", table("b", [2, 3]))
    with pytest.raises(dt.InvalidInputError, match=r'right batch has the columns "b" \(Utf8\)'):
        join.push("right", table("b", ["text"]))
    assert [batch.to_pydict() for batch in drain(join)] == [{"a": [1, 1, 2], "b": [2, 3, 3]}]
    join.push("left", table("a", [1]))
    rest = join.finish()
    with pytest.raises(dt.InvalidInputError, match=r"right stream after finish\(\)"):
        join.push("right", table("b", [2]))
    assert list(rest) == []
    assert join.poll() is None
    assert join.metrics["results"] == 3


def test_finish_takes_effect_at_once() -> None:
    join = dt.ThetaJoin("a < a")
    join.push("left", table("a", [1]))
    join.push("right", table("a", [2]))
    join.finish()
    batch = join.poll()
    assert batch is not None
    assert batch.to_pydict() == {"a": [1], "a_right": [2]}


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"window": 0}, dt.InvalidInputError, "window=0; expected a whole number from 1 on"),
    ({"window": True}, dt.InvalidInputError, "window=True"),
    ({"partitions": 0}, dt.InvalidInputError, "partitions=0; expected a whole number from 1 on"),
    ({"options": 3}, dt.InvalidInputError, "options=3; expected a dovetail.Partitioning"),
    ({"partitions": 3, "options": dt.Partitioning()}, dt.InvalidInputError, "not both"),
    ({"memory": "lots"}, dt.InvalidInputError, "memory: expected a size"),
    ({"workers": 0}, dt.InvalidInputError, "workers=0"),
    ({"left_schema": "a"}, dt.InvalidInputError, "left_schema='a'; expected a pyarrow.Schema"),
    ({"suffix": None}, dt.InvalidInputError, "suffix=None; expected text"),
    ({"algorithm": 5}, dt.InvalidInputError, "algorithm=5; expected text"),
]


@pytest.mark.parametrize(("options", "kind", "said"), BAD)
def test_bad_option(options: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        dt.ThetaJoin("a < a", **options)


def test_what_is_checked_when_both_schemas_are_known() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    schemas: Any = {"left_schema": schema, "right_schema": schema}
    with pytest.raises(dt.InvalidInputError, match="unknown algorithm"):
        dt.ThetaJoin("a < a", algorithm="fast", **schemas)  # type: ignore[arg-type]
    with pytest.raises(dt.InvalidInputError, match="options= are for"):
        dt.ThetaJoin("a < a", algorithm="auto", partitions=5, **schemas)
    with pytest.raises(dt.UnsupportedError, match=r"prefap.*exactly one"):
        dt.ThetaJoin("a < a and b < b", **schemas)
    with pytest.raises(dt.PredicateError):
        dt.ThetaJoin("a <")


def test_pushed_from_several_threads() -> None:
    join = dt.ThetaJoin("a <= a", window=50, workers=2)
    batch = table("a", list(range(50)))

    def push(name: Any) -> None:
        for _ in range(40):
            join.push(name, batch)

    threads = [threading.Thread(target=push, args=(name,)) for name in ("left", "right")]
    for thread in threads:
        thread.start()
    rows = 0
    while any(thread.is_alive() for thread in threads):
        rows += sum(batch.num_rows for batch in drain(join))
    for thread in threads:
        thread.join()
    rows += sum(batch.num_rows for batch in join.finish())
    assert rows == 40 * 50 * 51 // 2


def test_ctrl_c_while_polling() -> None:
    """Interrupted in the middle of a window and polled on: every pair once."""
    code = """
        import _thread, signal
        import pyarrow as pa, dovetail as dt
        rows, matching = 30_000, 10
        left = pa.table({"x": [0] * matching + [9] * (rows - matching)})
        right = pa.table({"y": [5] * rows})
        join = dt.ThetaJoin("x < y", window=rows, algorithm="nested_loop", workers=2)
        join.push("left", left)
        join.push("right", right)
        found = 0
        while found < matching * rows:
            found += join.poll().num_rows
        # Nothing more matches, which takes a billion comparisons to find out.
        signal.signal(signal.SIGALRM, lambda *_: _thread.interrupt_main())
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            join.poll()
        except KeyboardInterrupt:
            print("interrupted")
        print(join.poll(), join.metrics["rows_out"], join.metrics["rows_left"])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.stdout == "interrupted\nNone 300000 30000\n", done.stderr
