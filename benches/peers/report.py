"""What a benchmark says: the machine, a table a case, the goals, and all of it as JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engines import THREADS
from measure import Case, Measurement, Outcome, Outcomes


@dataclass(frozen=True)
class Goal:
    """A figure and whether it is what was promised; no figure where nobody was measured."""

    text: str
    figure: str
    met: bool | None


@dataclass(frozen=True)
class Section:
    """Cases that have goals in common; `goals` gets their outcomes in the same order."""

    name: str
    cases: list[Case]
    goals: Callable[[list[Outcomes]], Iterator[Goal]]


def faster(outcomes: Outcomes, times: float, than: str = "join") -> Goal:
    """How often our time fits into that of the best peer."""
    peer = outcomes.best(than)  # type: ignore[arg-type]
    whom = {"join": "best peer", "library": "best library"}[than]
    text = f"{outcomes.case.title}: at least {times:g} x faster than the {whom}"
    if peer is None:
        return Goal(text, "nobody to compare with", None)
    ratio = peer.median / outcomes.ours.median
    return Goal(text, f"{ratio:.2f} x ({peer.formulation.name})", ratio >= times)


def at_most(text: str, ratio: float, most: float, unit: str = " x") -> Goal:
    """A figure with an upper limit."""
    return Goal(f"{text}: at most {most:g}{unit}", f"{ratio:.2f}{unit}", ratio <= most)


def main(doc: str | None, sections: Callable[[bool], Sequence[Section]]) -> None:
    """Measures and prints all sections; `sections` gives them in full size or quick."""
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    names = [section.name for section in sections(True)]
    parser.add_argument("--only", metavar="NAME", choices=names, help=", ".join(names))
    parser.add_argument("--quick", action="store_true", help="small tables, one run each")
    parser.add_argument("--json", metavar="FILE", help="write everything there, too")
    options = parser.parse_args()
    chosen = [
        section for section in sections(options.quick) if options.only in (None, section.name)
    ]
    report: dict[str, Any] = {"machine": machine(), "threads": THREADS, "cases": [], "goals": []}
    print(f"{report['machine']}; {THREADS} threads each")
    with tempfile.TemporaryDirectory() as folder, Measurement(Path(folder)) as measurement:
        report["versions"] = measurement.versions
        goals = []
        for section in chosen:
            measured = []
            for case in section.cases:
                outcomes = measurement.run(case)
                _print_case(section.name, outcomes)
                report["cases"] += [_record(section.name, case, each) for each in outcomes.all]
                measured.append(outcomes)
            goals += [(section.name, goal) for goal in section.goals(measured)]
        print("\ngoals" + " (not judged: these tables are small)" * options.quick)
        for name, goal in goals:
            met = "-" if options.quick else {True: "yes", False: "NO", None: "?"}[goal.met]
            print(f"  {met:3}  {name}: {goal.text}: {goal.figure}")
        report["goals"] = [{"section": name, **vars(goal)} for name, goal in goals]
        print("\n" + ", ".join(f"{name} {known}" for name, known in measurement.versions.items()))
    if options.json:
        Path(options.json).write_text(json.dumps(report, indent=2), encoding="utf-8")


def machine() -> str:
    """Processor, system, and how busy it is with other things."""
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    load = os.getloadavg()[0]
    busy = " (BUSY: times are not to be trusted)" if load > 1 else ""
    return (
        f"{models[0] if models else platform.machine()}, {os.cpu_count()} processors, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}, "
        f"load {load:.1f}{busy}"
    )


def _print_case(section: str, outcomes: Outcomes) -> None:
    ours = outcomes.ours
    print(f"\n{section}: {outcomes.case.title} -> {ours.rows:,} rows")
    for outcome in outcomes.all:
        formulation = outcome.formulation
        if outcome.left_out:
            print(f"  {formulation.name:30} left out: {outcome.left_out}", flush=True)
            continue
        runs = len(outcome.seconds)
        notes = [] if formulation.role == "join" else [formulation.role]
        notes += [] if runs == outcomes.case.repeat else [f"{runs} run"]
        print(
            f"  {formulation.name:30} {outcome.median * 1000:9,.1f} ms"
            f" {outcome.median / ours.median:7.2f} x  cpu {min(outcome.cpu):6.2f} s"
            f"  peak {outcome.peak / 1e6:7,.0f} MB  {', '.join(notes)}".rstrip(),
            flush=True,
        )


def _record(section: str, case: Case, outcome: Outcome) -> dict[str, Any]:
    formulation = outcome.formulation
    return {
        "section": section,
        "case": case.title,
        "engine": formulation.engine,
        "label": formulation.label,
        "role": formulation.role,
        "question": formulation.question,
        "settings": formulation.settings,
        "rows": outcome.rows,
        "seconds": outcome.seconds,
        "cpu": outcome.cpu,
        "peak_bytes": outcome.peak,
        "left_out": outcome.left_out,
    }
