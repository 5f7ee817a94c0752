"""Error classes: what they derive from, that they travel, and where the caret stands."""

from __future__ import annotations

import copy
import pickle

import pytest

from dovetail import errors

BUILTINS = [
    (errors.InvalidInputError, ValueError),
    (errors.UnsupportedError, NotImplementedError),
    (errors.BudgetError, MemoryError),
    (errors.SpillError, OSError),
    (errors.InternalError, RuntimeError),
]


@pytest.mark.parametrize(("ours", "builtin"), BUILTINS)
def test_caught_as_ours_and_as_the_builtin(
    ours: type[errors.DovetailError], builtin: type[Exception]
) -> None:
    for kind in (ours, builtin, errors.DovetailError):
        with pytest.raises(kind, match="what happened"):
            raise ours("what happened")


@pytest.mark.parametrize("name", errors.__all__)
def test_every_class_says_what_to_do(name: str) -> None:
    doc = getattr(errors, name).__doc__
    assert doc.endswith(".")
    assert "\n" not in doc
    assert ":" in doc


@pytest.mark.parametrize(("ours", "builtin"), BUILTINS)
def test_pickles(ours: type[errors.DovetailError], builtin: type[Exception]) -> None:
    loaded = pickle.loads(pickle.dumps(ours("what happened")))
    assert type(loaded) is ours
    assert str(loaded) == "what happened"


def test_spill_error_keeps_what_the_system_said() -> None:
    error = errors.SpillError(28, "No space left on device", "/tmp/run-0")
    assert (error.errno, error.filename) == (28, "/tmp/run-0")
    assert str(error) == "[Errno 28] No space left on device: '/tmp/run-0'"


@pytest.mark.parametrize("duplicate", [copy.copy, lambda e: pickle.loads(pickle.dumps(e))])
def test_text_errors_survive_copies(duplicate: object) -> None:
    error = errors.PredicateError("expected a column", "a < 5", 4)
    other = duplicate(error)  # type: ignore[operator]
    assert type(other) is errors.PredicateError
    assert (other.reason, other.text, other.position) == ("expected a column", "a < 5", 4)
    assert str(other) == str(error) == "expected a column\n  a < 5\n      ^"


EXCERPTS = [
    ("start", "abc", 0, "abc", "^"),
    ("past the end", "abc", 3, "abc", "   ^"),
    ("second line", "a < b\nand c ~ d\nand e < f", 12, "and c ~ d", "      ^"),
    ("end of first line", "ab\ncd", 2, "ab", "  ^"),
    ("tab is one blank", "a\t~", 2, "a ~", "  ^"),
    ("control character", "a\x00~", 2, "a\ufffd~", "  ^"),
    ("wide characters", "価格 ~", 3, "価格 ~", "     ^"),
    ("combining mark", "e\u0301 ~", 3, "e\u0301 ~", "  ^"),
    ("cut before", "x" * 50 + "~", 50, "…" + "x" * 40 + "~", " " * 41 + "^"),
    ("cut after", "~" + "x" * 50, 0, "~" + "x" * 39 + "…", "^"),
]


@pytest.mark.parametrize(
    ("text", "position", "line", "caret"),
    [case[1:] for case in EXCERPTS],
    ids=[c[0] for c in EXCERPTS],
)
def test_excerpt(text: str, position: int, line: str, caret: str) -> None:
    assert str(errors.TextError("why", text, position)) == f"why\n  {line}\n  {caret}"


@pytest.mark.parametrize("text", ["", " \n"])
def test_blank_text_has_no_excerpt(text: str) -> None:
    assert str(errors.TextError("why", text, 0)) == "why"
