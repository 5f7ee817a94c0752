"""The command line: ``dovetail theta left.parquet right.csv --where "a < b" --out out.parquet``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import dovetail
from dovetail.errors import DovetailError
from dovetail.files import file_format, read_table, write_batches
from dovetail.result import JoinResult
from dovetail.theta import theta_join

#: Rows that ``--format table`` prints unless told otherwise.
TABLE_ROWS = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
    except DovetailError as error:
        print(f"dovetail: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("dovetail: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader has gone (`| head`); nothing more can be said on standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dovetail", description="The joins that SQL engines do badly, done right."
    )
    parser.add_argument("--version", action="version", version=dovetail.__version__)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_theta(commands)
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
    theta.add_argument("--how", default="inner", help="inner (default)")
    theta.add_argument("--suffix", default="_right", help="for right columns whose name is taken")
    theta.add_argument("--algorithm", default="auto", help="auto (default) or nested_loop")
    _add_common(theta)
    theta.set_defaults(run=_run_theta)


def _add_common(command: argparse.ArgumentParser) -> None:
    """What every join takes: where the result goes, and how it is computed."""
    command.add_argument("--out", type=Path, help="output file: .parquet, .csv or .arrow")
    command.add_argument(
        "--format", choices=["table", "count", "explain"], help="print this instead of writing"
    )
    command.add_argument("--rows", type=int, default=TABLE_ROWS, help="rows that a table prints")
    command.add_argument("--workers", type=int, help="threads (default: all cores)")
    command.add_argument("--progress", action="store_true", help="show a progress bar")


def _run_theta(options: argparse.Namespace) -> int:
    _check_output(options)
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
        workers=options.workers,
        progress=options.progress,
    )
    return _deliver(result, options)


def _check_output(options: argparse.Namespace) -> None:
    """A bad ``--out`` is said before the work, not after it."""
    if options.out is None and options.format is None:
        options.format = "table"
    if options.out is not None:
        file_format(options.out)


def _deliver(result: JoinResult, options: argparse.Namespace) -> int:
    if options.format == "count":
        print(result.count())
    elif options.format == "explain":
        print(result.explain(), end="")
    elif options.format == "table":
        _print_table(result, options.rows)
    if options.out is not None:
        rows = write_batches(options.out, result.schema, result)
        print(f"wrote {rows:,} rows to {options.out}", file=sys.stderr)
    return 0


def _print_table(result: JoinResult, rows: int) -> None:
    shown = result.head(rows + 1)
    names = shown.schema.names
    cells = [names] + [
        [_cell(value) for value in row.values()] for row in shown.slice(0, rows).to_pylist()
    ]
    widths = [max(len(row[i]) for row in cells) for i in range(len(names))]
    for number, row in enumerate(cells):
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )
        if number == 0:
            print("  ".join("-" * width for width in widths))
    if shown.num_rows > rows:
        print(f"… (the first {rows} rows)")


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= 40 else text[:39] + "…"


if __name__ == "__main__":
    sys.exit(main())
