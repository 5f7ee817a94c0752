"""The command line: ``dovetail theta left.parquet right.csv --where "a < b" --out out.parquet``.

Exit status: 0, 1 after an error (said on standard error), 2 for arguments that make no sense, 128
and the signal's number after a signal.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa

import dovetail
from dovetail.chain import chain_join
from dovetail.errors import DovetailError
from dovetail.files import check_output, read_table, write_batches
from dovetail.partitioning import Partitioning
from dovetail.result import JoinResult
from dovetail.theta import theta_join

#: Rows that ``--format table`` prints unless told otherwise.
TABLE_ROWS = 20


#: Characters that a cell of a printed table shows.
CELL_WIDTH = 40


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    options = _parser().parse_args(arguments)
    _print_anything()
    # Unwinds like Ctrl-C does, so that no temporary file is left.
    before = signal.signal(signal.SIGTERM, _terminated)
    try:
        options.run(options)
        sys.stdout.flush()
    except DovetailError as error:
        print(f"dovetail: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("dovetail: interrupted", file=sys.stderr)
        return 128 + int(signal.SIGINT)
    except BrokenPipeError:
        # The reader has gone (`| head`): nothing to say, and nobody to say it to.
        _forget_output()
    except OSError as error:
        _forget_output()
        print(f"dovetail: cannot print: {error.strerror or error}", file=sys.stderr)
        return 1
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0


def _terminated(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


def _print_anything() -> None:
    """Characters that the terminal cannot show are escaped, not an error."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _forget_output() -> None:
    """What is left in the buffer would fail again when the interpreter ends."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dovetail", description="The joins that SQL engines do badly, done right."
    )
    parser.add_argument("--version", action="version", version=dovetail.__version__)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_theta(commands)
    _add_chain(commands)
    return parser


def _add_theta(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    theta = commands.add_parser(
        "theta",
        help="pairs of rows by inequality",
        description="All pairs of a left and a right row for which the predicate holds.",
    )
    theta.add_argument("left", type=Path, help="left table: .parquet, .csv or .arrow")
    theta.add_argument("right", type=Path, help="right table")
    theta.add_argument("--where", required=True, help='predicate, for example "a < b and c >= d"')
    theta.add_argument("--by", action="append", help="column that must be equal (repeatable)")
    theta.add_argument("--left-by", action="append", help="the same, by its name on the left")
    theta.add_argument("--right-by", action="append", help="the same, by its name on the right")
    theta.add_argument(
        "--how", default="inner", help="inner (default), left, right, full, semi or anti"
    )
    theta.add_argument("--suffix", default="_right", help="for right columns whose name is taken")
    _add_algorithm(theta)
    _add_common(theta)
    theta.set_defaults(run=_run_theta)


def _add_chain(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    chain = commands.add_parser(
        "chain",
        help="tuples of rows of any number of tables, each compared with the next",
        description="All tuples of a row of each table for which the predicate holds.",
    )
    chain.add_argument(
        "inputs", type=Path, nargs="+", help="tables, two or more: .parquet, .csv or .arrow"
    )
    chain.add_argument(
        "--where",
        required=True,
        help='predicate, for example "a < b >= c" or "t0.a < t1.b and t1.b >= t2.c"',
    )
    chain.add_argument("--by", action="append", help="column that must be equal (repeatable)")
    chain.add_argument(
        "--suffix", default="_", help="before the number of its input, for a name that is taken"
    )
    _add_algorithm(chain)
    _add_common(chain)
    chain.set_defaults(run=_run_chain)


def _add_algorithm(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--algorithm",
        default="auto",
        help="auto (default), nested_loop, prefap, ftj, cfs, obt or rbm",
    )
    paper = command.add_argument_group("options of prefap, ftj, cfs, obt and rbm")
    none: dict[str, Any] = {"default": argparse.SUPPRESS}
    paper.add_argument("--partitions", type=int, help="partitions a side (default: 10)", **none)
    for step, what in (
        ("prefilter", "keep rows that the other side's extremes rule out"),
        ("amalgamation", "cut each side at its own boundaries only"),
        ("repartition", "leave oversized partitions whole"),
    ):
        paper.add_argument(f"--no-{step}", dest=step, action="store_false", help=what, **none)
    paper.add_argument(
        "--ceiling", action="store_true", help="split partitions into whole spans", **none
    )
    paper.add_argument(
        "--window", type=int, help="the paper's w, of which average sizes are taken", **none
    )


def _partitioning(options: argparse.Namespace) -> Partitioning | None:
    """The options of the paper's algorithms, if any were given."""
    names = [field.name for field in dataclasses.fields(Partitioning)]
    given = {name: getattr(options, name) for name in names if hasattr(options, name)}
    return Partitioning(**given) if given else None


