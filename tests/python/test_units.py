"""Durations and sizes: tables of cases, exact error positions, agreement with timedelta."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.errors import InvalidInputError, TextError
from dovetail.units import Duration, parse_bytes, parse_duration

SECOND = 10**9
LARGEST = 2**63 - 1

DURATIONS = [
    ("10s", 10 * SECOND),
    ("1h30m", 5400 * SECOND),
    ("250ms", 250 * 10**6),
    ("2d", 2 * 86_400 * SECOND),
    ("1w", 7 * 86_400 * SECOND),
    ("5us", 5_000),
    ("5\u00b5s", 5_000),
    ("5\u03bcs", 5_000),
    ("100ns", 100),
    ("1.5h", 5400 * SECOND),
    ("0.000000001s", 1),
    ("1.000s", SECOND),
    ("0s", 0),
    ("00010s", 10 * SECOND),
    ("  1 h  30 m ", 5400 * SECOND),
    ("1w2d3h4m5s6ms7us8ns", 788_645_006_007_008),
    ("9223372036854775807ns", LARGEST),
]


@pytest.mark.parametrize(("text", "nanoseconds"), DURATIONS)
def test_duration(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == Duration(nanoseconds)


UNITS = "w, d, h, m, s, ms, us or ns"
A_DURATION = "expected a duration such as '10s'"
BAD_DURATIONS = [
    ("10", "  ^", f"expected a unit ({UNITS}), found the end"),
    ("10 ", "  ^", f"expected a unit ({UNITS}), found the end"),
    ("10 %", "   ^", f"expected a unit ({UNITS}), found '%'"),
    ("s", "^", f"{A_DURATION}, found 's'"),
    ("1h x", "   ^", f"{A_DURATION}, found 'x'"),
    ("-5s", "^", f"{A_DURATION}, which is never negative"),
    ("1h -5s", "   ^", f"{A_DURATION}, which is never negative"),
    ("+5s", "^", f"{A_DURATION}, found '+'"),
    ("10min", "  ^", f"unknown unit 'min', expected {UNITS}"),
    ("10S", "  ^", f"unknown unit 'S', expected {UNITS}"),
    ("1mo", " ^", f"unknown unit 'mo', expected {UNITS}"),
    ("1.h", "  ^", "expected a digit after '.', found 'h'"),
    (".5h", "^", f"{A_DURATION}, found '.'"),
    ("1.5.5h", "   ^", f"expected a unit ({UNITS}), found '.'"),
    ("1e3s", " ^", f"unknown unit 'e', expected {UNITS}"),
    ("30m1h", "    ^", "'h' after 'm': expected each unit once, larger units first"),
    ("1h1h", "   ^", "'h' after 'h': expected each unit once, larger units first"),
    ("1s 0.5ns", "   ^", "'0.5ns' is not a whole number of nanoseconds"),
    ("0.0000000001s", "^", "'0.0000000001s' is not a whole number of nanoseconds"),
    ("9223372036854775808ns", "^", "a duration of more than 2**63 - 1 nanoseconds (292 years)"),
    ("292y", "   ^", f"unknown unit 'y', expected {UNITS}"),
    ("15250w 2d", "       ^", "a duration of more than 2**63 - 1 nanoseconds (292 years)"),
    ("٣s", "^", f"{A_DURATION}, found '٣'"),
]


@pytest.mark.parametrize(("text", "caret", "reason"), BAD_DURATIONS)
def test_bad_duration(text: str, caret: str, reason: str) -> None:
    with pytest.raises(TextError) as caught:
        parse_duration(text)
    assert str(caught.value) == f"{reason}\n  {text}\n  {caret}"
    with pytest.raises(TextError) as caught:
        parse_duration(text, option="lateness")
    assert str(caught.value) == f"lateness: {reason}\n  {text}\n  {caret}"


@pytest.mark.parametrize("text", ["", "   "])
def test_empty_duration(text: str) -> None:
    with pytest.raises(TextError) as caught:
        parse_duration(text)
    assert str(caught.value) == f"{A_DURATION}, found the end"


def test_very_long_number() -> None:
    with pytest.raises(TextError, match="a number of more than 40 digits"):
        parse_duration("9" * 5000 + "s")
    with pytest.raises(TextError, match="a number of more than 40 digits"):
        parse_bytes("0." + "9" * 5000)


def test_integers_stay_integers() -> None:
    assert parse_duration(10) == 10
    assert parse_duration(0) == 0
    assert parse_duration(LARGEST) == LARGEST
    assert parse_duration(Duration(7)) == Duration(7)


class Index:
    def __index__(self) -> int:
        return 12


def test_integers_of_other_libraries() -> None:
    assert type(parse_duration(Index())) is int
    assert (parse_duration(Index()), parse_bytes(Index())) == (12, 12)


def test_timedelta_with_nanoseconds() -> None:
    class Fine(timedelta):  # as pandas' Timedelta
        nanoseconds = 7

    assert parse_duration(Fine(microseconds=1)) == Duration(1007)


VALUES: list[tuple[Any, str]] = [
    (True, "found bool True"),
    (1.5, "found float 1.5"),
    (float("nan"), "found float nan"),
    (None, "found NoneType"),
    (b"10s", "found bytes"),
    ([1], "found list"),
]


@pytest.mark.parametrize(("value", "found"), VALUES, ids=repr)
def test_values_of_other_types(value: Any, found: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_duration(value, option="preceding")
    assert str(caught.value) == (
        f"preceding: expected a duration such as '10s', a timedelta or an integer, {found}"
    )
    with pytest.raises(InvalidInputError) as caught:
        parse_bytes(value)
    assert str(caught.value) == f"expected a size such as '64MB' or an integer, {found}"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (-1, "a duration is never negative, found -1 units"),
        (-(10**5000), "a duration is never negative, found less than -(2**63) units"),
        (2**63, "a duration of more than 2**63 - 1 units"),
        (10**5000, "a duration of more than 2**63 - 1 units"),
        (timedelta(seconds=-1), "a duration is never negative, found -1000000000 nanoseconds"),
        (timedelta.max, "a duration of more than 2**63 - 1 nanoseconds"),
    ],
    ids=lambda value: "" if isinstance(value, int) else str(value),
)
def test_out_of_range(value: Any, reason: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_duration(value)
    assert str(caught.value) == reason


@pytest.mark.parametrize("value", [-1, 2**63, True, 1.0])
def test_duration_checks_itself(value: Any) -> None:
    with pytest.raises(InvalidInputError, match="duration"):
        Duration(value)


@given(st.integers(0, LARGEST))
def test_duration_reads_back(nanoseconds: int) -> None:
    duration = Duration(nanoseconds)
    assert parse_duration(str(duration)) == duration


@given(st.timedeltas(timedelta(0), timedelta(days=106_751)))
def test_agrees_with_timedelta(delta: timedelta) -> None:
    expected = Duration(delta // timedelta(microseconds=1) * 1000)
    assert parse_duration(delta) == expected
    text = f"{delta.days}d{delta.seconds}s{delta.microseconds}us"
    assert parse_duration(text) == expected


@given(st.decimals(0, 10**6, places=12), st.sampled_from(["w", "d", "h", "m", "s", "ms", "us"]))
def test_decimals_are_exact_or_refused(number: Any, unit: str) -> None:
    one = parse_duration(f"1{unit}")
    assert isinstance(one, Duration)
    exact = Fraction(number) * one.nanoseconds
    text = f"{number:f}{unit}"
    if exact > LARGEST or exact.denominator != 1:
        with pytest.raises(TextError):
            parse_duration(text)
    else:
        assert parse_duration(text) == Duration(int(exact))


SIZES = [
    ("64MB", 64_000_000),
    ("64mb", 64_000_000),
    (" 64 Mb ", 64_000_000),
    ("1B", 1),
    ("2KB", 2_000),
    ("3GB", 3 * 10**9),
    ("4TB", 4 * 10**12),
    ("1KiB", 1024),
    ("1MIB", 2**20),
    ("1gib", 2**30),
    ("1TiB", 2**40),
    ("1.5GB", 1_500_000_000),
    ("0.5KiB", 512),
    ("0", 0),
    ("0MB", 0),
    ("4096", 4096),
    ("9223372036854775807", LARGEST),
]


@pytest.mark.parametrize(("text", "size"), SIZES)
def test_bytes(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("size", [0, 1, LARGEST])
def test_bytes_as_integer(size: int) -> None:
    assert parse_bytes(size) == size


SIZE_UNITS = "B, KB, MB, GB, TB, KiB, MiB, GiB or TiB"
A_SIZE = "expected a size such as '64MB'"
BAD_SIZES = [
    ("64XB", "  ^", f"unknown unit 'XB', expected {SIZE_UNITS}"),
    ("64M", "  ^", f"unknown unit 'M', expected {SIZE_UNITS}"),
    ("64 %", "   ^", f"expected a unit ({SIZE_UNITS}), found '%'"),
    ("64MB free", "     ^", "expected the end, found 'f'"),
    ("64MB2KB", "    ^", "expected the end, found '2'"),
    ("MB", "^", f"{A_SIZE}, found 'M'"),
    ("-1", "^", f"{A_SIZE}, which is never negative"),
    (" -1MB", " ^", f"{A_SIZE}, which is never negative"),
    ("nan", "^", f"{A_SIZE}, found 'n'"),
    ("inf", "^", f"{A_SIZE}, found 'i'"),
    ("1,000", " ^", f"expected a unit ({SIZE_UNITS}), found ','"),
    ("1_000", " ^", f"expected a unit ({SIZE_UNITS}), found '_'"),
    ("1.", "  ^", "expected a digit after '.', found the end"),
    ("0.3B", "^", "'0.3B' is not a whole number of bytes"),
    ("1.5", "^", "'1.5' is not a whole number of bytes"),
    ("9223372036854775808", "^", "a size of more than 2**63 - 1 bytes"),
    ("9000000000TB", "^", "a size of more than 2**63 - 1 bytes"),
]


@pytest.mark.parametrize(("text", "caret", "reason"), BAD_SIZES)
def test_bad_bytes(text: str, caret: str, reason: str) -> None:
    with pytest.raises(TextError) as caught:
        parse_bytes(text, option="memory")
    assert str(caught.value) == f"memory: {reason}\n  {text}\n  {caret}"


@pytest.mark.parametrize(
    ("size", "reason"),
    [
        (-1, "memory: a size is never negative, found -1 bytes"),
        (2**63, "memory: a size of more than 2**63 - 1 bytes"),
    ],
)
def test_bytes_out_of_range(size: int, reason: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_bytes(size, option="memory")
    assert str(caught.value) == reason


@given(st.text() | st.text("0123456789.-+ dhmskKiMBb\u00b5"))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (parse_duration, parse_bytes):
        position = 0
        try:
            parse(text)
        except TextError as error:
            position = error.position
            str(error)
        assert 0 <= position <= len(text)
