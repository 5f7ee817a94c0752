"""Theta joins against DuckDB, Polars, DataFusion and libraries for intervals, two threads each.

`make bench-peers` installs the peers and runs it; `--quick` runs it on small tables, `--only NAME`
one section of it, `--json FILE` writes every run down. measure.py says how times are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import theta_data as data
from measure import Case, Formulation, Outcomes, Tables
from report import Goal, Section, at_most, faster, main

STREAMING = "streaming"
#: DataFusion has a join for one inequality, but does not use it unasked.
PIECEWISE = "SET datafusion.optimizer.enable_piecewise_merge_join = true"
#: A band in SQL, and the width of bins of which it touches two.
WITHIN, BIN = f"t BETWEEN u - {data.REACH} AND u + {data.REACH}", 2 * data.REACH + 1
PAYLOADS = {"ids": False, "ids, a text and a list": True}


def joins(where: str, sql: str, polars: str) -> list[Formulation]:
    """Every engine's own join by inequalities."""
    query = f"SELECT * FROM l JOIN r ON {sql}"
    frames = f"l.join_where(r, {polars})"
    return [
        Formulation("dovetail", f"dt.theta_join(l, r, {where!r})"),
        Formulation("duckdb", query),
        Formulation("polars", frames),
        Formulation("polars", frames, label="streaming", settings=STREAMING),
        Formulation("datafusion", query, compared=1.0),
    ]


def one_inequality() -> list[Formulation]:
    *engines, datafusion = joins("a <= b", "a <= b", "pl.col('a') <= pl.col('b')")
    return [*engines, replace(datafusion, label="piecewise", settings=PIECEWISE, compared=0.0)]


def two_inequalities() -> list[Formulation]:
    polars = "pl.col('x') > pl.col('x2'), pl.col('y') < pl.col('y2')"
    return joins("x > x2 and y < y2", "x > x2 AND y < y2", polars)


def overlaps() -> list[Formulation]:
    """The engines, what one writes by hand for them (bins), and libraries for nothing else."""
    polars = "pl.col('x') < pl.col('y2'), pl.col('y') > pl.col('x2')"
    width = data.LONGEST
    binned = f"""
        WITH a AS (SELECT *, unnest(range(x // {width}, (y - 1) // {width} + 1)) AS bin FROM l),
             b AS (SELECT *, unnest(range(x2 // {width}, (y2 - 1) // {width} + 1)) AS bin FROM r)
        SELECT * EXCLUDE (bin) FROM a JOIN b USING (bin)
        WHERE x < y2 AND y > x2 AND bin = greatest(x // {width}, x2 // {width})"""
    library = partial(Formulation, question="x y x2 y2", role="library")
    return [
        *joins("overlaps(x, y, x2, y2)", "x < y2 AND y > x2", polars),
        Formulation("duckdb", binned, label="bins", role="by hand"),
        *(
            library("polars-bio", label=algorithm, settings=algorithm)
            for algorithm in ("Coitrees", "SuperIntervals")
        ),
        *(library(engine) for engine in ("ncls", "pyranges", "bioframe")),
    ]


def keyed_band() -> list[Formulation]:
    """Equality and a band: hash joins compare all pairs of a key; bins by hand do not."""
    query = f"SELECT * FROM l JOIN r USING (k) WHERE {WITHIN}"
    within = f"(pl.col('t') - pl.col('u')).abs() <= {data.REACH}"
    low, high = (f"(pl.col('u') {sign} {data.REACH}) // {BIN}" for sign in "-+")
    each = 1 / data.KEYS
    return [
        Formulation("dovetail", f"dt.theta_join(l, r, 'abs(t - u) <= {data.REACH}', by='k')"),
        Formulation("duckdb", query, compared=each),
        Formulation(
            "polars",
            f"l.join(r, on='k').filter({within})",
            label="streaming",
            settings=STREAMING,
            compared=each,
        ),
        Formulation("datafusion", query, compared=each),
        keyed_band_by_hand(),
        Formulation(
            "polars",
            f"l.with_columns(bin=pl.col('t') // {BIN})"
            f".join(r.with_columns(bin=pl.int_ranges({low}, {high} + 1)).explode('bin'),"
            f" on=['k', 'bin']).filter({within}).drop('bin')",
            label="bins",
            role="by hand",
        ),
    ]


