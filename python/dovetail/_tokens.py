"""Predicate text cut into tokens, and names written so that they are cut back whole.

Tokens are made one at a time, so that the first mistake in reading order is the one reported.
This module never fails: what it cannot read becomes a token of kind `bad`, and the parser says
what it expected in its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

KEYWORDS: Final = frozenset({"abs", "and", "between", "not", "or", "overlaps"})

# Spellings of the comparisons; everything else made of these characters is an unknown operator.
OPERATORS: Final = {
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "!=": "!=",
    "<>": "!=",
    "=": "=",
    "==": "=",
}
_OPERATOR_CHARACTERS: Final = frozenset("<>=!~&|^")
_DIGITS: Final = frozenset("0123456789")
_LONGEST_SHOWN: Final = 40

Kind = Literal["name", "quoted", "keyword", "number", "text", "operator", "symbol", "bad", "end"]


@dataclass(frozen=True)
class Token:
    """One token: `text` as it was written, `value` as it is meant."""

    kind: Kind
    text: str
    value: str
    position: int

    def __str__(self) -> str:
        if self.kind == "end":
            return "the end"
        text = self.text
        if len(text) > _LONGEST_SHOWN:
            text = text[: _LONGEST_SHOWN - 1] + "…"
        if self.kind == "number":
            return f"the number {text}"
        if self.kind == "text":
            return f"the text {text}"
        if self.kind == "quoted":
            return f"the column {text}"
        if not text.isprintable():
            return repr(text)
        return f"'{text}'"


def tokenize(text: str) -> Iterator[Token]:
    """The tokens of `text`, closed by one of kind `end` just after the last of them."""
    end = len(text.rstrip())
    position = 0
    while position < end:
        character = text[position]
        if character.isspace():
            position += 1
            continue
        if character in "\"`'":
            token = _quoted(text, position)
        elif character.isidentifier():
            word = text[position : _word_end(text, position)]
            is_keyword = word.lower() in KEYWORDS
            token = Token(
                "keyword" if is_keyword else "name",
                word,
                word.lower() if is_keyword else word,
                position,
            )
        elif character in _DIGITS:
            token = _number(text, position)
        elif character in _OPERATOR_CHARACTERS:
            token = _operator(text, position)
        else:
            kind: Kind = "symbol" if character in "(),.-" else "bad"
            token = Token(kind, character, character, position)
        yield token
        position += len(token.text)
    yield Token("end", "", "", end)


def quote_name(name: str) -> str:
    """`name` as it has to be written in a predicate.

    >>> quote_name("price"), quote_name("unit price"), quote_name("and")
    ('price', '"unit price"', '"and"')
    """
    if name.isidentifier() and name.lower() not in KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def _quoted(text: str, start: int) -> Token:
    """A name in double quotes or backticks, or a text in single quotes; doubled quotes escape."""
    quote = text[start]
    position = start + 1
    while (close := text.find(quote, position)) >= 0:
        if text[close + 1 : close + 2] != quote:
            value = text[start + 1 : close].replace(quote * 2, quote)
            kind: Kind = "text" if quote == "'" else "quoted"
            return Token(kind, text[start : close + 1], value, start)
        position = close + 2
    # Only the quote itself: it is where the mistake is.
    return Token("bad", quote, quote, start)


def _word_end(text: str, position: int) -> int:
    # Python's own identifier characters: letters, digits and marks of every script.
    while position < len(text) and f"a{text[position]}".isidentifier():
        position += 1
    return position


def _digits_end(text: str, position: int) -> int:
    while position < len(text) and text[position] in _DIGITS:
        position += 1
    return position


def _number(text: str, start: int) -> Token:
    """An integer or decimal number with an optional exponent; `10s` is one bad token."""
    end = _digits_end(text, start)
    if text[end : end + 1] == ".":
        fraction_end = _digits_end(text, end + 1)
        end = fraction_end if fraction_end > end + 1 else end
    if text[end : end + 1] in ("e", "E"):
        exponent = end + 2 if text[end + 1 : end + 2] in ("+", "-") else end + 1
        exponent_end = _digits_end(text, exponent)
        end = exponent_end if exponent_end > exponent else end
    word_end = _word_end(text, end)
    kind: Kind = "number" if word_end == end else "bad"
    return Token(kind, text[start:word_end], text[start:word_end], start)


def _operator(text: str, start: int) -> Token:
    end = start
    while end < len(text) and text[end] in _OPERATOR_CHARACTERS:
        end += 1
    written = text[start:end]
    if written in OPERATORS:
        return Token("operator", written, OPERATORS[written], start)
    return Token("bad", written, written, start)
