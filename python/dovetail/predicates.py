"""Join predicates as small frozen values, and `col` to build them in Python.

Most people write text instead, which `dovetail._grammar` reads; `str` of a predicate is text that
reads back as an equal value. Predicates know no tables: which column of which input is meant is
settled in `dovetail._resolve`. A column without an input is meant by position: the first of a
comparison is the left input's, the second the right input's.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Final, Literal, NoReturn, SupportsIndex, cast, get_args

from dovetail._tokens import quote_name
from dovetail.errors import InvalidInputError
from dovetail.units import Duration, parse_duration

__all__ = [
    "And",
    "Band",
    "Between",
    "Chain",
    "Col",
    "ColumnExpression",
    "Compare",
    "Comparison",
    "Overlaps",
    "Predicate",
    "Width",
    "col",
]

Comparison = Literal["<", "<=", ">", ">=", "!=", "="]
Width = int | Decimal | Duration

_MOST_WIDTH_DIGITS: Final = 76  # of the widest Arrow decimal
_LARGEST_WIDTH_EXPONENT: Final = 400  # beyond the range of a float


@dataclass(frozen=True)
class Col:
    """A column by name; `input` is left, right, t0, t1, … or a dict's own name, or None for
    "by position".
    """

    name: str
    input: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise InvalidInputError(f"a column name is text, found {_type(self.name)}")
        if not isinstance(self.input, str | None):
            raise InvalidInputError(f"an input's name is text, found {_type(self.input)}")

    def __str__(self) -> str:
        name = quote_name(self.name)
        return name if self.input is None else f"{quote_name(self.input)}.{name}"


class Predicate:
    """What rows have to satisfy to be joined; `a & b` asks for both."""

    def __and__(self, other: Predicate) -> And:
        return And((self, other))

    def __bool__(self) -> NoReturn:
        # `a < b < c` and `p and q` ask for the truth of the first half, and would then drop it.
        raise InvalidInputError(
            "a predicate is neither true nor false: combine predicates with '&', not with 'and' "
            "or by chaining comparisons"
        )


@dataclass(frozen=True)
class Compare(Predicate):
    """`left op right`."""

    left: Col
    op: Comparison
    right: Col

    def __post_init__(self) -> None:
        _check_columns(self.left, self.right)
        _check_operator(self.op)

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


@dataclass(frozen=True)
class Chain(Predicate):
    """`a >= b < c …`: three or more columns, each compared with the next."""

    columns: tuple[Col, ...]
    ops: tuple[Comparison, ...]

    def __post_init__(self) -> None:
        _check_columns(*self.columns)
        for op in self.ops:
            _check_operator(op)
        if len(self.columns) < 3 or len(self.ops) != len(self.columns) - 1:
            raise InvalidInputError(
                "a chain has three or more columns and one comparison between each two, found "
                f"{len(self.columns)} columns and {len(self.ops)} comparisons"
            )

    def __str__(self) -> str:
        rest = (f" {op} {column}" for op, column in zip(self.ops, self.columns[1:], strict=True))
        return str(self.columns[0]) + "".join(rest)


@dataclass(frozen=True)
class Band(Predicate):
    """`abs(left - right) <= width`, or `<`."""

    left: Col
    right: Col
    width: Width
    op: Literal["<=", "<"] = "<="

    def __post_init__(self) -> None:
        _check_columns(self.left, self.right)
        if self.op not in ("<=", "<"):
            raise InvalidInputError(f"a band is '<=' or '<' its width, found {self.op!r}")
        check_width(self.width)

    def __str__(self) -> str:
        width = f"'{self.width}'" if isinstance(self.width, Duration) else str(self.width)
        return f"abs({self.left} - {self.right}) {self.op} {width}"


@dataclass(frozen=True)
class Between(Predicate):
    """`value between low and high`, both ends included."""

    value: Col
    low: Col
    high: Col

    def __post_init__(self) -> None:
        _check_columns(self.value, self.low, self.high)

    def __str__(self) -> str:
        return f"{self.value} between {self.low} and {self.high}"


@dataclass(frozen=True)
class Overlaps(Predicate):
    """The intervals [left_low, left_high) and [right_low, right_high) overlap.

    `overlaps(lo, hi)` means these two columns in every input, which for two inputs is the same as
    naming them twice.
    """

    left_low: Col
    left_high: Col
    right_low: Col
    right_high: Col

    def __post_init__(self) -> None:
        for low, high in (self.left_low, self.left_high), (self.right_low, self.right_high):
            _check_columns(low, high)
            if low.input != high.input:
                raise InvalidInputError(
                    f"both ends of an interval name the same input, found {low} and {high}"
                )

    def __str__(self) -> str:
        left, right = (self.left_low, self.left_high), (self.right_low, self.right_high)
        everywhere = left == right and self.left_low.input is None
        return f"overlaps({', '.join(map(str, left if everywhere else left + right))})"


@dataclass(frozen=True)
class And(Predicate):
    """All of two or more terms; an `And` among them is taken apart."""

    terms: tuple[Predicate, ...]

    def __post_init__(self) -> None:
        flat: list[Predicate] = []
        for term in self.terms:
            if not isinstance(term, Predicate):
                raise InvalidInputError(f"'and' combines predicates, found {_type(term)}")
            flat.extend(term.terms if isinstance(term, And) else (term,))
        if len(flat) < 2:
            raise InvalidInputError(f"'and' combines two or more predicates, found {len(flat)}")
        object.__setattr__(self, "terms", tuple(flat))

    def __str__(self) -> str:
        return " and ".join(map(str, self.terms))


def _check_columns(*columns: object) -> None:
    for column in columns:
        if not isinstance(column, Col):
            raise InvalidInputError(f"expected a Col, found {_type(column)}")


def _check_operator(op: object) -> None:
    if op not in get_args(Comparison):
        expected = ", ".join(get_args(Comparison))
        raise InvalidInputError(f"unknown comparison {op!r}, expected one of {expected}")


def check_width(width: object) -> None:
    """Refuse what cannot be the width of a band."""
    if isinstance(width, Duration):
        return
    if isinstance(width, bool) or not isinstance(width, int | Decimal):
        raise InvalidInputError(
            f"the width of a band is a number or a duration, found {_type(width)}"
        )
    if isinstance(width, Decimal):
        if not width.is_finite():
            raise InvalidInputError(f"the width of a band is finite, found {width}")
        _, digits, exponent = width.as_tuple()
        negative = width.is_signed()
        too_long = len(digits) > _MOST_WIDTH_DIGITS
        too_long = too_long or abs(cast(int, exponent)) > _LARGEST_WIDTH_EXPONENT
    else:
        negative = width < 0
        too_long = abs(width) >= 10**_MOST_WIDTH_DIGITS
    if too_long:
        raise InvalidInputError(
            f"the width of a band has at most {_MOST_WIDTH_DIGITS} digits and an exponent of at "
            f"most {_LARGEST_WIDTH_EXPONENT}"
        )
    if negative:
        raise InvalidInputError(f"the width of a band is never negative, found {width}")


def _type(value: object) -> str:
    return type(value).__name__


def col(name: str, input: str | None = None) -> ColumnExpression:
    """A column to build predicates from; `name` is taken as it is, dots and all.

    >>> print((col("x") < col("x2")) & (col("unit price", "right") >= col("price", "left")))
    x < x2 and right."unit price" >= left.price
    >>> print(abs(col("t") - col("t")) <= timedelta(seconds=10))
    abs(t - t) <= '10s'
    >>> print(col("t").between(col("start"), col("end")))
    t between start and end
    """
    return ColumnExpression(Col(name, input))


class ColumnExpression:
    """A column whose comparisons are predicates. Apart from `Col`, whose `==` means sameness."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, column: Col) -> None:
        _check_columns(column)
        self.column = column

    def __repr__(self) -> str:
        name, input = self.column.name, self.column.input
        return f"col({name!r})" if input is None else f"col({name!r}, {input!r})"

    def __lt__(self, other: ColumnExpression) -> Compare:
        return Compare(self.column, "<", _column(other))

    def __le__(self, other: ColumnExpression) -> Compare:
        return Compare(self.column, "<=", _column(other))

    def __gt__(self, other: ColumnExpression) -> Compare:
        return Compare(self.column, ">", _column(other))

    def __ge__(self, other: ColumnExpression) -> Compare:
        return Compare(self.column, ">=", _column(other))

    def __ne__(self, other: ColumnExpression) -> Compare:  # type: ignore[override]
        return Compare(self.column, "!=", _column(other))

    def __eq__(self, other: ColumnExpression) -> Compare:  # type: ignore[override]
        return Compare(self.column, "=", _column(other))

    def __sub__(self, other: ColumnExpression) -> _Difference:
        return _Difference(self.column, _column(other))

    def __and__(self, other: object) -> NoReturn:
        # `a < b & c < d` is `a < (b & c) < d` to Python.
        raise InvalidInputError("put each comparison in parentheses: (a < b) & (c < d)")

    def between(self, low: ColumnExpression, high: ColumnExpression) -> Between:
        """This column is within `low` and `high`, both ends included."""
        return Between(self.column, _column(low), _column(high))