def _add_common(command: argparse.ArgumentParser) -> None:
    """What every join takes: where the result goes, and how it is computed."""
    target = command.add_mutually_exclusive_group()
    target.add_argument("--out", type=Path, help="output file: .parquet, .csv or .arrow")
    target.add_argument(
        "--format",
        choices=["table", "count", "explain"],
        default="table",
        help="what to print where there is no --out (default: table)",
    )
    command.add_argument(
        "--rows", type=_row_count, default=TABLE_ROWS, help="rows that a table prints"
    )
    command.add_argument("--workers", type=int, help="threads (default: all cores)")
    command.add_argument("--progress", action="store_true", help="show a progress bar")


def _row_count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}; expected a whole number from 0 on")
    return int(text)


def _run_theta(options: argparse.Namespace) -> None:
    if options.out is not None:
        check_output(options.out)
    result = theta_join(
        read_table(options.left),
        read_table(options.right),
        options.where,
        by=options.by,
        left_by=options.left_by,
        right_by=options.right_by,
        how=options.how,
        suffix=options.suffix,
        algorithm=options.algorithm,
        options=_partitioning(options),
        workers=options.workers,
        progress=options.progress,
    )
    _deliver(result, options)


def _run_chain(options: argparse.Namespace) -> None:
    if options.out is not None:
        check_output(options.out)
    result = chain_join(
        [read_table(path) for path in options.inputs],
        options.where,
        by=options.by,
        suffix=options.suffix,
        algorithm=options.algorithm,
        options=_partitioning(options),
        workers=options.workers,
        progress=options.progress,
    )
    _deliver(result, options)


def _deliver(result: JoinResult, options: argparse.Namespace) -> None:
    if options.out is not None:
        rows = write_batches(options.out, result.schema, result)
        print(f"wrote {rows:,} rows to {options.out}", file=sys.stderr)
    elif options.format == "count":
        print(result.count())
    elif options.format == "explain":
        print(result.explain(), end="")
    else:
        _print_table(result, options.rows)


def _print_table(result: JoinResult, rows: int) -> None:
    shown = result.head(rows + 1)
    columns = [
        [_one_line(name), *_cells(column)]
        for name, column in zip(shown.schema.names, shown.slice(0, rows).columns, strict=True)
    ]
    widths = [max(map(len, column)) for column in columns]
    for number, row in enumerate(zip(*columns, strict=True)):
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )
        if number == 0:
            print("  ".join("-" * width for width in widths))
    if shown.num_rows > rows:
        print(f"… (the first {rows} rows)")


def _cells(column: pa.ChunkedArray[Any]) -> list[str]:
    """A column as text: by Arrow where it can, which knows nanoseconds and years beyond 9999."""
    try:
        is_text = pa.types.is_temporal(column.type) or pa.types.is_decimal(column.type)
        values = (column.cast(pa.string()) if is_text else column).to_pylist()
    except (pa.ArrowException, ValueError, OverflowError):
        values = [str(scalar) if scalar.is_valid else None for scalar in column]
    return ["" if value is None else _one_line(str(value)) for value in values]


def _one_line(text: str) -> str:
    text = text[:CELL_WIDTH] if len(text) <= CELL_WIDTH else text[: CELL_WIDTH - 1] + "…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


if __name__ == "__main__":
    sys.exit(main())
