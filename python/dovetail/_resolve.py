"""Which column of which input a predicate means, and what it then comes down to.

For two inputs a predicate becomes a conjunction of (left column, comparison, right column), which
is all that the native layer knows. Columns that are not there, inputs that have no such name and
comparisons within one input are refused here, with the names that there are.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Final

from dovetail._tokens import quote_name
from dovetail.errors import InternalError, InvalidInputError, UnsupportedError
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
)

__all__ = ["pair_terms"]

_TURNED_ROUND: Final[dict[Comparison, Comparison]] = {
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
) -> list[tuple[str, Comparison, str]]:
    """Lower a predicate on two inputs to (left column, comparison, right column), all to hold.

    >>> from dovetail._grammar import parse
    >>> pair_terms(parse("right.y < left.x and t between lo and hi"), ["x", "t"], ["y", "lo", "hi"])
    [('x', '>', 'y'), ('t', '>=', 'lo'), ('t', '<=', 'hi')]

    Overlapping is `left_low < right_high and left_high > right_low`: exact where no interval is
    empty or turned round.
    """
    columns = (left_columns, right_columns)
    terms: list[tuple[str, Comparison, str]] = []
    for term, first, op, second in _comparisons(predicate):
        sides = (_side(first, 0, term), _side(second, 1, term))
        if sides[0] == sides[1]:
            raise InvalidInputError(_one_sided(term, first, second, _SIDES[sides[0]]))
        _check_present(first, sides[0], columns)
        _check_present(second, sides[1], columns)
        if op == "=":
            raise InvalidInputError(_equality(term, first.name, second.name, sides[0]))
        if sides == (0, 1):
            terms.append((first.name, op, second.name))
        else:
            terms.append((second.name, _TURNED_ROUND[op], first.name))
    return terms


def _comparisons(predicate: Predicate) -> Iterator[tuple[Predicate, Col, Comparison, Col]]:
    """The comparisons that a predicate on two inputs stands for, each with the term it is from."""
    if isinstance(predicate, And):
        for term in predicate.terms:
            yield from _comparisons(term)
    elif isinstance(predicate, Compare):
        yield predicate, predicate.left, predicate.op, predicate.right
    elif isinstance(predicate, Between):
        yield predicate, predicate.value, ">=", predicate.low
        yield predicate, predicate.value, "<=", predicate.high
    elif isinstance(predicate, Overlaps):
        yield predicate, predicate.left_low, "<", predicate.right_high
        yield predicate, predicate.left_high, ">", predicate.right_low
    elif isinstance(predicate, Band):
        raise UnsupportedError(
            f"band predicates are not supported by theta_join yet, found '{predicate}'"
        )
    elif isinstance(predicate, Chain):
        raise InvalidInputError(
            f"a chain compares three or more inputs, found '{predicate}' for two: use chain_join, "
            "or two comparisons with 'and'"
        )
    elif isinstance(predicate, Predicate):
        raise InternalError(f"no rule for the predicate {type(predicate).__name__}")
    else:
        raise InvalidInputError(f"expected a predicate, found {type(predicate).__name__}")


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


def _equality(term: Predicate, first: str, second: str, side: int) -> str:
    left, right = (first, second) if side == 0 else (second, first)
    option = f"by={left!r}" if left == right else f"left_by={left!r}, right_by={right!r}"
    return f"equality is not part of the predicate: instead of '{term}' write {option}"


def _check_present(column: Col, side: int, columns: tuple[Sequence[str], Sequence[str]]) -> None:
    name, here, there = column.name, columns[side], columns[1 - side]
    count = here.count(name)
    if count == 1:
        return
    if count > 1:
        raise InvalidInputError(f"the {_SIDES[side]} input has {count} columns called '{name}'")
    hint = ""
    if name in there:
        other = _SIDES[1 - side]
        hint = f" (the {other} input has one: {Col(name, other)})"
    elif close := difflib.get_close_matches(name, here, n=1):
        hint = f" (did you mean '{close[0]}'?)"
    shown = ", ".join(f"'{name}'" for name in here[:_MOST_COLUMNS_SHOWN])
    if len(here) > _MOST_COLUMNS_SHOWN:
        shown += f" and {len(here) - _MOST_COLUMNS_SHOWN} more"
    raise InvalidInputError(
        f"the {_SIDES[side]} input has no column '{name}'{hint}; "
        f"its columns are {shown or 'none at all'}"
    )