def keyed_band_by_hand() -> Formulation:
    """Also quick on keys of any distribution."""
    low, high = (f"(u {sign} {data.REACH}) // {BIN}" for sign in "-+")
    query = f"""
        WITH a AS (SELECT *, t // {BIN} AS bin FROM l),
             b AS (SELECT *, unnest(range({low}, {high} + 1)) AS bin FROM r)
        SELECT * EXCLUDE (bin) FROM a JOIN b USING (k, bin) WHERE {WITHIN}"""
    return Formulation("duckdb", query, label="bins", role="by hand")


def checked(formulations: list[Formulation]) -> list[Formulation]:
    """Ours, and DuckDB only to say whether it is right."""
    ours, theirs, *_ = formulations
    return [ours, replace(theirs, role="check")]


def one_inequality_section(rows: int, repeat: int) -> Section:
    """Once with processes that keep the memory of the run before, once with new ones."""
    floor = Formulation("write-only", one_inequality()[0].question, role="floor")
    others = [each for each in one_inequality() if each.settings != STREAMING]
    cases = []
    for payload, wide in PAYLOADS.items():
        title = f"{rows:,} rows a side, {payload}"
        make = partial(data.one_inequality, wide=wide)
        cases += [
            Case(title, make, rows, one_inequality(), repeat=repeat),
            Case(f"{title}, new process", make, rows, [*others, floor], fresh=True, repeat=repeat),
        ]

    def goals(measured: list[Outcomes]) -> Iterator[Goal]:
        for outcomes in measured:
            yield faster(outcomes, 3)
            if written := outcomes.best("floor"):
                text = f"{outcomes.case.title}: against writing the output only"
                yield at_most(text, outcomes.ours.median / written.median, 1.5)

    return Section("one-inequality", cases, goals)


def count_section(ours: int, theirs: int, repeat: int) -> Section:
    """What the others count is fifty times smaller a side than what we count."""
    running = """
        SELECT sum(n) FROM l ASOF JOIN
            (SELECT b, count(*) OVER (ORDER BY b DESC) AS n FROM r) AS running ON a <= b"""
    asof = Formulation("duckdb", running, label="ASOF", role="by hand", how="value")
    dovetail, *peers = one_inequality()
    formulations = [
        replace(dovetail, label=f"{ours:,} rows", rows=ours),
        dovetail,
        *peers,
        asof,
        replace(asof, label=f"ASOF, {ours:,} rows", rows=ours),
    ]
    cases = [
        Case(
            f"{theirs:,} rows a side, ours {ours:,}, {payload}",
            partial(data.one_inequality, wide=wide),
            theirs,
            formulations,
            how="count",
            repeat=repeat,
        )
        for payload, wide in PAYLOADS.items()
    ]

    def goals(measured: list[Outcomes]) -> Iterator[Goal]:
        for outcomes in measured:
            yield faster(outcomes, 1)

    return Section("count", cases, goals)


def skew_section(inequality: dict[str, int], band: int, repeat: int) -> Section:
    """Ours only, per output row; keys of the inequality are chosen for outputs of one size."""
    kinds = {"uniform": data.uniform_keys, "zipf": data.zipf_keys, "equal": data.equal_keys}
    inequalities = [
        Case(
            f"one inequality, {rows:,} rows a side, {kind} keys",
            partial(data.skewed_inequality, keys=kinds[kind]),
            rows,
            checked(one_inequality()),
            repeat=repeat,
        )
        for kind, rows in inequality.items()
    ]
    by_hand = [keyed_band()[0], keyed_band_by_hand()]
    bands = [
        Case(
            f"equality and band, {band:,} rows a side, {kind} keys",
            partial(data.keyed_band, keys=keys),
            band,
            checked(by_hand),
            repeat=repeat,
        )
        for kind, keys in kinds.items()
    ]

    def goals(measured: list[Outcomes]) -> Iterator[Goal]:
        for uniform, *others in (measured[:3], measured[3:]):
            base = uniform.ours.median / uniform.ours.rows
            for outcomes in others:
                each = outcomes.ours.median / outcomes.ours.rows
                yield at_most(f"{outcomes.case.title}: per row, against uniform", each / base, 1)

    return Section("skew", inequalities + bands, goals)


