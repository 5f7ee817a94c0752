"""chain_join against nested loops and DuckDB; what it says when it cannot."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import Any

import duckdb
import numpy as np
import oracle
import pyarrow as pa
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Input

import dovetail as dt

OPS = list(oracle.COMPARISONS)
ALGORITHMS = ["nested_loop", "prefap", "ftj", "cfs", "obt", "rbm"]


def where(links: list[list[oracle.Term]]) -> str:
    return " and ".join(
        f"t{number}.{a} {op} t{number + 1}.{b}"
        for number, terms in enumerate(links)
        for a, op, b in terms
    )


@st.composite
def chains(draw: st.DrawFn) -> tuple[list[Input], list[list[oracle.Term]], list[str]]:
    """Two to four inputs; links of one to three terms with one column of the later input."""
    count = draw(st.integers(2, 4))
    kinds: list[dict[str, pa.DataType]] = [{} for _ in range(count)]
    links: list[list[oracle.Term]] = []
    for number in range(count - 1):
        family = draw(st.sampled_from(list(strategies.FAMILIES)))
        kinds[number + 1][f"y{number}"] = draw(strategies.key_types(family))
        terms = []
        for extra in range(draw(st.sampled_from([1, 1, 2, 3]))):
            name = f"x{number}{extra}"
            kinds[number][name] = draw(strategies.key_types(family))
            ops = OPS if extra == 0 else [op for op in OPS if op != "!="]
            terms.append((name, draw(st.sampled_from(ops)), f"y{number}"))
        links.append(terms)
    by = []
    if draw(st.booleans()):
        family = draw(st.sampled_from(list(strategies.FAMILIES)))
        for kind in kinds:
            kind["k"] = draw(strategies.key_types(family))
        by = ["k"]
    inputs = [
        draw(strategies.inputs(kind, f"row{number}", max_rows=8))
        for number, kind in enumerate(kinds)
    ]
    return inputs, links, by


@settings(max_examples=300)
@given(chains(), st.integers(1, 8), st.booleans(), st.integers(0, 30))
def test_oracle_any_types_links_and_cuts(
    chain: Any, workers: int, as_readers: bool, n: int
) -> None:
    inputs, links, by = chain
    tables = [input.table() for input in inputs]
    given = [input.reader() for input in inputs] if as_readers else tables
    result = dt.chain_join(given, where(links), by=by or None, workers=workers)
    tuples = oracle.chain_tuples(tables, links, by)
    output = result.to_arrow()
    output.validate(full=True)
    assert output.schema == result.schema
    # The number of its row in each input comes out, whatever the keys are called.
    found = zip(*(output[f"row{number}"].to_pylist() for number in range(len(tables))), strict=True)
    assert sorted(found) == sorted(tuples)
    assert oracle.rows(output) == oracle.Counter(oracle.chain_rows(tables, tuples, by))
    assert result.count() == len(tuples)
    assert result.head(n).equals(output.slice(0, n))
    metrics = result.metrics
    for number, table in enumerate(tables):
        parts = (metrics[f"{part}_{number}"] for part in ("matched", "unmatched", "filtered"))
        assert sum(parts) == metrics[f"rows_{number}"] == table.num_rows
        assert metrics[f"matched_{number}"] == len({rows[number] for rows in tuples})


def numbers(rows: int, seed: int, **columns: int) -> pa.Table:
    """`columns` of random numbers below what each says, and now and then null."""
    random = np.random.default_rng(seed)
    arrays = {
        name: pa.array(random.integers(0, below, rows), mask=random.random(rows) < 0.1)
        for name, below in columns.items()
    }
    return pa.table({**arrays, f"row{seed}": range(rows)})


TABLES = [numbers(40, 0, a=9, k=3), numbers(30, 1, b=9, c=20, k=3), numbers(35, 2, d=20, e=9, k=3)]

PREDICATES: dict[str, tuple[str, list[list[oracle.Term]]]] = {
    "by position": ("a >= b < e", [[("a", ">=", "b")], [("b", "<", "e")]]),
    "by name": ("t0.a < t1.b and t1.c >= t2.d", [[("a", "<", "b")], [("c", ">=", "d")]]),
    "turned round": ("t2.d <= t1.c and t1.b != t0.a", [[("a", "!=", "b")], [("c", ">=", "d")]]),
    "a chain of names": ("t0.a < t1.b <= t2.e", [[("a", "<", "b")], [("b", "<=", "e")]]),
    "names here and there": ("t0.a < b <= t2.e", [[("a", "<", "b")], [("b", "<=", "e")]]),
    "a chain and a term": (
        "a < b != e and t1.b >= t2.e",
        [[("a", "<", "b")], [("b", "!=", "e"), ("b", ">=", "e")]],
    ),
    "between": (
        "t1.c between t2.e and t2.d and t0.a > t1.b",
        [[("a", ">", "b")], [("c", ">=", "e"), ("c", "<=", "d")]],
    ),
    "back to the first": (
        "t0.a < t1.c and t2.e between t1.b and t1.c",
        [[("a", "<", "c")], [("b", "<=", "e"), ("c", ">=", "e")]],
    ),
}


@pytest.mark.parametrize("by", [None, "k"])
@pytest.mark.parametrize("name", PREDICATES)
def test_predicates_mean_what_they_say(name: str, by: str | None) -> None:
    text, links = PREDICATES[name]
    tuples = oracle.chain_tuples(TABLES, links, [by] if by else [])
    assert tuples
    result = dt.chain_join(TABLES, text, by=by)
    expected = oracle.Counter(oracle.chain_rows(TABLES, tuples, [by] if by else []))
    assert oracle.rows(result.to_arrow()) == expected
    named = text.replace("t0.", "r.").replace("t1.", '"the s".').replace("t2.", "t.")
    from_dict = dt.chain_join(dict(zip(("r", "the s", "t"), TABLES, strict=True)), named, by=by)
    assert from_dict.to_arrow().equals(result.to_arrow())


def test_predicates_built_in_python() -> None:
    t0, t1, t2 = (dt.col(name, f"t{number}") for number, name in enumerate("abe"))
    built = dt.chain_join(TABLES, (t0 >= t1) & (t2 > t1))
    assert built.to_arrow().equals(dt.chain_join(TABLES, "a >= b < e").to_arrow())


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_agrees_with_every_algorithm(algorithm: Any) -> None:
    result = dt.chain_join(TABLES, "t0.a < t1.b and t1.c >= t2.d", algorithm=algorithm)
    expected = dt.chain_join(TABLES, "t0.a < t1.b and t1.c >= t2.d")
    assert result.schema == expected.schema
    assert oracle.rows(result.to_arrow()) == oracle.rows(expected.to_arrow())
    built = result.metrics
    assert result.count() == expected.count() == built["rows_out"]
    pairs = dt.theta_join(TABLES[0], TABLES[1], "a < b").count()
    for metrics in (built, result.metrics):
        assert metrics["results"] == expected.count() + pairs
        assert metrics["cartesian_products"] >= metrics["results"]
        assert metrics["load_balance_out"] >= 1
    assert algorithm in result.explain()
    assert "t0 with t1, that with t2" in result.explain()


@pytest.mark.parametrize("by", [None, "k"])
def test_agrees_with_duckdb(by: str | None) -> None:
    tables = [numbers(300, seed, x=200, y=200, k=5) for seed in range(4)]
    text = "t0.x < t1.x and t1.y >= t2.x and t2.y != t3.x and t2.x <= t3.x"
    result = dt.chain_join(tables, text, by=by)
    database = duckdb.connect()
    for number, table in enumerate(tables):
        database.register(f"t{number}", table)
    if by is None:  # 300 million tuples: counted only
        expected = f"""
            select sum(lefts * rights) from
            (select row1, count(*) lefts from t0, t1 where t0.x < t1.x group by 1) join
            (select row1, count(*) rights from t1, t2, t3 where {text.partition(" and ")[2]}
            group by 1) using (row1)
        """
        assert database.sql(expected).fetchall() == [(result.count(),)]
        assert result.count() > 10**8
        return
    database.register("result", result.to_arrow())
    sums = "count(*), sum(row0 * row1), sum(row1 * row2), sum(row2 * row3), sum(row0 * row3)"
    equal = "t0.k = t1.k and t1.k = t2.k and t2.k = t3.k"
    expected = f"select {sums} from t0, t1, t2, t3 where {text} and {equal}"
    found = database.sql(f"select {sums} from result").fetchall()
    assert found == database.sql(expected).fetchall()


# --- Counting -------------------------------------------------------------------------------------


def test_counts_go_beyond_64_bits() -> None:
    table = pa.table({"x": range(10_000)})
    chain = dt.chain_join([table] * 6, "x <= x <= x <= x <= x <= x")
    # Ways to choose six of 10,000 with repetition.
    expected = 1
    for number in range(6):
        expected = expected * (10_000 + number) // (number + 1)
    assert chain.count() == expected > 2**64
    assert str(expected) in chain.explain()
    assert chain.head(3).to_pylist()[2] == {
        "x": 0, "x_1": 0, "x_2": 0, "x_3": 0, "x_4": 0, "x_5": 2
    }  # fmt: skip
    assert "rows in" in repr(chain)
    too_many = dt.chain_join([table] * 12, " <= ".join(["x"] * 12))
    with pytest.raises(dt.UnsupportedError, match=r"2\^128"):
        too_many.count()


def test_bounds_travel_along_the_chain() -> None:
    """Only 7 < 8 < 9 is left, though every neighbour pair has other matches."""
    r, s, t = (pa.table({"x": x}) for x in ([7, 8, 9], [1, 8, 9], [1, 2, 9]))
    chain = dt.chain_join([r, s, t], "x < x < x")
    assert chain.to_arrow().to_pylist() == [{"x": 7, "x_1": 8, "x_2": 9}]
    assert [chain.metrics[f"filtered_{number}"] for number in range(3)] == [2, 2, 2]
    assert chain.explain().count("2 ruled out by bounds, 1 kept; 1 take part") == 3


def test_order_is_by_row_then_by_key() -> None:
    r, s = pa.table({"x": [2, 1]}), pa.table({"x": [9, 3, 3, 5], "s": [0, 1, 2, 3]})
    t = pa.table({"x": [8, 6], "t": [0, 1]})
    rows = dt.chain_join([r, s, t], "x < x < x").to_arrow().to_pylist()
    order = [(row["x"], row["s"], row["t"]) for row in rows]
    once = [(1, 1), (1, 0), (2, 1), (2, 0), (3, 1), (3, 0)]
    assert order == [(x, *pair) for x in (2, 1) for pair in once]


def test_one_table_may_be_several_inputs() -> None:
    reader = pa.RecordBatchReader.from_batches(TABLES[0].schema, TABLES[0].to_batches())
    assert (
        dt.chain_join([reader] * 3, "a < a < a").count()
        == dt.chain_join([TABLES[0]] * 3, "a < a < a").count()
        > 0
    )


@pytest.mark.parametrize("empty", range(3))
def test_an_empty_input_gives_nothing(empty: int) -> None:
    tables = [table.slice(0, 0) if i == empty else table for i, table in enumerate(TABLES)]
    for algorithm in ("auto", *ALGORITHMS):
        result = dt.chain_join(tables, "a >= b < e", algorithm=algorithm)  # type: ignore[arg-type]
        assert result.count() == result.to_arrow().num_rows == 0


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("algorithm", ["auto", "prefap"])
def test_progress_goes_up_to_the_total(algorithm: Any, workers: int) -> None:
    seen: list[tuple[int, int]] = []
    table = numbers(200, 0, x=50)
    result = dt.chain_join(
        [table] * 3,
        "x < x < x",
        algorithm=algorithm,
        workers=workers,
        progress=lambda *at: seen.append(at),
    )
    rows = sum(batch.num_rows for batch in result)
    done, total = seen[-1]
    assert done == total
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    if algorithm == "auto":
        assert total == rows
    else:
        assert total == result.metrics["comparisons"]


@pytest.mark.parametrize("algorithm", ["auto", "prefap", "nested_loop"])
def test_ctrl_c(algorithm: str) -> None:
    """A signal on its way stops a chain that would take for ever, and leaves it usable."""
    code = f"""
        import _thread, signal
        import pyarrow as pa, dovetail as dt
        table = pa.table({{"x": range(20_000)}})
        chain = dt.chain_join([table] * 3, "x < x < x", algorithm="{algorithm}", workers=2)
        chain.explain()
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        signal.signal(signal.SIGALRM, lambda *_: _thread.interrupt_main())
        try:
            for batch in chain:
                pass
        except KeyboardInterrupt:
            print("interrupted", chain.schema.names)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        check=True, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.stdout == "interrupted ['x', 'x_1', 'x_2']\n"


