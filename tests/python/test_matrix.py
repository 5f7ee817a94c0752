"""Every cell of the support matrix in README.md is true for Python and the command line."""

from __future__ import annotations

from pathlib import Path

import matrix
import pyarrow as pa
import pyarrow.parquet
import pytest
from matrix import CASES, KINDS, Case

import dovetail as dt
from dovetail import cli, files


def test_the_matrix_is_complete() -> None:
    """Each predicate with each kind, once."""
    theta = [case for case in CASES if case.function == "theta_join"]
    assert {case.predicate for case in theta} == {*matrix.TERMS}
    assert len(theta) == len({str(case) for case in theta}) == 2 * 6 * len(KINDS)
    assert {case.how for case in theta} == set(KINDS)
    chains = [case for case in CASES if case.function == "chain_join"]
    assert {case.predicate for case in chains if case.works("python")} == {*matrix.LINKS}
    assert {case.how for case in chains} == {"inner"}
    assert len(theta) + len(chains) == len(CASES)


def in_python(case: Case) -> pa.Table:
    return case.run(dt, case.inputs()).to_arrow()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_python(case: Case) -> None:
    matrix.check(case, "python", in_python)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_cli(case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = [tmp_path / f"{number}.parquet" for number in range(len(case.inputs()))]
    for path, table in zip(inputs, case.inputs(), strict=True):
        pyarrow.parquet.write_table(table, path)
    out = tmp_path / "out.parquet"

    def on_the_command_line(case: Case) -> pa.Table:
        command = case.function.removesuffix("_join")
        options = ["--where", case.predicate, "--out", str(out)]
        if case.function == "theta_join":
            options += ["--how", case.how]
        if case.by:
            options += ["--by", case.by]
        status = cli.main([command, *map(str, inputs), *options])
        if status:
            assert status == 1
            assert not out.exists()
            raise dt.UnsupportedError(capsys.readouterr().err)
        return files.read_table(out)

    matrix.check(case, "cli", on_the_command_line)
