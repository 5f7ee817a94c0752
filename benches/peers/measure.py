"""Asks every engine the same, compares the answers, and only then believes the times.

A case is one pair of tables and one question in each engine's words. Every formulation
1. answers it on a small instance: whole multisets of rows must agree;
2. answers it once in full, for the first time: the number of rows and the fingerprint must agree;
3. answers it five times more, if it is the fastest of its engine: their median counts.
Behind a run of more than five seconds there is none; one of more than a minute ends the attempt.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from processes import EngineProcess, LeftOut

#: Rows a side of the instance whose answers are compared row by row.
SMALL = 200
#: A run may take that long, in seconds; one that takes LONG is the last.
MOST_SECONDS, LONG = 60, 5
#: Engines keep memory. A process that needed more than this for an answer starts anew for the next
#: question, or one would not see how much that needs; one that needed MUCH ends at once, because
#: the others need it.
MOST_KEPT, MUCH = 100 * 10**6, 10**9
#: Fingerprints and files are off the clock, but not endless.
PATIENCE = 600
#: An engine that compares more pairs than that is not even asked.
MOST_COMPARISONS = 10**10

Tables = dict[str, pa.Table]
#: join: the engine joins by the condition as it stands; by hand: the user rewrote the question;
#: library: made for nothing else; floor: no join at all; check: asked once, for its answer.
Role = Literal["join", "by hand", "library", "floor", "check"]


@dataclass(frozen=True)
class Formulation:
    """The question in the words of one engine."""

    engine: str
    question: str
    label: str = ""
    settings: str = ""
    role: Role = "join"
    #: Rows a side, where they are not the case's.
    rows: int | None = None
    #: What share of all pairs is compared one by one.
    compared: float = 0.0
    #: Instead of the case's: table, count, stream or value.
    how: str | None = None

    @property
    def name(self) -> str:
        return f"{self.engine} ({self.label})" if self.label else self.engine


@dataclass(frozen=True)
class Case:
    """One line of a table: what is asked of whom."""

    title: str
    make: Callable[[int], Tables]
    rows: int
    formulations: list[Formulation]
    how: str = "table"
    #: Every run in a new process, so that none writes into memory that another left behind.
    fresh: bool = False
    #: Runs after the first.
    repeat: int = 5


@dataclass
class Outcome:
    """What became of one formulation."""

    formulation: Formulation
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    #: Of the first run: later ones find memory that it left.
    peak: int = 0
    rows: int = 0
    left_out: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


class Outcomes:
    """What became of a case."""

    def __init__(self, case: Case, outcomes: list[Outcome]) -> None:
        self.case = case
        self.all = outcomes

    @property
    def ours(self) -> Outcome:
        return self.all[0]

    def best(self, role: Role) -> Outcome | None:
        """The fastest of those in this role, other than ours."""
        timed = [
            outcome
            for outcome in self.all
            if outcome.formulation.role == role
            and outcome.formulation.engine != "dovetail"
            and not outcome.left_out
        ]
        return min(timed, key=lambda outcome: outcome.median, default=None)


class Measurement:
    """The engines' processes, and a folder for what they read and write."""

    def __init__(self, folder: Path) -> None:
        self.versions: dict[str, str] = {}
        self._folder = folder
        self._processes: dict[str, EngineProcess] = {}

    def __enter__(self) -> Measurement:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.close()

    def run(self, case: Case) -> Outcomes:
        """Measures all formulations of a case; the first of them is ours."""
        if case.formulations[0].engine != "dovetail":
            raise ValueError(f"{case.title}: expected dovetail first")
        for engine in {formulation.engine for formulation in case.formulations}:
            self._processes.setdefault(engine, EngineProcess(engine))
        runs = _CaseRun(case, self._folder, self._processes, self.versions)
        outcomes = [runs.first(formulation) for formulation in case.formulations]
        if case.repeat:
            for outcome in _fastest(outcomes):
                runs.again(outcome)
        return Outcomes(case, outcomes)


def _fastest(outcomes: list[Outcome]) -> Iterable[Outcome]:
    """Of each engine the formulation that was fastest, per role and size."""
    fastest: dict[tuple[str, Role, int | None], Outcome] = {}
    for outcome in outcomes:
        formulation = outcome.formulation
        if outcome.left_out or formulation.role == "check":
            continue
        group = (formulation.engine, formulation.role, formulation.rows)
        if group not in fastest or outcome.median < fastest[group].median:
            fastest[group] = outcome
    return fastest.values()