# --- Names ----------------------------------------------------------------------------------------


def test_names_that_are_taken_get_the_number_of_their_input() -> None:
    r = pa.table({"k": [1], "x": [1], "only": [1]})
    s = pa.table({"x": [2], "k": [1]})
    t = pa.table({"only": [3], "k": [1], "x": [3]})
    names = dt.chain_join([r, s, t], "x < x < x").schema.names
    assert names == ["k", "x", "only", "x_1", "k_1", "only_2", "k_2", "x_2"]
    names = dt.chain_join([r, s, t], "x < x < x", by="k", suffix=" of ").schema.names
    assert names == ["k", "x", "only", "x of 1", "only of 2", "x of 2"]
    with pytest.raises(dt.InvalidInputError, match=r"'x_1'|\"x_1\".*suffix"):
        dt.chain_join([r.append_column("x_1", pa.array([1])), s], "x < x")


# --- What is refused ------------------------------------------------------------------------------

A, B, C = (pa.table({"x": [1], "y": [2], "text": ["a"], "k": [1]}) for _ in range(3))
INVALID, UNSUPPORTED = dt.InvalidInputError, dt.UnsupportedError

REFUSED: list[tuple[Any, Any, dict[str, Any], type[Exception], str]] = [
    ([A], "x < x", {}, INVALID, "chain of 1 inputs; expected two or more"),
    ([], "x < x", {}, INVALID, "chain of 0 inputs"),
    ({"only": A}, "x < x", {}, INVALID, "chain of 1 inputs"),
    (A, "x < x", {}, INVALID, "inputs= is a Table; expected a list"),
    ({1: A, 2: B}, "x < x", {}, INVALID, "name of an input=1; expected text"),
    ([A, 5], "x < x", {}, INVALID, "t1 input is a builtins.int"),
    ([A, B, C], "x < x", {}, INVALID, "which inputs are meant in 'x < x'?"),
    ([A, B, C], "x < x < x < x", {}, INVALID, "which inputs are meant"),
    ([A, B], "x < x < x", {}, INVALID, "which inputs are meant"),
    ([A, B, C], "t0.x < t1.x", {}, INVALID, "no comparison between t1 and t2"),
    ([A, B, C], "t0.x < t1.x and x < x", {}, INVALID, "which inputs are meant in 'x < x'"),
    ([A, B], "left.x < right.x", {}, INVALID, "unknown input 'left'.*called t0, t1"),
    ({"r": A, "s": B}, "t0.x < t1.x", {}, INVALID, "unknown input 't0'.*called r, s"),
    ([A, B], "z < x", {}, INVALID, "t0 has no column 'z'; its columns are 'x', 'y'"),
    ([A, B], "x < tex", {}, INVALID, "t1 has no column 'tex' .did you mean 'text'"),
    ({"r": A, "s": B}, "x < z", {}, INVALID, "s has no column 'z'"),
    ([A, B], "x < x", {"by": "z"}, INVALID, "t0 has no column 'z'"),
    ([A, B], "x < text", {}, INVALID, 'column "x" of t0.*column "text" of t1'),
    ([A, B], "x < x", {"by": ["k"], "suffix": 5}, INVALID, "suffix=5; expected text"),
    ([A, B], "x < x", {"algorithm": "fast"}, INVALID, "unknown algorithm"),
    ([A, B], "x < x", {"options": {"partitions": 3}}, INVALID, "expected a dovetail.Partitioning"),
    ([A, B], "x < x", {"options": dt.Partitioning()}, INVALID, "options= are for the algorithms"),
    ([A, B], "t0.x < t0.y", {}, INVALID, "columns of one input, t0"),
    ([A, B, C], "t0.x < t1.x and t1.x < t2.x and t0.x < t2.x", {}, UNSUPPORTED, "not neighbours"),
    ([A, B, C], "x < x = x", {}, UNSUPPORTED, "go into by="),
    ([A, B], "abs(x - x) < 5", {}, UNSUPPORTED, "chain_join takes comparisons.*abs"),
    ([A, B, C], "overlaps(x, y)", {}, UNSUPPORTED, "chain_join takes.*overlaps"),
    ([A, B], "x < x and y < y", {}, UNSUPPORTED, "several columns on both sides between t0 and"),
    ([A, B], "x < x and x != y", {"algorithm": "ftj"}, UNSUPPORTED, "ftj.*not by 2 comparisons"),
    ([A, B], "x != x", {"algorithm": "prefap"}, UNSUPPORTED, "not by !="),
    ([A, B], "x < x", {"algorithm": "obt", "by": "k"}, UNSUPPORTED, "without equality columns"),
]  # fmt: skip


@pytest.mark.parametrize(("inputs", "text", "options", "kind", "said"), REFUSED)
def test_refused(inputs: Any, text: str, options: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        dt.chain_join(inputs, text, **options)
