"""Durations and sizes as people write them: `"1h30m"`, `"250ms"`, `"64MB"`.

Everything is exact: decimals are read as integers and a power of ten, never as floats, and a value
that is not a whole number of nanoseconds or bytes is refused rather than rounded. Values are
Python integers within 0 and 2**63 - 1, the range of the native layer (292 years of nanoseconds).
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, SupportsIndex

from dovetail.errors import InvalidInputError, TextError

__all__ = ["Duration", "parse_bytes", "parse_duration"]

_LARGEST: Final = 2**63 - 1
_MOST_DIGITS: Final = 40

# Largest first: the order in which parts must be written, and in which they are printed.
_NANOSECONDS: Final = {
    "w": 7 * 86_400 * 10**9,
    "d": 86_400 * 10**9,
    "h": 3_600 * 10**9,
    "m": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "us": 10**3,
    "ns": 1,
}
_MICRO_SIGNS: Final = {"\u00b5s": "us", "\u03bcs": "us"}  # micro sign, Greek mu

_BYTES: Final = {
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}


@dataclass(frozen=True)
class Duration:
    """A length of time in whole nanoseconds, never negative.

    `str` writes it the way `parse_duration` reads it:

    >>> str(Duration(5_400_000_000_000))
    '1h30m'
    """

    nanoseconds: int

    def __post_init__(self) -> None:
        if isinstance(self.nanoseconds, bool) or not isinstance(self.nanoseconds, int):
            raise InvalidInputError(
                f"a duration is a whole number of nanoseconds, found {_found(self.nanoseconds)}"
            )
        _check_range(self.nanoseconds, "a duration", "nanoseconds")

    def __str__(self) -> str:
        parts = []
        rest = self.nanoseconds
        for unit, nanoseconds in _NANOSECONDS.items():
            count, rest = divmod(rest, nanoseconds)
            if count:
                parts.append(f"{count}{unit}")
        return "".join(parts) or "0s"


def parse_duration(
    value: str | timedelta | Duration | SupportsIndex, *, option: str | None = None
) -> Duration | int:
    """Read a duration; a bare integer stays an `int`, in the unit of an integer column.

    Text is one or more numbers with the units w, d, h, m (minutes), s, ms, us or µs, and ns, the
    larger units first. `option` is what the caller calls the value; error messages start with it.

    >>> parse_duration("1h30m")
    Duration(nanoseconds=5400000000000)
    >>> parse_duration("1.5us")
    Duration(nanoseconds=1500)
    >>> parse_duration(timedelta(milliseconds=2))
    Duration(nanoseconds=2000000)
    >>> parse_duration(10)
    10
    >>> parse_duration("10 min", option="preceding")
    Traceback (most recent call last):
    ...
    dovetail.errors.TextError: preceding: unknown unit 'min', expected w, d, h, m, s, ms, us or ns
      10 min
         ^
    """
    prefix = f"{option}: " if option else ""
    if isinstance(value, Duration):
        return value
    if isinstance(value, str):
        return Duration(_read_duration(value, prefix))
    if isinstance(value, timedelta):
        microseconds = (value.days * 86_400 + value.seconds) * 10**6 + value.microseconds
        # pandas' subclass counts on in nanoseconds.
        nanoseconds = microseconds * 1000 + getattr(value, "nanoseconds", 0)
        return Duration(_check_range(nanoseconds, f"{prefix}a duration", "nanoseconds"))
    integer = _as_integer(value)
    if integer is None:
        raise InvalidInputError(
            f"{prefix}expected a duration such as '10s', a timedelta or an integer, "
            f"found {_found(value)}"
        )
    return _check_range(integer, f"{prefix}a duration", "units")


def parse_bytes(value: str | SupportsIndex, *, option: str | None = None) -> int:
    """Read a size in bytes: an integer, or text with B, KB, MB, GB, TB (powers of 1000) or
    KiB, MiB, GiB, TiB (powers of 1024), in any case; without a unit, bytes.

    >>> parse_bytes("64MB"), parse_bytes("1.5 KiB"), parse_bytes("0"), parse_bytes(4096)
    (64000000, 1536, 0, 4096)
    >>> parse_bytes("64MX", option="memory")
    Traceback (most recent call last):
    ...
    dovetail.errors.TextError: memory: unknown unit 'MX', expected B, KB, MB, GB, TB, KiB, MiB, \
