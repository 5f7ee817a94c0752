"""`dovetail chain`, and the options of the paper's algorithms on the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import oracle
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from stocks import highs, needs_data

import dovetail as dt
from dovetail import cli, files

R = pa.table({"x": [5, 1, 7], "k": ["u", "v", "v"]})
S = pa.table({"x": [3, 4], "k": ["u", "v"]})
T = pa.table({"x": [2, 9, 4], "k": ["u", "v", "u"]})


@pytest.fixture
def inputs(tmp_path: Path) -> list[Path]:
    """Three tables in files of three kinds."""
    paths = [tmp_path / name for name in ("r.parquet", "s.csv", "t.arrow")]
    pyarrow.parquet.write_table(R, paths[0])
    pyarrow.csv.write_csv(S, paths[1])
    with pa.ipc.new_file(str(paths[2]), T.schema) as writer:
        writer.write_table(T)
    return paths


def run(*arguments: object) -> int:
    return cli.main(list(map(str, arguments)))


def test_chain_to_a_file(inputs: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    for options, by in (([], None), (["--by", "k"], "k")):
        assert run("chain", *inputs, "--where", "x > x < x", *options, "--out", out) == 0
        expected = dt.chain_join([R, S, T], "x > x < x", by=by).to_arrow()
        assert oracle.row_list(files.read_table(out)) == oracle.row_list(expected)
        assert files.read_table(out).column_names == expected.column_names


def test_chain_printed(inputs: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    where = ("--where", "t0.x > t1.x and t1.x < t2.x")
    assert run("chain", *inputs, *where, "--format", "count") == 0
    assert capsys.readouterr().out == "6\n"
    assert run("chain", *inputs, *where, "--format", "explain", "--algorithm", "obt") == 0
    assert "  algorithm  obt: 10 partitions a side\n" in capsys.readouterr().out
    assert run("chain", *inputs, *where, "--suffix", " of ", "--rows", 1) == 0
    assert capsys.readouterr().out.startswith("x  k  x of 1  k of 1  x of 2  k of 2\n")


def test_chain_of_any_length(inputs: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    r, s, _ = inputs
    assert run("chain", r, s, "--where", "x > x", "--format", "count") == 0
    where = "x >= x <= x != x <= x"
    assert run("chain", r, s, r, s, r, "--where", where, "--format", "count") == 0
    expected = [dt.chain_join([R, S], "x > x"), dt.chain_join([R, S, R, S, R], where)]
    assert capsys.readouterr().out == "".join(f"{join.count()}\n" for join in expected)


def test_errors_of_a_chain(
    inputs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.csv"
    for paths, options, reason in [
        (inputs[:1], ["--where", "x < x"], "chain of 1 inputs; expected two or more"),
        (inputs, ["--where", "x < x"], "which inputs are meant"),
        (inputs, ["--where", "x < x < zz"], "t2 has no column 'zz'"),
        (inputs, ["--where", "x < x < k"], 'column "k" of t2'),
        (inputs, ["--where", "x < x = x"], "go into by="),
        (inputs, ["--where", "x < x < x", "--by", "zz"], "t0 has no column 'zz'"),
        (inputs, ["--where", "x < x < x", "--partitions", "3"], "options= are for"),
        (inputs, ["--where", "x < x < x", "--partitions", "0"], "partitions=0"),
        ([*inputs, "missing.csv"], ["--where", "x < x < x < x"], "missing.csv"),
    ]:  # fmt: skip
        assert run("chain", *paths, *options, "--out", out) == 1
        assert reason in capsys.readouterr().err
    assert not out.exists()
    with pytest.raises(SystemExit) as exited:
        run("chain", "--where", "x < x")
    assert exited.value.code == 2


@needs_data
def test_chain_of_stocks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / f"{name}.parquet" for name in ("FB", "ADBE", "IBM")]
    for path in paths:
        pyarrow.parquet.write_table(highs(path.stem), path)
    assert run("chain", *paths, "--where", "high >= high < high", "--format", "count") == 0
    assert capsys.readouterr().out == "72355085\n"


def explained(paths: list[Path], *options: object, capsys: pytest.CaptureFixture[str]) -> str:
    assert run("theta", *paths, "--where", "r <= s", "--format", "explain", *options) == 0
    return capsys.readouterr().out


def test_options_of_the_papers_algorithms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    random = np.random.default_rng(1)
    paths = [tmp_path / f"{name}.parquet" for name in "rs"]
    for path in paths:
        pyarrow.parquet.write_table(pa.table({path.stem: random.uniform(0, 50, 300)}), path)

    def prefap(*options: object) -> str:
        return explained(paths, "--algorithm", "prefap", *options, capsys=capsys)

    everything = "10 partitions a side, prefiltered, amalgamated, oversized ones split\n"
    assert everything in prefap()
    assert "5 partitions a side, prefiltered, amalgamated, oversized" in prefap("--partitions", 5)
    assert "side, amalgamated, oversized" in prefap("--no-prefilter")
    assert "prefiltered, oversized" in prefap("--no-amalgamation")
    assert "prefiltered, amalgamated\n" in prefap("--no-repartition")
    assert "oversized ones split into whole spans" in prefap("--ceiling")
    # With averages of a large w no partition is oversized.
    large, whole = prefap("--window", 100_000), prefap("--no-repartition")
    assert large.splitlines()[2:] == whole.splitlines()[2:] != prefap().splitlines()[2:]


def test_bad_options_of_the_papers_algorithms(
    inputs: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    for options, reason in [
        (["--partitions", "3"], 'options= are for the algorithms that partition .*"auto"'),
        (["--no-prefilter", "--algorithm", "nested_loop"], '"nested_loop"'),
        (["--partitions", "0", "--algorithm", "ftj"], "partitions=0; expected"),
        (["--window", "-4", "--algorithm", "ftj"], "window=-4; expected"),
    ]:
        assert run("theta", *inputs[:2], "--where", "x < x", *options) == 1
        error = capsys.readouterr().err
        assert all(part in error for part in reason.split(".*"))
