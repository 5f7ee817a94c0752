"""The support matrix of README.md, cell by cell, and what a cell promises.

`CASES` has one entry per function, predicate, kind of join and use of `by`; a test for a host runs
its function over them and calls `check` with what came of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import oracle
import pyarrow as pa

import dovetail as dt

README = Path(__file__).parents[2] / "README.md"
HOSTS = ("python", "cli", "spark")
KINDS = ("inner", "left", "right", "full", "semi", "anti")

LEFT = pa.table(
    {"a": [1, 5, 9, None, 4], "c": [3, 6, 9, 1, 7], "k": ["u", "v", "u", "v", None], "l": range(5)}
)
RIGHT = pa.table(
    {"b": [2, 5, None, 8], "d": [4, 9, 1, 8], "k": ["u", "v", "v", "u"], "r": range(4)}
)

TERMS: dict[str, list[oracle.Term | oracle.Band]] = {
    "a < b": [("a", "<", "b")],
    "a != b": [("a", "!=", "b")],
    "a < b and c >= d": [("a", "<", "b"), ("c", ">=", "d")],
    "a between b and d": [("a", ">=", "b"), ("a", "<=", "d")],
    "overlaps(a, c, b, d)": [("a", "<", "d"), ("c", ">", "b")],
    "abs(a - b) <= 5": [("a", "<=", "b", 5)],
}
"""What the predicates of the matrix come down to, for the oracle."""

THIRD = pa.table({"e": [3, 9, None, 6, 1], "k": ["v", "u", "u", "v", "u"], "t": range(5)})

LINKS: dict[str, list[list[oracle.Term]]] = {
    "a < b >= e": [[("a", "<", "b")], [("b", ">=", "e")]],
    "t0.a != t1.b and t1.d < t2.e": [[("a", "!=", "b")], [("d", "<", "e")]],
    "t1.b between t0.a and t0.c and t1.d > t2.e": [
        [("a", "<=", "b"), ("c", ">=", "b")],
        [("d", ">", "e")],
    ],
    "t0.a between t1.b and t1.d and t1.b < t2.e": [
        [("a", ">=", "b"), ("a", "<=", "d")],
        [("b", "<", "e")],
    ],
}
"""The same for chains of three inputs."""


@dataclass(frozen=True)
class Case:
    """One line of the matrix for one kind, with `by` or without."""

    function: str
    predicate: str
    how: str
    by: str | None
    support: tuple[tuple[str, bool], ...]

    def works(self, host: str) -> bool:
        """Whether the matrix says yes for `host`."""
        return dict(self.support)[host]

    def inputs(self) -> list[pa.Table]:
        """The tables that it joins."""
        return [LEFT, RIGHT, THIRD] if self.function == "chain_join" else [LEFT, RIGHT]

    def run(self, functions: Any, inputs: list[Any]) -> Any:
        """Calls the function of this name among `functions`, with `inputs` as it wants them."""
        function = getattr(functions, self.function)
        if self.function == "chain_join":
            return function(inputs, self.predicate, by=self.by)
        return function(*inputs, self.predicate, how=self.how, by=self.by)

    def expected(self) -> list[Any]:
        """The output rows, in any order."""
        if self.function == "chain_join":
            shared = [self.by] if self.by else []
            tuples = oracle.chain_tuples(self.inputs(), LINKS[self.predicate], shared)
            return oracle.chain_rows(self.inputs(), tuples, shared)
        by = [(self.by, self.by)] if self.by else []
        pairs = oracle.theta_pairs(LEFT, RIGHT, TERMS[self.predicate], by)
        rows = oracle.outcome(LEFT, RIGHT, pairs, self.how)
        return oracle.pair_rows(LEFT, RIGHT, rows, by, self.how)

    def __str__(self) -> str:
        return f"{self.function} {self.how} {self.predicate}" + (
            f" by {self.by}" if self.by else ""
        )


def read(text: str) -> list[Case]:
    """The cases of the support matrix in `text`, which is all of README.md."""
    section = text.partition("\n## Support matrix\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert table[:1] in ([], [["function", "predicate", "how", *HOSTS]])
    cases: list[Case] = []
    for function, predicate, kinds, *hosts in table[2:]:
        assert set(hosts) <= {"yes", "no"}, hosts
        support = tuple((host, said == "yes") for host, said in zip(HOSTS, hosts, strict=True))
        (text_of_predicate,) = re.findall("`(.+)`", predicate)
        cases += [
            Case(function.strip("`"), text_of_predicate, how, by, support)
            for how in kinds.split(", ")
            for by in (None, "k")
        ]
    return cases


CASES = read(README.read_text(encoding="utf-8"))


def check(case: Case, host: str, run: Callable[[Case], pa.Table]) -> None:
    """Runs `case` on `host`: it gives the oracle's rows, or is refused, as the matrix says."""
    if case.works(host):
        assert oracle.rows(run(case)) == oracle.Counter(case.expected())
        return
    try:
        output = run(case)
    except dt.UnsupportedError as error:
        said = (case.predicate, case.how) if case.how != "inner" else (case.predicate, "chain")
        assert any(word in str(error) for word in said)  # noqa: PT017
    else:
        raise AssertionError(f"{case} gave {output.num_rows} rows on {host}; the matrix says no")