class _CaseRun:
    """One case: its tables, and the answers that must agree."""

    def __init__(
        self,
        case: Case,
        folder: Path,
        processes: dict[str, EngineProcess],
        versions: dict[str, str],
    ) -> None:
        self._case = case
        self._folder = folder
        self._processes = processes
        self._versions = versions
        self._paths: dict[int, dict[str, str]] = {}
        self._loaded: dict[str, tuple[Formulation, int]] = {}
        self._agreed: dict[int, tuple[str, Hashable]] = {}

    def first(self, formulation: Formulation) -> Outcome:
        """A small run and a whole one, both of them checked."""
        outcome = Outcome(formulation)
        rows = self._rows(formulation)
        with self._attempt(outcome):
            if (pairs := formulation.compared * rows**2) > MOST_COMPARISONS:
                raise LeftOut(f"compares {pairs:.0e} pairs one by one")
            if self._processes[formulation.engine].peak > MOST_KEPT:
                self._close(formulation.engine)
            self._begin(formulation)
            self._load(formulation, rows)
            self._run(outcome)
            if formulation.role != "floor":
                whole = self._ask(formulation, PATIENCE, do="fingerprint")["fingerprint"]
                self._agree(rows, formulation, (outcome.rows, whole))
            self._rest(formulation)
        return outcome

    def again(self, outcome: Outcome) -> None:
        """The runs that count, in place of the first."""
        formulation = outcome.formulation
        warm_up = Outcome(formulation)
        outcome.seconds, outcome.cpu = [], []
        with self._attempt(outcome):
            for _ in range(self._case.repeat):
                if self._case.fresh:
                    self._begin(formulation)
                if self._load(formulation, self._rows(formulation)) and not self._case.fresh:
                    self._run(warm_up)
                self._run(outcome)
                if outcome.seconds[-1] > LONG:
                    break
            self._rest(formulation)

    @contextmanager
    def _attempt(self, outcome: Outcome) -> Iterator[None]:
        """Others may be left out; we may not."""
        try:
            yield
        except LeftOut as reason:
            if outcome.formulation.engine == "dovetail":
                raise SystemExit(f"{self._case.title}: dovetail: {reason}") from None
            outcome.left_out = str(reason)

    def _begin(self, formulation: Formulation) -> None:
        """A small run: warms the engine up, and its answer is compared row by row."""
        if self._case.fresh:
            self._close(formulation.engine)
        self._load(formulation, SMALL)
        small = Outcome(formulation)
        self._run(small)
        if formulation.role == "floor":
            return
        answer: Hashable = small.rows
        if self._how(formulation) == "table":
            path = str(self._folder / "answer.arrow")
            self._ask(formulation, PATIENCE, do="save", path=path)
            with pa.OSFile(path) as file:
                answer = multiset(pa.ipc.open_file(file).read_all())
        self._agree(SMALL, formulation, answer)

    def _rest(self, formulation: Formulation) -> None:
        """Leaves the memory to whoever is next."""
        self._ask(formulation, PATIENCE, do="forget")
        if self._processes[formulation.engine].peak > MUCH:
            self._close(formulation.engine)

    def _close(self, engine: str) -> None:
        self._processes[engine].close()
        self._loaded.pop(engine, None)

    def _load(self, formulation: Formulation, rows: int) -> bool:
        """Gives the engine its tables, unless it has them."""
        if self._loaded.get(formulation.engine) == (formulation, rows):
            return False
        if rows not in self._paths:
            self._paths[rows] = self._write(rows)
        loaded = self._ask(
            formulation,
            PATIENCE,
            do="load",
            tables=self._paths[rows],
            settings=formulation.settings,
        )
        if formulation.role != "floor":
            self._versions[formulation.engine] = loaded["version"]
        self._loaded[formulation.engine] = (formulation, rows)
        return True

    def _write(self, rows: int) -> dict[str, str]:
        paths = {}
        for name, table in self._case.make(rows).items():
            paths[name] = str(self._folder / f"{name}-{rows}.arrow")
            with pa.ipc.new_file(paths[name], table.schema) as file:
                file.write_table(table)
        return paths

    def _run(self, outcome: Outcome) -> None:
        run = self._ask(
            outcome.formulation,
            MOST_SECONDS,
            do="run",
            question=outcome.formulation.question,
            how=self._how(outcome.formulation),
        )
        outcome.seconds.append(run["seconds"])
        outcome.cpu.append(run["cpu"])
        outcome.peak = outcome.peak or run["peak"]
        outcome.rows = run["rows"]

    def _ask(self, formulation: Formulation, seconds: float, **message: Any) -> dict[str, Any]:
        try:
            return self._processes[formulation.engine].ask(seconds, **message)
        except LeftOut:
            self._close(formulation.engine)
            raise

    def _agree(self, rows: int, formulation: Formulation, answer: Hashable) -> None:
        first, expected = self._agreed.setdefault(rows, (formulation.name, answer))
        if answer != expected:
            raise SystemExit(
                f"{self._case.title}, {rows:,} rows: {formulation.name} and {first} give "
                f"different answers: {str(answer)[:200]} and {str(expected)[:200]}"
            )

    def _rows(self, formulation: Formulation) -> int:
        return formulation.rows or self._case.rows

    def _how(self, formulation: Formulation) -> str:
        return formulation.how or self._case.how


def multiset(table: pa.Table) -> Hashable:
    """The rows with how often each occurs; columns by name."""
    columns = [table[name].to_pylist() for name in sorted(table.column_names)]
    rows = Counter(
        zip(*([_hashable(value) for value in column] for column in columns), strict=True)
    )
    return tuple(sorted(table.column_names)), frozenset(rows.items())


def _hashable(value: Any) -> Hashable:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value
