"""What can go wrong, one class per thing the caller can do about it.

Every class also derives from the builtin that people already catch, so `except ValueError` keeps
working. Ctrl-C is `KeyboardInterrupt`, as everywhere.

Text that cannot be read (predicates, durations, sizes) is shown with a mark under the character:

>>> print(PredicateError("expected a column, found the number 5", "price > 5", 8))
expected a column, found the number 5
  price > 5
          ^
"""

from __future__ import annotations

import unicodedata

__all__ = [
    "BudgetError",
    "DovetailError",
    "InternalError",
    "InvalidInputError",
    "PredicateError",
    "SpillError",
    "TextError",
    "UnsupportedError",
]


class DovetailError(Exception):
    """Any failure of dovetail: catch this to catch them all."""


class InvalidInputError(DovetailError, ValueError):
    """An input, a predicate or an option is wrong: change the call."""


class UnsupportedError(DovetailError, NotImplementedError):
    """The request makes sense, but this combination is not offered: ask for another one."""


class BudgetError(DovetailError, MemoryError):
    """A memory budget or disk quota is too small: give more, or ask for less."""


class SpillError(DovetailError, OSError):
    """Reading or writing spilled data failed: look at the disk."""


class InternalError(DovetailError, RuntimeError):
    """A broken invariant, a bug in dovetail: please report it."""


class TextError(InvalidInputError):
    """A text could not be read: correct the character at `position` of `text`."""

    # All three go into `args`, so that the error survives pickling on its way out of a Spark task.
    def __init__(self, reason: str, text: str, position: int) -> None:
        super().__init__(reason, text, position)
        self.reason = reason
        self.text = text
        self.position = position

    def __str__(self) -> str:
        if not self.text.strip():
            return self.reason
        return f"{self.reason}\n{_excerpt(self.text, self.position)}"


class PredicateError(TextError):
    """A predicate could not be read: correct the character at `position` of `text`."""


_EXCERPT_RADIUS = 40


def _excerpt(text: str, position: int) -> str:
    """The line of `text` that holds `position`, cut to a readable width, and a caret line."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    end = len(text) if end < 0 else end
    first = max(start, position - _EXCERPT_RADIUS)
    last = min(end, position + _EXCERPT_RADIUS)
    before = ("…" if first > start else "") + _printable(text[first:position])
    after = _printable(text[position:last]) + ("…" if last < end else "")
    return f"  {before}{after}\n  {' ' * sum(map(_cells, before))}^"


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " if c.isspace() else "\ufffd" for c in text)


def _cells(character: str) -> int:
    """How many terminal cells a character takes, so that the caret stands under the right one."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
