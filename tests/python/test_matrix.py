"""Every cell of the support matrix in README.md is true for Python and the command line."""

from __future__ import annotations

from pathlib import Path

import matrix
import pyarrow as pa
import pyarrow.parquet
import pytest
from matrix import CASES, KINDS, LEFT, RIGHT, Case

import dovetail as dt
from dovetail import cli, files


def test_the_matrix_is_complete() -> None:
    """Each predicate with each kind, once."""
    assert {case.predicate for case in CASES} == {*matrix.TERMS}
    assert len(CASES) == len({str(case) for case in CASES}) == 2 * 6 * len(KINDS)
    assert {case.how for case in CASES} == set(KINDS)


def in_python(case: Case) -> pa.Table:
    function = getattr(dt, case.function)
    return function(LEFT, RIGHT, case.predicate, how=case.how, by=case.by).to_arrow()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_python(case: Case) -> None:
    matrix.check(case, "python", in_python)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_cli(case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, table in (("left", LEFT), ("right", RIGHT)):
        pyarrow.parquet.write_table(table, tmp_path / f"{name}.parquet")
    out = tmp_path / "out.parquet"

    def on_the_command_line(case: Case) -> pa.Table:
        command = case.function.removesuffix("_join")
        inputs = [str(tmp_path / "left.parquet"), str(tmp_path / "right.parquet")]
        options = ["--where", case.predicate, "--how", case.how, "--out", str(out)]
        if case.by:
            options += ["--by", case.by]
        status = cli.main([command, *inputs, *options])
        if status:
            assert status == 1
            assert not out.exists()
            raise dt.UnsupportedError(capsys.readouterr().err)
        return files.read_table(out)

    matrix.check(case, "cli", on_the_command_line)