@dataclass(frozen=True)
class _Difference:
    """`a - b`, on its way to `abs(a - b) <= width`."""

    left: Col
    right: Col
    is_absolute: bool = False

    def __abs__(self) -> _Difference:
        return _Difference(self.left, self.right, is_absolute=True)

    def __le__(self, width: object) -> Band:
        return self._band(width, "<=")

    def __lt__(self, width: object) -> Band:
        return self._band(width, "<")

    def _band(self, width: object, op: Literal["<=", "<"]) -> Band:
        if not self.is_absolute:
            raise InvalidInputError(
                f"a band is written abs({self.left} - {self.right}) {op} width, found no abs"
            )
        return Band(self.left, self.right, _width(width), op)


def _column(operand: object) -> Col:
    if isinstance(operand, ColumnExpression):
        return operand.column
    raise InvalidInputError(
        f"a join predicate compares columns, found {_type(operand)}: use col(…) for a column, "
        "and filter the input for a constant"
    )


def _width(value: object) -> Width:
    if isinstance(value, float):
        # The shortest decimal that reads back as this float; NumPy's floats print differently.
        return Decimal(float.__repr__(value))
    if isinstance(value, Decimal):
        return value
    return parse_duration(cast("str | timedelta | SupportsIndex", value), option="width")
