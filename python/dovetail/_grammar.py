"""The text of a predicate, read into the values of `dovetail.predicates`.

    predicate  = term { "and" term }
    term       = "(" predicate ")" | band | overlaps | between | comparison
    band       = "abs" "(" column "-" column ")" ( "<=" | "<" ) ( number | duration )
    overlaps   = "overlaps" "(" column "," column [ "," column "," column ] ")"
    between    = column "between" column "and" column
    comparison = column operator column { operator column }
    column     = [ name "." ] name

Names are letters, digits and underscores, or anything between double quotes or backticks; a doubled
quote stands for itself. Keywords may be in any case, operators are `< <= > >= != =` (also `<>` and
`==`), and durations stand in single quotes.

>>> predicate = parse("x < x2 AND abs(left.t - right.t) <= '90s'")
>>> print(predicate)
x < x2 and abs(left.t - right.t) <= '1m30s'
>>> parse(str(predicate)) == predicate
True

The first mistake in reading order is the one reported, and nothing but `PredicateError` is raised.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Final, Literal, cast

from dovetail._tokens import Token, tokenize
from dovetail.errors import InvalidInputError, PredicateError, TextError
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
    check_width,
)
from dovetail.units import parse_duration

__all__ = ["parse"]

_LONGEST_TEXT: Final = 10_000
_DEEPEST_NESTING: Final = 100
_OPERATORS_EXPECTED: Final = "a comparison (<, <=, >, >=, !=, =) or 'between'"
_DID_YOU_MEAN: Final = {
    "=>": ">=",
    "=<": "<=",
    "=!": "!=",
    "><": "<>",
    "~=": "!=",
    "!==": "!=",
    "===": "=",
    "&": "and",
    "&&": "and",
}


def parse(text: str | Predicate) -> Predicate:
    """Read a predicate from text; one that is built already is returned as it is.

    >>> parse("price > price")
    Compare(left=Col(name='price', input=None), op='>', right=Col(name='price', input=None))
    >>> parse("price => price")
    Traceback (most recent call last):
    ...
    dovetail.errors.PredicateError: unknown operator '=>', did you mean '>='?
      price => price
            ^
    """
    if isinstance(text, Predicate):
        return text
    if not isinstance(text, str):
        raise PredicateError(
            f"expected a predicate as text, such as 'price > price', found {type(text).__name__}",
            "",
            0,
        )
    if len(text) > _LONGEST_TEXT:
        raise PredicateError(
            f"expected at most {_LONGEST_TEXT} characters, found {len(text)}", text, _LONGEST_TEXT
        )
    return _Parser(text).predicate()


class _Parser:
    """Recursive descent with one token of lookahead; a method per rule of the grammar."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.token = next(self.tokens)

    def predicate(self) -> Predicate:
        if self.at_end():
            raise self.error("expected a predicate such as 'price > price', found an empty text")
        predicate = self.conjunction(depth=0)
        if not self.at_end():
            raise self.unexpected("'and' or the end")
        return predicate

    def conjunction(self, depth: int) -> Predicate:
        terms = [self.term(depth)]
        while self.take("keyword", "and"):
            terms.append(self.term(depth))
        return And(tuple(terms)) if len(terms) > 1 else terms[0]

    def term(self, depth: int) -> Predicate:
        opening = self.token
        if self.take("symbol", "("):
            if depth == _DEEPEST_NESTING:
                raise self.error(
                    f"expected parentheses at most {_DEEPEST_NESTING} deep, found more", opening
                )
            predicate = self.conjunction(depth + 1)
            self.close(opening, "'and' or ')'")
            return predicate
        if self.take("keyword", "abs"):
            return self.band()
        if self.take("keyword", "overlaps"):
            return self.overlaps()
        return self.comparison()

    def band(self) -> Band:
        opening = self.expect("(", "'(' after 'abs' (a column called abs goes in quotes)")
        left = self.column()
        self.expect("-", "'-': a band is abs(a - b) <= width")
        right = self.column()
        self.close(opening)
        operator = self.token
        if operator.kind != "operator" or operator.value not in ("<=", "<"):
            raise self.unexpected("'<=' or '<': a band is abs(a - b) <= width")
        self.advance()
        return Band(left, right, self.width(), cast(Literal["<=", "<"], operator.value))

    def width(self) -> Width:
        token = self.token
        if token.kind == "text":
            width = self.duration(token)
        elif token.kind == "number":
            width = self.number(token)
        elif token.kind == "symbol" and token.value == "-":
            raise self.error("expected a width that is not negative, found '-'")
        elif token.kind == "bad" and token.text[0].isdigit():
            raise self.unexpected("a number, or a duration in single quotes such as '10s'")
        else:
            raise self.unexpected("a width: a number, or a duration such as '10s'")
        self.advance()
        return width

    def duration(self, token: Token) -> Width:
        try:
            return parse_duration(token.value)
        except TextError as error:
            # Within the quotes: nothing before the mistake can have been an escaped quote.
            position = token.position + 1 + error.position
            raise PredicateError(error.reason, self.text, position) from None

    def number(self, token: Token) -> Width:
        try:
            width = int(token.value) if token.value.isdigit() else Decimal(token.value)
            check_width(width)
        except InvalidInputError as error:
            raise self.error(str(error)) from None
        except (ValueError, InvalidOperation):
            # More digits, or a longer exponent, than Python itself cares to read.
            raise self.error("expected a width of fewer digits") from None
        return width

    def overlaps(self) -> Overlaps:
        opening = self.expect("(", "'(' after 'overlaps' (a column called overlaps goes in quotes)")
        columns: list[Col] = []
        positions: list[Token] = []
        while True:
            positions.append(self.token)
            columns.append(self.column())
            if len(columns) % 2 == 0 and columns[-2].input != columns[-1].input:
                low, high = columns[-2:]
                raise self.error(
                    f"both ends of an interval name the same input, found {low} and {high}",
                    positions[-1],
                )
            if len(columns) == 4 or (len(columns) == 2 and self.is_next("symbol", ")")):
                break
            self.expect(",", "',': overlaps takes two or four columns")
        if len(columns) == 2 and columns[0].input is not None:
            raise self.error(
                "overlaps with two columns means these columns in every input: expected a column "
                f"without an input, found {columns[0]}",
                positions[0],
            )
        self.close(opening, "')': overlaps takes two or four columns")
        left_low, left_high, right_low, right_high = columns if len(columns) == 4 else columns * 2
        return Overlaps(left_low, left_high, right_low, right_high)

    def comparison(self) -> Predicate:
        first = self.column()
        if self.take("keyword", "between"):
            low = self.column()
            if not self.take("keyword", "and"):
                raise self.unexpected("'and' and the upper bound of 'between'")
            return Between(first, low, self.column())
        columns = [first]
        ops: list[Comparison] = []
        while self.token.kind == "operator":
            ops.append(cast(Comparison, self.advance().value))
            columns.append(self.column())
        if not ops:
            raise self.unexpected(_OPERATORS_EXPECTED)
        if len(ops) == 1:
            return Compare(columns[0], ops[0], columns[1])
        return Chain(tuple(columns), tuple(ops))

    def column(self) -> Col:
        token = self.token
        if token.kind == "number":
            raise self.unexpected("a column", "; filter the input to compare it with a constant")
        if token.kind == "text":
            raise self.unexpected("a column", "; column names go in double quotes or backticks")
        if token.kind == "bad" and token.text[0].isdigit():
            raise self.unexpected("a column", "; a name that starts with a digit goes in quotes")
        if token.kind == "keyword" and token.value not in ("or", "not"):
            raise self.unexpected("a column", "; a column with this name goes in double quotes")
        if token.kind not in ("name", "quoted"):
            raise self.unexpected("a column")
        self.advance()
        if not self.take("symbol", "."):
            return Col(token.value)
        name = self.token
        if name.kind not in ("name", "quoted", "keyword"):
            raise self.unexpected(f"a column name after '{token.text}.'")
        self.advance()
        if self.is_next("symbol", "."):
            raise self.error(
                "expected 'column' or 'input.column', found a second '.'; a name that contains "
                "dots goes in double quotes"
            )
        # After a dot every word is a name, keywords too.
        return Col(name.text if name.kind == "keyword" else name.value, token.value)

    def at_end(self) -> bool:
        return self.token.kind == "end"

    def is_next(self, kind: str, value: str) -> bool:
        return self.token.kind == kind and self.token.value == value

    def take(self, kind: str, value: str) -> bool:
        found = self.is_next(kind, value)
        if found:
            self.advance()
        return found

    def expect(self, symbol: str, expected: str) -> Token:
        if not self.is_next("symbol", symbol):
            raise self.unexpected(expected)
        return self.advance()

    def close(self, opening: Token, expected: str = "')'") -> None:
        if self.at_end():
            raise self.unexpected(f"')' to close the '(' at character {opening.position + 1}")
        self.expect(")", expected)

    def advance(self) -> Token:
        token = self.token
        if not self.at_end():
            self.token = next(self.tokens)
        return token

    def unexpected(self, expected: str, hint: str = "") -> PredicateError:
        """The error for the next token where the grammar wants something else."""
        token = self.token
        if token.kind == "keyword" and token.value in ("or", "not"):
            return self.error(f"'{token.text}' is not supported: only 'and' combines comparisons")
        if token.kind == "bad":
            if token.text in ('"', "`", "'"):
                return self.error(f"expected a closing {token.text} for this one, found the end")
            if token.text in _DID_YOU_MEAN:
                meant = _DID_YOU_MEAN[token.text]
                return self.error(f"unknown operator '{token.text}', did you mean '{meant}'?")
        return self.error(f"expected {expected}, found {token}{hint}")

    def error(self, reason: str, token: Token | None = None) -> PredicateError:
        return PredicateError(reason, self.text, (token or self.token).position)