GiB or TiB
      64MX
        ^
    """
    prefix = f"{option}: " if option else ""
    if isinstance(value, str):
        return _read_bytes(value, prefix)
    integer = _as_integer(value)
    if integer is None:
        raise InvalidInputError(
            f"{prefix}expected a size such as '64MB' or an integer, found {_found(value)}"
        )
    return _check_range(integer, f"{prefix}a size", "bytes")


def _read_duration(text: str, prefix: str) -> int:
    scanner = _Scanner(text, prefix, "a duration such as '10s'")
    total = 0
    last: str | None = None
    while last is None or not scanner.at_end():
        start = scanner.skip_space()
        coefficient, decimals = scanner.number()
        unit_start = scanner.skip_space()
        word = scanner.word()
        unit = _MICRO_SIGNS.get(word, word)
        if unit not in _NANOSECONDS:
            raise scanner.unknown_unit(word, unit_start, "w, d, h, m, s, ms, us or ns")
        if last is not None and _NANOSECONDS[unit] >= _NANOSECONDS[last]:
            raise scanner.error(
                f"{word!r} after {last!r}: expected each unit once, larger units first", unit_start
            )
        last = unit
        total += scanner.scaled(coefficient, decimals, _NANOSECONDS[unit], "nanoseconds", start)
        if total > _LARGEST:
            raise scanner.error("a duration of more than 2**63 - 1 nanoseconds (292 years)", start)
    return total


def _read_bytes(text: str, prefix: str) -> int:
    scanner = _Scanner(text, prefix, "a size such as '64MB'")
    start = scanner.skip_space()
    coefficient, decimals = scanner.number()
    unit = 1
    if not scanner.at_end():
        unit_start = scanner.position
        word = scanner.word()
        if word.lower() not in _BYTES:
            raise scanner.unknown_unit(word, unit_start, "B, KB, MB, GB, TB, KiB, MiB, GiB or TiB")
        unit = _BYTES[word.lower()]
    if not scanner.at_end():
        raise scanner.error(f"expected the end, found {scanner.found()}", scanner.position)
    size = scanner.scaled(coefficient, decimals, unit, "bytes", start)
    if size > _LARGEST:
        raise scanner.error("a size of more than 2**63 - 1 bytes", start)
    return size


class _Scanner:
    """A place in a text made of numbers and words."""

    def __init__(self, text: str, prefix: str, expected: str) -> None:
        self.text = text
        self.end = len(text.rstrip())
        self.prefix = prefix
        self.expected = expected
        self.position = 0

    def error(self, reason: str, position: int) -> TextError:
        return TextError(self.prefix + reason, self.text, position)

    def unknown_unit(self, word: str, position: int, expected: str) -> TextError:
        if word:
            return self.error(f"unknown unit {word!r}, expected {expected}", position)
        return self.error(f"expected a unit ({expected}), found {self.found()}", position)

    def found(self) -> str:
        return repr(self.text[self.position]) if self.position < self.end else "the end"

    def at_end(self) -> bool:
        return self.skip_space() >= self.end

    def skip_space(self) -> int:
        while self.position < self.end and self.text[self.position].isspace():
            self.position += 1
        return self.position

    def word(self) -> str:
        start = self.position
        while self.position < self.end and self.text[self.position].isalpha():
            self.position += 1
        return self.text[start : self.position]

    def digits(self) -> str:
        start = self.position
        while self.position < self.end and self.text[self.position] in "0123456789":
            self.position += 1
        return self.text[start : self.position]

    def number(self) -> tuple[int, int]:
        """The number here as (coefficient, decimals): 1.25 is (125, 2)."""
        start = self.position
        whole = self.digits()
        if not whole:
            if self.found() == "'-'":
                raise self.error(f"expected {self.expected}, which is never negative", start)
            raise self.error(f"expected {self.expected}, found {self.found()}", start)
        fraction = ""
        if self.position < self.end and self.text[self.position] == ".":
            self.position += 1
            fraction = self.digits()
            if not fraction:
                raise self.error(f"expected a digit after '.', found {self.found()}", self.position)
        if len(whole) + len(fraction) > _MOST_DIGITS:
            raise self.error(f"a number of more than {_MOST_DIGITS} digits", start)
        return int(whole + fraction), len(fraction)

    def scaled(self, coefficient: int, decimals: int, unit: int, name: str, start: int) -> int:
        denominator: int = 10**decimals
        quotient, rest = divmod(coefficient * unit, denominator)
        if rest:
            part = self.text[start : self.position]
            raise self.error(f"{part!r} is not a whole number of {name}", start)
        return quotient


def _as_integer(value: SupportsIndex) -> int | None:
    """`value` as an int where it is one (NumPy's included); a bool is not."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def _check_range(value: int, what: str, unit: str) -> int:
    if value > _LARGEST:
        raise InvalidInputError(f"{what} of more than 2**63 - 1 {unit}")
    if value < 0:
        # Python refuses to print integers of thousands of digits.
        shown = f"{value} {unit}" if value >= -_LARGEST else f"less than -(2**63) {unit}"
        raise InvalidInputError(f"{what} is never negative, found {shown}")
    return value


def _found(value: object) -> str:
    kind = type(value).__name__
    # Only scalars are printed: an input passed by mistake could be a whole table.
    return f"{kind} {value}" if isinstance(value, (bool, float)) else kind