def memory_section(rows: int) -> Section:
    """Batches are looked at and dropped; one run, since this is not about time."""
    ours, duckdb, _, polars, datafusion = one_inequality()
    cases = [
        Case(
            f"{rows:,} rows a side, {payload}, streamed",
            partial(data.one_inequality, wide=wide),
            rows,
            [ours, duckdb, polars, datafusion],
            how="stream",
            fresh=True,
            repeat=0,
        )
        for payload, wide in PAYLOADS.items()
    ]

    def goals(measured: list[Outcomes]) -> Iterator[Goal]:
        for outcomes in measured:
            yield at_most(
                f"{outcomes.case.title}: peak above the inputs",
                outcomes.ours.peak / 1e6,
                300,
                " MB",
            )

    return Section("memory", cases, goals)


def growth_section(rows: int, repeat: int) -> Section:
    """As many results from twice the rows."""
    makers = {
        "one inequality": (data.one_inequality_fixed, one_inequality()),
        "two inequalities": (data.two_inequalities, two_inequalities()),
        "overlap": (data.intervals, overlaps()),
        "equality and band": (data.keyed_band, [keyed_band()[0], keyed_band_by_hand()]),
    }
    cases = [
        Case(
            f"{name}, {size:,} rows a side",
            partial(make, results=rows),
            size,
            checked(formulations),
            repeat=repeat,
        )
        for name, (make, formulations) in makers.items()
        for size in (rows, 2 * rows)
    ]

    def goals(measured: list[Outcomes]) -> Iterator[Goal]:
        for name, once, twice in zip(makers, measured[::2], measured[1::2], strict=True):
            ratio = twice.ours.median / once.ours.median
            yield at_most(f"{name}: twice the rows, as many results", ratio, 2.3)

    return Section("growth", cases, goals)


def sized_section(
    name: str,
    sizes: list[int],
    make: Callable[..., Tables],
    formulations: list[Formulation],
    times: float,
    repeat: int,
) -> Section:
    """One question at several sizes with either payload."""
    cases = [
        Case(
            f"{rows:,} rows a side, {payload}",
            partial(make, wide=wide),
            rows,
            formulations,
            repeat=repeat,
        )
        for rows in sizes
        for payload, wide in PAYLOADS.items()
    ]

    def goals(measured: list[Outcomes]) -> Iterator[Goal]:
        for outcomes in measured:
            yield faster(outcomes, times)
            if any(each.role == "library" for each in formulations):
                yield faster(outcomes, times, than="library")

    return Section(name, cases, goals)


def sections(quick: bool) -> list[Section]:
    """Everything that is promised of theta joins, or the same on small tables."""
    small, medium, large, repeat = 20_000, 300_000, 1_000_000, 5
    skewed = {"uniform": 13_000, "zipf": 11_000, "equal": 9_000}
    if quick:
        small, medium, large, repeat = 2_000, 5_000, 10_000, 0
        skewed = {kind: rows // 10 for kind, rows in skewed.items()}
    return [
        one_inequality_section(small, repeat),
        count_section(large, small, repeat),
        sized_section(
            "two-inequalities",
            [medium, large],
            data.two_inequalities,
            two_inequalities(),
            2,
            repeat,
        ),
        sized_section("overlap", [medium, large], data.intervals, overlaps(), 4, repeat),
        sized_section("keyed-band", [large], data.keyed_band, keyed_band(), 2, repeat),
        skew_section(skewed, large, repeat),
        memory_section(small),
        growth_section(large, repeat),
    ]


if __name__ == "__main__":
    main(__doc__, sections)
