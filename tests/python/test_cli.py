"""The command line: files in and out, exit statuses, and no file left behind by a failure."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import dovetail as dt
from dovetail import cli, files

LONGEST = 60
LEFT = pa.table({"a": [1, 5, 9], "k": ["u", "v", "w"]})
RIGHT = pa.table({"b": [4, 8, 9], "k": ["u", "u", "v"]})

WRITERS: dict[str, Callable[[pa.Table, Path], Any]] = {
    ".parquet": pyarrow.parquet.write_table,
    ".pq": pyarrow.parquet.write_table,
    ".csv": pyarrow.csv.write_csv,
    ".arrow": lambda table, path: _write_ipc(table, path, pa.ipc.new_file),
    ".ipc": lambda table, path: _write_ipc(table, path, pa.ipc.new_stream),
    ".feather": lambda table, path: _write_ipc(table, path, pa.ipc.new_file),
}


def _write_ipc(table: pa.Table, path: Path, new: Callable[..., Any]) -> None:
    with new(str(path), table.schema) as writer:
        writer.write_table(table)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with left.parquet and right.csv."""
    WRITERS[".parquet"](LEFT, tmp_path / "left.parquet")
    WRITERS[".csv"](RIGHT, tmp_path / "right.csv")
    return tmp_path


def theta(
    folder: Path, *options: object, left: str = "left.parquet", right: str = "right.csv"
) -> int:
    arguments = [folder / left, folder / right, *options]
    if "--where" not in options:
        arguments += ["--where", "a < b"]
    return cli.main(["theta", *map(str, arguments)])


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def failed(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that an error prints."""
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("dovetail: ")
    assert captured.err.count("\n") == 1, captured.err
    return captured.err.removeprefix("dovetail: ").rstrip("\n")


# --- Files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("out", WRITERS)
@pytest.mark.parametrize("source", WRITERS)
def test_formats_in_and_out(
    tmp_path: Path, source: str, out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    WRITERS[source](LEFT, tmp_path / f"l{source}")
    WRITERS[source](RIGHT, tmp_path / f"r{source}")
    target = tmp_path / f"out{out}"
    assert theta(tmp_path, "--out", target, left=f"l{source}", right=f"r{source}") == 0
    written = files.read_table(target)
    assert written.to_pydict() == dt.theta_join(LEFT, RIGHT, "a < b").to_arrow().to_pydict()
    assert files_in(tmp_path) == sorted([f"l{source}", f"r{source}", f"out{out}"])
    assert capsys.readouterr() == ("", f"wrote 5 rows to {target}\n")


def test_extensions_in_any_case(folder: Path) -> None:
    assert theta(folder, "--out", folder / "OUT.PARQUET") == 0
    assert files.read_table(folder / "OUT.PARQUET").num_rows == 5


def test_an_empty_result_has_a_file_with_a_schema(folder: Path) -> None:
    for out in WRITERS:
        target = folder / f"out{out}"
        assert theta(folder, "--where", "a > b and a < b", "--out", target) == 0
        written = files.read_table(target)
        assert written.num_rows == 0
        assert written.column_names == ["a", "k", "b", "k_right"]


def test_a_folder_of_parquet_files(folder: Path) -> None:
    spark = folder / "spark.parquet"
    spark.mkdir()
    (spark / "_SUCCESS").touch()
    for number in range(2):
        WRITERS[".parquet"](LEFT.slice(number, 1), spark / f"part-{number}.snappy.parquet")
    assert files.read_table(spark) == LEFT.slice(0, 2)


def test_folders_that_look_like_columns_are_not(folder: Path) -> None:
    inner = folder / "day=3"
    inner.mkdir()
    WRITERS[".parquet"](LEFT, inner / "left.parquet")
    assert files.read_table(inner / "left.parquet") == LEFT


def test_output_replaces_what_was_there_and_an_input_may_be_it(folder: Path) -> None:
    assert theta(folder, "--out", folder / "left.parquet") == 0
    assert files.read_table(folder / "left.parquet").num_rows == 5
    WRITERS[".arrow"](LEFT, folder / "left.arrow")
    assert theta(folder, "--out", folder / "left.arrow", left="left.arrow") == 0
    assert files.read_table(folder / "left.arrow").num_rows == 5


def test_a_link_stays_a_link(folder: Path) -> None:
    (folder / "link.csv").symlink_to(folder / "target.csv")
    assert theta(folder, "--out", folder / "link.csv") == 0
    assert (folder / "link.csv").is_symlink()
    assert files.read_table(folder / "target.csv").num_rows == 5


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_nested_columns_in_files(folder: Path, suffix: str) -> None:
    nested = LEFT.append_column("list", pa.array([[1], None, [2, 3]]))
    WRITERS[suffix](nested, folder / f"nested{suffix}")
    target = folder / f"out{suffix}"
    assert theta(folder, "--out", target, left=f"nested{suffix}") == 0
    expected = dt.theta_join(nested, RIGHT, "a < b").to_arrow()
    assert oracle.row_list(files.read_table(target)) == oracle.row_list(expected)


# --- Printing -------------------------------------------------------------------------------------


def test_prints_a_table_unless_told_otherwise(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert theta(folder) == 0
    table = capsys.readouterr().out
    assert table == (
        "a  k  b  k_right\n-  -  -  -------\n"
        "1  u  4  u\n1  u  8  u\n1  u  9  v\n5  v  8  u\n5  v  9  v\n"
    )
    assert theta(folder, "--format", "table") == 0
    assert capsys.readouterr().out == table


def test_a_long_table_is_cut(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert theta(folder, "--rows", 2) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:] == ["1  u  4  u", "1  u  8  u", "… (the first 2 rows)"]
    assert theta(folder, "--rows", 0) == 0
    assert capsys.readouterr().out.splitlines()[2:] == ["… (the first 0 rows)"]


def test_cells_of_every_kind_fit_on_a_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = pa.table(
        {
            "a": [1, 2],
            "nanos": pa.array([1, None], pa.int64()).view(pa.timestamp("ns")),
            "far": pa.array([2**31 - 1, 0], pa.int32()).view(pa.date32()),
            "text": ["two\nlines\x1b[31m", "x" * 100],
            "list": [[1, 2], None],
            "bytes": [b"\xff", b""],
            "span": pa.array([2**62, 1], pa.int64()).view(pa.duration("s")),
        }
    )
    WRITERS[".arrow"](odd, folder / "odd.arrow")
    assert theta(folder, "--rows", 9, left="odd.arrow") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 6
    assert "1970-01-01 00:00:00.000000001" in lines[2]
    assert "two\\nlines\\x1b[31m" in lines[2]
    assert "x" * 39 + "…" in lines[5]


def test_count_and_explain(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert theta(folder, "--format", "count") == 0
    assert capsys.readouterr().out == "5\n"
    assert theta(folder, "--format", "explain", "--workers", 3) == 0
    text = capsys.readouterr().out
    assert text.startswith("theta_join inner where left.a < right.b\n")
    assert "threads    3\n" in text


@pytest.mark.parametrize(
    ("options", "names", "rows"),
    [
        (["--by", "k"], ["a", "k", "b"], 3),
        (["--left-by", "k", "--right-by", "k"], ["a", "k", "b"], 3),
        (["--by", "k", "--by", "a"], None, 1),
        (["--suffix", "_2"], ["a", "k", "b", "k_2"], 5),
        (["--algorithm", "nested_loop", "--how", "inner"], ["a", "k", "b", "k_right"], 5),
    ],
)
def test_options(
    folder: Path, options: list[str], names: list[str] | None, rows: int,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    target = folder / "out.arrow"
    status = theta(folder, *options, "--out", target)
    if names is None:
        assert status == 1
        assert "right input has no column 'a'" in failed(capsys)
        return
    assert status == 0
    written = files.read_table(target)
    assert (written.column_names, written.num_rows) == (names, rows)


def test_progress_goes_to_standard_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    assert theta(folder, "--format", "count", "--progress") == 0
    captured = capsys.readouterr()
    assert captured.out == "5\n"
    assert "theta_join" in captured.err


# --- As a program ---------------------------------------------------------------------------------


def program(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "dovetail", *map(str, arguments)],
        check=False, capture_output=True, text=True, timeout=LONGEST, **options,
    )  # fmt: skip


def test_module_runs() -> None:
    done = program("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{dt.__version__}\n", "")


@pytest.mark.parametrize(
    "arguments",
    [
        [], ["other"], ["theta"], ["theta", "a.csv"], ["theta", "a.csv", "b.csv"],
        ["theta", "a.csv", "b.csv", "--where", "a < b", "--format", "json"],
        ["theta", "a.csv", "b.csv", "--where", "a < b", "--rows", "-1"],
        ["theta", "a.csv", "b.csv", "--where", "a < b", "--workers", "many"],
        ["theta", "a.csv", "b.csv", "--where", "a < b", "--format", "count", "--out", "c.csv"],
    ],
)  # fmt: skip
def test_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("usage: dovetail")


def test_help_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["theta", "--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    for option in ("--where", "--by", "--how", "--out", "--format", "--workers", "--progress"):
        assert option in text


def test_the_reader_of_the_output_may_leave(folder: Path) -> None:
    large = pa.table({"a": [0] * 20_000, "k": ["u"] * 20_000})
    WRITERS[".parquet"](large, folder / "large.parquet")
    process = subprocess.Popen(
        [
            sys.executable, "-m", "dovetail", "theta", folder / "large.parquet",
            folder / "right.csv", "--where", "a < b", "--rows", "60000",
        ],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith("a  k")
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(LONGEST) == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_standard_output_on_a_full_disk(folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [
                sys.executable, "-m", "dovetail", "theta", folder / "left.parquet",
                folder / "right.csv", "--where", "a < b",
            ],
            check=False, stdout=full, stderr=subprocess.PIPE, text=True, timeout=LONGEST,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "dovetail: cannot print: No space left on device\n"


def test_a_terminal_that_cannot_show_a_character(folder: Path) -> None:
    done = program(
        "theta", folder / "left.parquet", folder / "right.csv", "--where", "a < b", "--rows", "1",
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "\\u2026 (the first 1 rows)"


# --- Errors ---------------------------------------------------------------------------------------


def _garbage(folder: Path, name: str, content: bytes) -> str:
    (folder / name).write_bytes(content)
    return name


def _loop(folder: Path) -> str:
    (folder / "loop.csv").symlink_to("loop.csv")
    return "loop.csv"


def _directory(folder: Path, name: str) -> str:
    (folder / name).mkdir()
    return name


UNREADABLE: dict[str, tuple[Callable[[Path], str], str]] = {
    "missing": (lambda _: "missing.parquet", "No such file or directory"),
    "missing csv": (lambda _: "missing.csv", "No such file or directory"),
    "missing ipc": (lambda _: "missing.arrow", "No such file or directory"),
    "no extension": (lambda f: _garbage(f, "left", b"a\n1\n"), "unknown extension ''"),
    "unknown extension": (lambda f: _garbage(f, "left.xlsx", b""), "unknown extension '.xlsx'"),
    "a link to itself": (_loop, "Too many levels of symbolic links"),
    "inside a file": (lambda _: "right.csv/left.csv", "Not a directory"),
    "a folder": (lambda f: _directory(f, "folder.csv"), "it is a folder, expected a file"),
    "an empty folder": (lambda f: _directory(f, "folder.parquet"), "no column 'a'"),
    "empty csv": (lambda f: _garbage(f, "left.csv", b""), "Empty CSV file"),
    "ragged csv": (
        lambda f: _garbage(f, "left.csv", b"a,k\n1,2\n3\n"),
        "Expected 2 columns, got 1",
    ),
    "csv that is no text": (lambda f: _garbage(f, "left.csv", b"\xff\xfe\0"), ""),
    "csv with a column twice": (lambda f: _garbage(f, "left.csv", b"a,a\n1,2\n"), "two columns"),
    "empty parquet": (lambda f: _garbage(f, "left.parquet", b""), "Parquet file size is 0 bytes"),
    "no parquet": (lambda f: _garbage(f, "left.parquet", b"a\n1\n" * 9), "magic bytes not found"),
    "empty ipc": (lambda f: _garbage(f, "left.arrow", b""), ""),
    "no ipc": (lambda f: _garbage(f, "left.arrow", b"a\n1\n" * 9), ""),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_unreadable_input(case: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make, reason = UNREADABLE[case]
    name = make(folder)
    before = files_in(folder)
    assert theta(folder, "--out", folder / "out.parquet", left=name) == 1
    message = failed(capsys)
    assert reason in message
    assert message.count(str(folder / name)) == 1 or "input" in message
    assert files_in(folder) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_input_without_permission(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "left.parquet").chmod(0)
    assert theta(folder) == 1
    assert "Permission denied" in failed(capsys)


def test_cut_off_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for suffix in (".parquet", ".arrow"):
        path = folder / f"cut{suffix}"
        WRITERS[suffix](LEFT, path)
        whole = path.read_bytes()
        for size in (4, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:size])
            assert theta(folder, left=path.name) == 1
            assert f"cannot read {path}" in failed(capsys)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("out.json", "unknown extension '.json'"),
        ("nowhere/out.csv", "there is no folder"),
        ("taken.csv", "it is a folder, expected a file"),
        ("right.csv/out.csv", "there is no folder"),
    ],
)
def test_a_bad_output_is_said_before_the_work(
    name: str, reason: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "taken.csv").mkdir()
    before = files_in(folder)
    assert theta(folder, "--out", folder / name, left="missing.csv") == 1
    assert reason in failed(capsys)
    assert files_in(folder) == before


def test_errors_of_the_join(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options, reason in [
        (["--where", "a < zz"], "no column 'zz'"),
        (["--where", "a < k"], "cannot compare"),
        (["--how", "left", "--algorithm", "ftj"], 'how="inner" only'),
        (["--how", "sideways"], "unknown how"),
        (["--algorithm", "magic"], "unknown algorithm"),
        (["--by", "k", "--left-by", "a"], "not both"),
        (["--left-by", "a"], "as many on both sides"),
        (["--workers", "0"], "workers=0"),
        (["--suffix", ""], "choose another suffix"),
    ]:
        assert theta(folder, *options, "--out", folder / "out.csv") == 1
        assert reason in failed(capsys)
    assert files_in(folder) == ["left.parquet", "right.csv"]


def test_a_malformed_predicate_is_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert theta(folder, "--where", "a => b") == 1
    assert capsys.readouterr().err == (
        "dovetail: unknown operator '=>', did you mean '>='?\n  a => b\n    ^\n"
    )


def test_no_traceback_from_a_program(folder: Path) -> None:
    done = program("theta", folder / "missing.csv", folder / "right.csv", "--where", "a < b")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"dovetail: cannot read {folder / 'missing.csv'}: No such file or directory\n"
    )


# --- Whole files or none --------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".arrow"])
@pytest.mark.parametrize("existing", [True, False])
def test_a_full_disk(folder: Path, suffix: str, existing: bool) -> None:
    """A limit on the size of files is as good as a full disk: the write fails half-way."""
    target = folder / f"out{suffix}"
    if existing:
        target.write_bytes(b"precious")
    wide = pa.table({"a": np.arange(2000), "text": [os.urandom(500).hex() for _ in range(2000)]})
    WRITERS[".arrow"](wide, folder / "wide.arrow")
    before = files_in(folder)
    done = program(
        "theta", folder / "wide.arrow", folder / "right.csv", "--where", "a != b", "--out", target,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000)),
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"dovetail: cannot write {target}: File too large\n"
    assert files_in(folder) == before
    if existing:
        assert target.read_bytes() == b"precious"


def test_nested_columns_do_not_go_into_csv(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nested = LEFT.append_column("list", pa.array([[1], None, [2, 3]]))
    WRITERS[".arrow"](nested, folder / "nested.arrow")
    (folder / "out.csv").write_bytes(b"precious")
    before = files_in(folder)
    assert theta(folder, "--out", folder / "out.csv", left="nested.arrow") == 1
    message = failed(capsys)
    assert message.startswith(f"cannot write {folder / 'out.csv'}: ")
    assert "list" in message
    assert files_in(folder) == before
    assert (folder / "out.csv").read_bytes() == b"precious"


def test_an_error_of_the_join_half_way_leaves_nothing(tmp_path: Path) -> None:
    def batches() -> Any:
        yield LEFT.to_batches()[0]
        raise dt.InvalidInputError("half-way")

    for suffix in WRITERS:
        with pytest.raises(dt.InvalidInputError, match=r"^half-way$"):
            files.write_batches(tmp_path / f"out{suffix}", LEFT.schema, batches())
    assert files_in(tmp_path) == []


def test_an_error_of_the_source_is_not_called_an_error_of_the_output(tmp_path: Path) -> None:
    def batches() -> Any:
        yield LEFT.to_batches()[0]
        raise OSError("the source's own")

    with pytest.raises(OSError, match=r"^the source's own$") as caught:
        files.write_batches(tmp_path / "out.csv", LEFT.schema, batches())
    assert type(caught.value) is OSError
    assert files_in(tmp_path) == []


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".arrow"])
def test_a_signal_while_writing(
    folder: Path, suffix: str, number: signal.Signals, status: int
) -> None:
    """Hours of output, interrupted once its temporary file is there."""
    for name, value in (("a", 0), ("b", 1)):
        WRITERS[".arrow"](pa.table({name: np.full(500_000, value)}), folder / f"{name}.arrow")
    before = files_in(folder)
    process = subprocess.Popen(
        [
            sys.executable, "-m", "dovetail", "theta", folder / "a.arrow", folder / "b.arrow",
            "--where", "a < b", "--out", folder / f"out{suffix}",
        ],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    watchdog = threading.Timer(LONGEST, process.kill)
    watchdog.start()
    try:
        while files_in(folder) == before and process.poll() is None:
            pass
        process.send_signal(number)
        output, errors = process.communicate()
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate()
    assert process.returncode == status, errors
    assert errors == ("dovetail: interrupted\n" if number == signal.SIGINT else "")
    assert output == ""
    assert files_in(folder) == before
