"""Which column of which input a predicate means, and what it then comes down to.

For two inputs a predicate becomes a conjunction of (left column, comparison, right column) and, for
bands, (left column, "<=" or "<", right column, width), which is all that the native layer knows.
Columns that are not there, inputs that have no such name and comparisons within one input are
refused here, with the names that there are.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from dovetail._tokens import quote_name
from dovetail.errors import InternalError, InvalidInputError
from dovetail.predicates import (
    And,
    Band,
    Between,
    Chain,
    Col,
    Compare,
    Comparison,
    Overlaps,
    Predicate,
    Width,
)
from dovetail.units import Duration

__all__ = ["PairTerm", "pair_terms"]

#: A comparison, or a band with its width as text.
PairTerm = tuple[str, Comparison, str] | tuple[str, Literal["<=", "<"], str, str]

TURNED_ROUND: Final[dict[Comparison, Comparison]] = {
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
    "!=": "!=",
    "=": "=",
}
_SIDES: Final = ("left", "right")
_SIDE_OF: Final = {"left": 0, "t0": 0, "right": 1, "t1": 1}
_MOST_COLUMNS_SHOWN: Final = 8


def pair_terms(
    predicate: Predicate, left_columns: Sequence[str], right_columns: Sequence[str]
) -> list[PairTerm]:
    """Lower a predicate on two inputs to comparisons and bands, all to hold.

    >>> from dovetail._grammar import parse
    >>> pair_terms(parse("right.y < left.x and t between lo and hi"), ["x", "t"], ["y", "lo", "hi"])
    [('x', '>', 'y'), ('t', '>=', 'lo'), ('t', '<=', 'hi')]
    >>> pair_terms(parse("abs(right.y - left.x) < '10us'"), ["x"], ["y"])
    [('x', '<', 'y', '10000ns')]

    Overlapping is `left_low < right_high and left_high > right_low`: exact where no interval is
    empty or turned round.
    """
    columns = (left_columns, right_columns)
    terms: list[PairTerm] = []
    for term in predicate.terms if isinstance(predicate, And) else (predicate,):
        if isinstance(term, Band):
            left, right, _ = _sorted_sides(term, term.left, term.right, columns)
            terms.append((left, term.op, right, _width_text(term.width)))
            continue
        for first, op, second in _comparisons(term):
            left, right, turned = _sorted_sides(term, first, second, columns)
            if op == "=":
                raise InvalidInputError(_equality(term, left, right))
            terms.append((left, TURNED_ROUND[op] if turned else op, right))
    return terms


def _sorted_sides(
    term: Predicate, first: Col, second: Col, columns: tuple[Sequence[str], Sequence[str]]
) -> tuple[str, str, bool]:
    """The left and the right column of a term, and whether they were written the other way."""
    sides = (_side(first, 0, term), _side(second, 1, term))
    if sides[0] == sides[1]:
        raise InvalidInputError(_one_sided(term, first, second, _SIDES[sides[0]]))
    _check_present(first, sides[0], columns)
    _check_present(second, sides[1], columns)
    if sides == (0, 1):
        return first.name, second.name, False
    return second.name, first.name, True


def _width_text(width: Width) -> str:
    return f"{width.nanoseconds}ns" if isinstance(width, Duration) else str(width)


def _comparisons(term: Predicate) -> Iterator[tuple[Col, Comparison, Col]]:
    """The comparisons that a term on two inputs stands for."""
    if isinstance(term, Compare):
        yield term.left, term.op, term.right
    elif isinstance(term, Between):
        yield term.value, ">=", term.low
        yield term.value, "<=", term.high
    elif isinstance(term, Overlaps):
        yield term.left_low, "<", term.right_high
        yield term.left_high, ">", term.right_low
    elif isinstance(term, Chain):
        raise InvalidInputError(
            f"a chain compares three or more inputs, found '{term}' for two: use chain_join, "
            "or two comparisons with 'and'"
        )
    elif isinstance(term, Predicate):
        raise InternalError(f"no rule for the predicate {type(term).__name__}")
    else:
        raise InvalidInputError(f"expected a predicate, found {type(term).__name__}")


def check_equality_columns(
    pairs: Sequence[tuple[str, str]], left_columns: Sequence[str], right_columns: Sequence[str]
) -> None:
    """Refuses equality columns that the inputs do not have."""
    for pair in pairs:
        for side, name in enumerate(pair):
            _check_present(Col(name), side, (left_columns, right_columns))


def _side(column: Col, by_position: int, term: Predicate) -> int:
    if column.input is None:
        return by_position
    if column.input not in _SIDE_OF:
        dotted = quote_name(f"{column.input}.{column.name}")
        raise InvalidInputError(
            f"unknown input '{column.input}' in '{term}': the two inputs are called left and right "
            f"(or t0 and t1); a column whose name contains the dot is written {dotted}"
        )
    return _SIDE_OF[column.input]


def _one_sided(term: Predicate, first: Col, second: Col, side: str) -> str:
    message = (
        f"{first} and {second} in '{term}' are both columns of the {side} input; a join compares "
        "a column of the left input with one of the right"
    )
    if first.input is None or second.input is None:
        message += ", and those without an input are taken by position: left first, then right"
    return message


def _equality(term: Predicate, left: str, right: str) -> str:
    option = f"by={left!r}" if left == right else f"left_by={left!r}, right_by={right!r}"
    return f"equality is not part of the predicate: instead of '{term}' write {option}"


def _check_present(column: Col, side: int, columns: tuple[Sequence[str], Sequence[str]]) -> None:
    hint, other = "", _SIDES[1 - side]
    if column.name in columns[1 - side]:
        hint = f" (the {other} input has one: {Col(column.name, other)})"
    check_column(column.name, f"the {_SIDES[side]} input", columns[side], hint)


def check_column(name: str, input: str, here: Sequence[str], hint: str = "") -> None:
    """Refuses a column that ``input`` does not have, or has twice."""
    count = here.count(name)
    if count == 1:
        return
    if count > 1:
        raise InvalidInputError(f"{input} has {count} columns called '{name}'")
    if not hint and (close := difflib.get_close_matches(name, here, n=1)):
        hint = f" (did you mean '{close[0]}'?)"
    shown = ", ".join(f"'{name}'" for name in here[:_MOST_COLUMNS_SHOWN])
    if len(here) > _MOST_COLUMNS_SHOWN:
        shown += f" and {len(here) - _MOST_COLUMNS_SHOWN} more"
    raise InvalidInputError(
        f"{input} has no column '{name}'{hint}; its columns are {shown or 'none at all'}"
    )
