"""Predicates: what text means, where it is wrong, and what it comes down to for two inputs."""

from __future__ import annotations

import pickle
from datetime import timedelta
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dovetail._grammar import parse
from dovetail._resolve import pair_terms
from dovetail.errors import InvalidInputError, PredicateError
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
    col,
)
from dovetail.units import Duration

A, B, C, D = Col("a"), Col("b"), Col("c"), Col("d")
LO, HI = Col("lo"), Col("hi")
OPS: tuple[Comparison, ...] = ("<", "<=", ">", ">=", "!=", "=")


# --- Reading --------------------------------------------------------------------------------------

MEANINGS: list[tuple[str, Predicate]] = [
    ("a < b", Compare(A, "<", B)),
    ("a <= b", Compare(A, "<=", B)),
    ("a > b", Compare(A, ">", B)),
    ("a >= b", Compare(A, ">=", B)),
    ("a != b", Compare(A, "!=", B)),
    ("a <> b", Compare(A, "!=", B)),
    ("a = b", Compare(A, "=", B)),
    ("a == b", Compare(A, "=", B)),
    ("a<b", Compare(A, "<", B)),
    ("\n\ta  <\u00a0b\n", Compare(A, "<", B)),
    ("price > price", Compare(Col("price"), ">", Col("price"))),
    ("left.x < right.y", Compare(Col("x", "left"), "<", Col("y", "right"))),
    ("t0.x < t1.x", Compare(Col("x", "t0"), "<", Col("x", "t1"))),
    ("left < right", Compare(Col("left"), "<", Col("right"))),
    ("left.left < right.right", Compare(Col("left", "left"), "<", Col("right", "right"))),
    ('"left" < "left".x', Compare(Col("left"), "<", Col("x", "left"))),
    ('"unit price" < `list price`', Compare(Col("unit price"), "<", Col("list price"))),
    ('"a.b" < `c.d`', Compare(Col("a.b"), "<", Col("c.d"))),
    ('"say ""hi""" < `a``b`', Compare(Col('say "hi"'), "<", Col("a`b"))),
    ('"" < """"', Compare(Col(""), "<", Col('"'))),
    ('"my input"."my column" < b', Compare(Col("my column", "my input"), "<", B)),
    ('"and" < "ABS"', Compare(Col("and"), "<", Col("ABS"))),
    ("left.and < right.Between", Compare(Col("and", "left"), "<", Col("Between", "right"))),
    ("größe < цена", Compare(Col("größe"), "<", Col("цена"))),
    ("cafe\u0301 < 価格", Compare(Col("cafe\u0301"), "<", Col("価格"))),
    ("_x1 < x_1", Compare(Col("_x1"), "<", Col("x_1"))),
    ("android < orb", Compare(Col("android"), "<", Col("orb"))),
    ("abs(a - b) <= 5", Band(A, B, 5)),
    ("ABS (a-b) < 0.5", Band(A, B, Decimal("0.5"), "<")),
    ("abs(a - b) <= 1e3", Band(A, B, 1000)),
    ("abs(a - b) <= 2.5E-3", Band(A, B, Decimal("0.0025"))),
    ("abs(a - b) <= '10s'", Band(A, B, Duration(10**10))),
    (
        "abs(left.a - right.b) <= ' 1h 30m '",
        Band(Col("a", "left"), Col("b", "right"), Duration(5400 * 10**9)),
    ),
    ("a between lo and hi", Between(A, LO, HI)),
    ("a BETWEEN right.lo AND right.hi", Between(A, Col("lo", "right"), Col("hi", "right"))),
    ("overlaps(lo, hi)", Overlaps(LO, HI, LO, HI)),
    ("Overlaps(a, b, c, d)", Overlaps(A, B, C, D)),
    ("overlaps(lo, hi, lo, hi)", Overlaps(LO, HI, LO, HI)),
    ("a >= b < c", Chain((A, B, C), (">=", "<"))),
    ("high >= high < high", Chain((Col("high"),) * 3, (">=", "<"))),
    ("r.x < s.x != t.x = u.x", Chain(tuple(Col("x", i) for i in "rstu"), ("<", "!=", "="))),
    ("a < b and c > d", And((Compare(A, "<", B), Compare(C, ">", D)))),
    ("a between lo and hi and c < d", And((Between(A, LO, HI), Compare(C, "<", D)))),
    ("a < b < c And c < d", And((Chain((A, B, C), ("<", "<")), Compare(C, "<", D)))),
    ("(a < b)", Compare(A, "<", B)),
    (
        "((a < b) and ((c > d) and overlaps(lo, hi)))",
        And((Compare(A, "<", B), Compare(C, ">", D), Overlaps(LO, HI, LO, HI))),
    ),
    ("(" * 100 + "a < b" + ")" * 100, Compare(A, "<", B)),
]


@pytest.mark.parametrize(("text", "predicate"), MEANINGS, ids=[text[:60] for text, _ in MEANINGS])
def test_meaning(text: str, predicate: Predicate) -> None:
    assert parse(text) == predicate
    assert parse(str(predicate)) == predicate
    assert pickle.loads(pickle.dumps(predicate)) == predicate
    assert hash(parse(text)) == hash(predicate)


def test_built_predicates_are_returned() -> None:
    predicate = Compare(A, "<", B)
    assert parse(predicate) is predicate


WRITTEN = [
    ("a<b AND(c == d)", "a < b and c = d"),
    ("`and`<>left.`x y`", '"and" != left."x y"'),
    ("abs(a-b)<='90s'", "abs(a - b) <= '1m30s'"),
    ("abs(a-b)<0.50", "abs(a - b) < 0.50"),
    ("OVERLAPS(lo,hi,lo,hi)", "overlaps(lo, hi)"),
    ("overlaps(l.lo,l.hi,r.lo,r.hi)", "overlaps(l.lo, l.hi, r.lo, r.hi)"),
    ("a>b>=c", "a > b >= c"),
    ("a BETWEEN lo AND hi", "a between lo and hi"),
]


@pytest.mark.parametrize(("text", "written"), WRITTEN)
def test_str(text: str, written: str) -> None:
    assert str(parse(text)) == written


# --- Mistakes -------------------------------------------------------------------------------------

NO_OR = "is not supported: only 'and' combines comparisons"
COMPARISON = "expected a comparison (<, <=, >, >=, !=, =) or 'between'"
QUOTES = "column names go in double quotes or backticks"
DOTS = "a name that contains dots goes in double quotes"
TOO_LONG = "the width of a band has at most 76 digits and an exponent of at most 400"
EVERY_INPUT = "overlaps with two columns means these columns in every input"
KEYWORD = "a column with this name goes in double quotes"
FILTER = "filter the input to compare it with a constant"
WIDTH = "expected a width: a number, or a duration such as '10s'"
MISTAKES = [
    ("a", " ^", f"{COMPARISON}, found the end"),
    ("a  ", " ^", f"{COMPARISON}, found the end"),
    ("a b", "  ^", f"{COMPARISON}, found 'b'"),
    ("a < ", "   ^", "expected a column, found the end"),
    ("< b", "^", "expected a column, found '<'"),
    ("a < < b", "    ^", "expected a column, found '<'"),
    ("a < b and", "         ^", "expected a column, found the end"),
    ("and a < b", "^", f"expected a column, found 'and'; {KEYWORD}"),
    ("a < between", "    ^", f"expected a column, found 'between'; {KEYWORD}"),
    ("a < b c", "      ^", "expected 'and' or the end, found 'c'"),
    ("a < b, c < d", "     ^", "expected 'and' or the end, found ','"),
    ("a < b + c", "      ^", "expected 'and' or the end, found '+'"),
    ("a < b;", "     ^", "expected 'and' or the end, found ';'"),
    ("a => b", "  ^", "unknown operator '=>', did you mean '>='?"),
    ("a =< b", "  ^", "unknown operator '=<', did you mean '<='?"),
    ("a < b => c", "      ^", "unknown operator '=>', did you mean '>='?"),
    ("a ~ b", "  ^", f"{COMPARISON}, found '~'"),
    ("a ! b", "  ^", f"{COMPARISON}, found '!'"),
    ("a <=> b", "  ^", f"{COMPARISON}, found '<=>'"),
    ("a < b & c < d", "      ^", "unknown operator '&', did you mean 'and'?"),
    ("a < b || c < d", "      ^", "expected 'and' or the end, found '||'"),
    ("a < b or c < d", "      ^", f"'or' {NO_OR}"),
    ("(a < b OR c < d)", "       ^", f"'OR' {NO_OR}"),
    ("not a < b", "^", f"'not' {NO_OR}"),
    ("a not between b and c", "  ^", f"'not' {NO_OR}"),
    ("a < b and not c < d", "          ^", f"'not' {NO_OR}"),
    ("a < 5", "    ^", f"expected a column, found the number 5; {FILTER}"),
    ("5.5 < a", "^", f"expected a column, found the number 5.5; {FILTER}"),
    ("a < 'x'", "    ^", f"expected a column, found the text 'x'; {QUOTES}"),
    (
        "a < 2x",
        "    ^",
        "expected a column, found '2x'; a name that starts with a digit goes in quotes",
    ),
    ("a < -b", "    ^", "expected a column, found '-'"),
    ("a < *", "    ^", "expected a column, found '*'"),
    ("a < “b”", "    ^", "expected a column, found '“'"),
    ('a < "b', "    ^", 'expected a closing " for this one, found the end'),
    ("`a < b", "^", "expected a closing ` for this one, found the end"),
    ('a < "b""', "    ^", 'expected a closing " for this one, found the end'),
    ("abs(a - b) <= '5s", "              ^", "expected a closing ' for this one, found the end"),
    ('"a" "b"', "    ^", f'{COMPARISON}, found the column "b"'),
    ("left. < b", "      ^", "expected a column name after 'left.', found '<'"),
    ("left.5 < b", "     ^", "expected a column name after 'left.', found the number 5"),
    (".x < b", "^", "expected a column, found '.'"),
    ("a.b.c < d", "   ^", f"expected 'column' or 'input.column', found a second '.'; {DOTS}"),
    ("(a < b", "      ^", "expected ')' to close the '(' at character 1, found the end"),
    (
        "a < b and (c < d",
        "                ^",
        "expected ')' to close the '(' at character 11, found the end",
    ),
    ("a < b)", "     ^", "expected 'and' or the end, found ')'"),
    ("(a < b c)", "       ^", "expected 'and' or ')', found 'c'"),
    ("()", " ^", "expected a column, found ')'"),
    ("(a) < b", "  ^", f"{COMPARISON}, found ')'"),
    (
        "a between b",
        "           ^",
        "expected 'and' and the upper bound of 'between', found the end",
    ),
    (
        "a between b, c",
        "           ^",
        "expected 'and' and the upper bound of 'between', found ','",
    ),
    ("a between 1 and 2", "          ^", f"expected a column, found the number 1; {FILTER}"),
    ("a between b and", "               ^", "expected a column, found the end"),
    (
        "abs < b",
        "    ^",
        "expected '(' after 'abs' (a column called abs goes in quotes), found '<'",
    ),
    ("abs(a) <= 5", "     ^", "expected '-': a band is abs(a - b) <= width, found ')'"),
    ("abs(a + b) <= 5", "      ^", "expected '-': a band is abs(a - b) <= width, found '+'"),
    ("abs(a - 5) <= 5", "        ^", f"expected a column, found the number 5; {FILTER}"),
    ("abs(a - b <= 5", "          ^", "expected ')', found '<='"),
    ("abs(a - b", "         ^", "expected ')' to close the '(' at character 4, found the end"),
    (
        "abs(a - b) > 5",
        "           ^",
        "expected '<=' or '<': a band is abs(a - b) <= width, found '>'",
    ),
    (
        "abs(a - b)",
        "          ^",
        "expected '<=' or '<': a band is abs(a - b) <= width, found the end",
    ),
    ("abs(a - b) <=", "             ^", f"{WIDTH}, found the end"),
    ("abs(a - b) <= c", "              ^", f"{WIDTH}, found 'c'"),
    ("abs(a - b) <= .5", "              ^", f"{WIDTH}, found '.'"),
    ("abs(a - b) <= -5", "              ^", "expected a width that is not negative, found '-'"),
    (
        "abs(a - b) <= 10s",
        "              ^",
        "expected a number, or a duration in single quotes such as '10s', found '10s'",
    ),
    (
        "abs(a - b) <= '10x'",
        "                 ^",
        "unknown unit 'x', expected w, d, h, m, s, ms, us or ns",
    ),
    ("abs(a - b) <= ''", "               ^", "expected a duration such as '10s', found the end"),
    (
        "abs(a - b) <= '-1s'",
        "               ^",
        "expected a duration such as '10s', which is never negative",
    ),
    (
        "abs(a - b) <= '1''s'",
        "                ^",
        'expected a unit (w, d, h, m, s, ms, us or ns), found "\'"',
    ),
    ("abs(a - b) <= 1e999", "              ^", TOO_LONG),
    (
        "overlaps lo",
        "         ^",
        "expected '(' after 'overlaps' (a column called overlaps goes in quotes), found 'lo'",
    ),
    ("overlaps()", "         ^", "expected a column, found ')'"),
    ("overlaps(lo)", "           ^", "expected ',': overlaps takes two or four columns, found ')'"),
    (
        "overlaps(a, b, c)",
        "                ^",
        "expected ',': overlaps takes two or four columns, found ')'",
    ),
    (
        "overlaps(a, b, c, d, e)",
        "                   ^",
        "expected ')': overlaps takes two or four columns, found ','",
    ),
    (
        "overlaps(a, b",
        "             ^",
        "expected ',': overlaps takes two or four columns, found the end",
    ),
    (
        "overlaps(left.a, right.b, c, d)",
        "                 ^",
        "both ends of an interval name the same input, found left.a and right.b",
    ),
    (
        "overlaps(left.a, left.b)",
        "         ^",
        f"{EVERY_INPUT}: expected a column without an input, found left.a",
    ),
]


@pytest.mark.parametrize(("text", "caret", "reason"), MISTAKES, ids=[case[0] for case in MISTAKES])
def test_mistake(text: str, caret: str, reason: str) -> None:
    with pytest.raises(PredicateError) as caught:
        parse(text)
    assert str(caught.value) == f"{reason}\n  {text}\n  {caret}"
    assert (caught.value.text, caught.value.position) == (text, len(caret) - 1)


def test_mistake_is_shown_on_its_own_line() -> None:
    with pytest.raises(PredicateError) as caught:
        parse("a < b\n  and c ~ d\n  and e < f")
    assert str(caught.value) == f"{COMPARISON}, found '~'\n    and c ~ d\n          ^"


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_empty(text: str) -> None:
    with pytest.raises(PredicateError) as caught:
        parse(text)
    assert str(caught.value) == (
        "expected a predicate such as 'price > price', found an empty text"
    )


@pytest.mark.parametrize("value", [None, 5, b"a < b", ["a < b"], A, col("a")], ids=repr)
def test_not_text(value: Any) -> None:
    with pytest.raises(PredicateError) as caught:
        parse(value)
    assert str(caught.value) == (
        f"expected a predicate as text, such as 'price > price', found {type(value).__name__}"
    )


LONG = [
    ("(" * 101 + "a < b" + ")" * 101, 100, "expected parentheses at most 100 deep, found more"),
    ("(" * 9_000, 100, "expected parentheses at most 100 deep, found more"),
    ("(" * 100_000, 10_000, "expected at most 10000 characters, found 100000"),
    ("abs(a - b) <= " + "9" * 5_000, 14, "expected a width of fewer digits"),
    ("abs(a - b) <= 0." + "9" * 5_000, 14, TOO_LONG),
    ("abs(a - b) <= 1e" + "9" * 5_000, 14, "expected a width of fewer digits"),
    ("a < " + "b" * 5_000 + " c", 5_005, "expected 'and' or the end, found 'c'"),
    ("a < b " + "c" * 5_000, 6, f"expected 'and' or the end, found '{'c' * 39}…'"),
]


@pytest.mark.parametrize(("text", "position", "reason"), LONG, ids=range(len(LONG)))
def test_long_texts(text: str, position: int, reason: str) -> None:
    with pytest.raises(PredicateError) as caught:
        parse(text)
    assert (caught.value.reason, caught.value.position) == (reason, position)
    assert len(str(caught.value)) < 400


def test_many_terms() -> None:
    predicate = parse(" and ".join(["a < b"] * 900))
    assert predicate == And((Compare(A, "<", B),) * 900)


# --- Any text, any predicate ----------------------------------------------------------------------

names = st.text(max_size=8) | st.sampled_from(
    [
        "x",
        "left",
        "right",
        "t0",
        "and",
        "AND",
        "abs",
        "not",
        "Or",
        "between",
        "overlaps",
        "a.b",
        "1",
    ]
)
columns = st.builds(Col, names, st.none() | names)
ops = st.sampled_from(OPS)
widths = (
    st.integers(0, 10**76 - 1)
    | st.decimals(0, 10**9, allow_nan=False, allow_infinity=False)
    .filter(lambda d: not d.is_signed())
    .filter(lambda d: len(d.as_tuple().digits) <= 76)
    .filter(lambda d: abs(int(d.as_tuple().exponent)) <= 400)
    | st.builds(Duration, st.integers(0, 2**63 - 1))
)


@st.composite
def chains(draw: st.DrawFn) -> Chain:
    chain_ops = draw(st.lists(ops, min_size=2, max_size=4))
    size = len(chain_ops) + 1
    return Chain(tuple(draw(st.lists(columns, min_size=size, max_size=size))), tuple(chain_ops))


@st.composite
def overlapping(draw: st.DrawFn) -> Overlaps:
    left, right = draw(st.none() | names), draw(st.none() | names)
    ends = [Col(draw(names), side) for side in (left, left, right, right)]
    return Overlaps(*ends) if draw(st.booleans()) else Overlaps(*ends[:2], *ends[:2])


terms = (
    st.builds(Compare, columns, ops, columns)
    | st.builds(Band, columns, columns, widths, st.sampled_from(["<", "<="]))
    | st.builds(Between, columns, columns, columns)
    | overlapping()
    | chains()
)
predicates = terms | st.lists(terms, min_size=2, max_size=4).map(lambda some: And(tuple(some)))


@given(predicates)
@example(Overlaps(*(Col("lo", "left"), Col("hi", "left")) * 2))
@example(Band(A, B, Decimal("1E-300")))
def test_reads_back(predicate: Predicate) -> None:
    text = str(predicate)
    assert parse(text) == predicate
    assert str(parse(text)) == text


def check_read_or_refused(text: str) -> None:
    predicate, position = None, 0
    try:
        predicate = parse(text)
    except PredicateError as error:
        position = error.position
        str(error)
    assert 0 <= position <= len(text)
    if predicate is not None:
        assert parse(str(predicate)) == predicate


PIECES = ["a", "left", ".", "(", ")", ",", "-", "and", "between", "abs", "overlaps", "or", "not"]
PIECES += ["<", "<=", "=>", "=", "!", "~", "5", "0.5", "10s", "'1s'", "'", '"', "`"]


@given(
    st.text()
    | st.text("ab.()<>=!'\"` -,5e")
    | st.lists(st.sampled_from([*PIECES, "\n"])).map(" ".join)
    | st.lists(st.sampled_from(PIECES)).map("".join)
)
def test_any_text_is_read_or_refused(text: str) -> None:
    check_read_or_refused(text)


@given(predicates, st.data())
def test_one_character_more_or_less(predicate: Predicate, data: st.DataObject) -> None:
    text = str(predicate)
    at = data.draw(st.integers(0, len(text) - 1))
    for edited in (text[:at] + text[at + 1 :], text[:at] + text[at] + text[at:], text[:at]):
        check_read_or_refused(edited)


# --- Predicates from Python -----------------------------------------------------------------------


def test_columns_compare() -> None:
    a, b = col("a"), col("b", "right")
    right = Col("b", "right")
    built = [a < b, a <= b, a > b, a >= b, a != b, a == b]
    assert built == [Compare(A, op, right) for op in OPS]


def test_predicates_combine() -> None:
    p, q, r = Compare(A, "<", B), Compare(B, "<", C), Between(A, B, C)
    assert (p & q) & r == p & (q & r) == And((p, q, r))
    assert (col("a") < col("b")) & (col("b") < col("c")) == And((p, q))
    assert col("a").between(col("b"), col("c")) == r


WIDTHS: list[tuple[Any, Any]] = [
    (5, 5),
    (0.1, Decimal("0.1")),
    (Decimal("2.50"), Decimal("2.50")),
    ("10s", Duration(10**10)),
    (timedelta(seconds=10), Duration(10**10)),
    (Duration(3), Duration(3)),
]


@pytest.mark.parametrize(("width", "meant"), WIDTHS, ids=repr)
def test_bands_from_python(width: Any, meant: Any) -> None:
    assert (abs(col("a") - col("b")) <= width) == Band(A, B, meant)
    assert (abs(col("a") - col("b")) < width) == Band(A, B, meant, "<")


def test_repr_of_columns() -> None:
    assert [repr(col("a")), repr(col("a", "left"))] == ["col('a')", "col('a', 'left')"]


REFUSED: list[tuple[str, Any, str]] = [
    ("chained", lambda: col("a") < col("b") < col("c"), "neither true nor false"),
    ("and", lambda: (col("a") < col("b")) and (col("b") < col("c")), "neither true nor false"),
    ("precedence", lambda: col("a") < col("b") & col("c") < col("d"), "in parentheses"),
    ("constant", lambda: col("a") < 5, "compares columns, found int"),  # type: ignore[operator]
    ("text", lambda: col("a") == "b", "compares columns, found str"),
    ("no abs", lambda: col("a") - col("b") <= 5, "found no abs"),
    ("negative width", lambda: abs(col("a") - col("b")) <= -5, "never negative"),
    ("negative float", lambda: abs(col("a") - col("b")) <= -0.5, "never negative, found -0.5"),
    ("nan", lambda: abs(col("a") - col("b")) <= float("nan"), "finite, found NaN"),  # noqa: PLW0177
    ("infinite", lambda: abs(col("a") - col("b")) < float("inf"), "finite, found Infinity"),
    ("bool", lambda: abs(col("a") - col("b")) < True, "found bool"),
    ("width text", lambda: abs(col("a") - col("b")) < "5", "width: expected a unit"),
    ("and of other things", lambda: Compare(A, "<", B) & True, "found bool"),  # type: ignore[operator]
    ("and of one", lambda: And((Compare(A, "<", B),)), "two or more predicates, found 1"),
    ("column name", lambda: col(5), "a column name is text, found int"),  # type: ignore[arg-type]
    ("input name", lambda: col("a", 5), "name is text, found int"),  # type: ignore[arg-type]
    ("names for columns", lambda: Compare("a", "<", "b"), "a Col, found str"),  # type: ignore[arg-type]
    ("operator", lambda: Compare(A, "=>", B), "unknown comparison '=>'"),  # type: ignore[arg-type]
    ("band operator", lambda: Band(A, B, 5, ">"), "'<=' or '<' its width"),  # type: ignore[arg-type]
    ("band width", lambda: Band(A, B, 0.5), "found float"),  # type: ignore[arg-type]
    ("short chain", lambda: Chain((A, B), ("<",)), "found 2 columns and 1 comparisons"),
    ("loose chain", lambda: Chain((A, B, C), ("<",)), "found 3 columns and 1 comparisons"),
    ("mixed interval", lambda: Overlaps(A, Col("b", "left"), C, D), "found a and left.b"),
]


@pytest.mark.parametrize(("build", "reason"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_refused_in_python(build: Any, reason: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        build()
    assert reason in str(caught.value)


def test_column_expressions_have_no_hash() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(col("a"))


# --- Two inputs -----------------------------------------------------------------------------------

LEFT = ["id", "x", "y", "left", "lo", "hi", "a.b"]
RIGHT = ["id", "x", "z", "right", "lo", "hi", "price"]

PAIRS = [
    ("x < z", [("x", "<", "z")]),
    ("x != x", [("x", "!=", "x")]),
    ("left.x < right.z", [("x", "<", "z")]),
    ("right.z < left.x", [("x", ">", "z")]),
    ("right.z <= left.x", [("x", ">=", "z")]),
    ("right.z > left.x", [("x", "<", "z")]),
    ("right.z >= left.x", [("x", "<=", "z")]),
    ("right.z != left.x", [("x", "!=", "z")]),
    ("t1.z < t0.x", [("x", ">", "z")]),
    ("t0.x < right.z", [("x", "<", "z")]),
    ("x < right.z", [("x", "<", "z")]),
    ("left < right", [("left", "<", "right")]),
    ("left.left < right.right", [("left", "<", "right")]),
    ('"a.b" < price', [("a.b", "<", "price")]),
    ("x < z and y > x", [("x", "<", "z"), ("y", ">", "x")]),
    ("x between lo and hi", [("x", ">=", "lo"), ("x", "<=", "hi")]),
    ("right.z between left.lo and left.hi", [("lo", "<=", "z"), ("hi", ">=", "z")]),
    ("overlaps(lo, hi)", [("lo", "<", "hi"), ("hi", ">", "lo")]),
    ("overlaps(x, y, z, price)", [("x", "<", "price"), ("y", ">", "z")]),
    ("overlaps(right.z, right.price, left.x, left.y)", [("y", ">", "z"), ("x", "<", "price")]),
    ("abs(x - z) <= 5 and y < z", [("x", "<=", "z", "5"), ("y", "<", "z")]),
    ("abs(right.z - left.x) < 2.5e-3", [("x", "<", "z", "0.0025")]),
    ("abs(x - z) <= '1h30m'", [("x", "<=", "z", "5400000000000ns")]),
]


@pytest.mark.parametrize(("text", "expected"), PAIRS, ids=[case[0] for case in PAIRS])
def test_pair_terms(text: str, expected: list[tuple[str, ...]]) -> None:
    assert pair_terms(parse(text), LEFT, RIGHT) == expected


THEIRS = "its columns are 'id', 'x', 'z', 'right', 'lo', 'hi', 'price'"
OURS = "its columns are 'id', 'x', 'y', 'left', 'lo', 'hi', 'a.b'"
BOTH = "a join compares a column of the left input with one of the right"
BY_POSITION = "and those without an input are taken by position: left first, then right"
NAMED = "the two inputs are called left and right (or t0 and t1)"
DOTTED = "a column whose name contains the dot is written"
EQUALITY = "equality is not part of the predicate"
BOTH_LEFT = f"are both columns of the left input; {BOTH}"
BOTH_RIGHT = f"are both columns of the right input; {BOTH}"
UNRESOLVED = [
    ("x < prise", f"the right input has no column 'prise' (did you mean 'price'?); {THEIRS}"),
    ("x < Price", f"the right input has no column 'Price' (did you mean 'price'?); {THEIRS}"),
    ("qqq < z", f"the left input has no column 'qqq'; {OURS}"),
    ("z < x", f"the left input has no column 'z' (the right input has one: right.z); {OURS}"),
    ("x < x_right", f"the right input has no column 'x_right' (did you mean 'right'?); {THEIRS}"),
    ("x < z and x between lo and top", f"the right input has no column 'top'; {THEIRS}"),
    ("l.x < z", f"unknown input 'l' in 'l.x < z': {NAMED}; {DOTTED} \"l.x\""),
    ("x < t2.z", f"unknown input 't2' in 'x < t2.z': {NAMED}; {DOTTED} \"t2.z\""),
    ("left.x < left.y", f"left.x and left.y in 'left.x < left.y' {BOTH_LEFT}"),
    ("right.x < right.z", f"right.x and right.z in 'right.x < right.z' {BOTH_RIGHT}"),
    ("x < left.y", f"x and left.y in 'x < left.y' {BOTH_LEFT}, {BY_POSITION}"),
    ("right.z < x", f"right.z and x in 'right.z < x' {BOTH_RIGHT}, {BY_POSITION}"),
    (
        "x between lo and left.hi",
        f"x and left.hi in 'x between lo and left.hi' {BOTH_LEFT}, {BY_POSITION}",
    ),
    ("x = x", f"{EQUALITY}: instead of 'x = x' write by='x'"),
    (
        "right.z == left.x",
        f"{EQUALITY}: instead of 'right.z = left.x' write left_by='x', right_by='z'",
    ),
    ("abs(x - qqq) <= 5", f"the right input has no column 'qqq'; {THEIRS}"),
    ("abs(x - left.y) <= 5", f"x and left.y in 'abs(x - left.y) <= 5' {BOTH_LEFT}, {BY_POSITION}"),
    (
        "x < z < y",
        "a chain compares three or more inputs, found 'x < z < y' for two: "
        "use chain_join, or two comparisons with 'and'",
    ),
]


@pytest.mark.parametrize(("text", "reason"), UNRESOLVED, ids=[case[0] for case in UNRESOLVED])
def test_pair_terms_refuses(text: str, reason: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        pair_terms(parse(text), LEFT, RIGHT)
    assert str(caught.value) == reason


def test_pair_terms_wants_a_predicate() -> None:
    with pytest.raises(InvalidInputError, match="expected a predicate, found str"):
        pair_terms("x < z", LEFT, RIGHT)  # type: ignore[arg-type]


EIGHT = "'c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7'"


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        ([], "none at all"),
        (["c0"], "'c0'"),
        ([f"c{i}" for i in range(8)], EIGHT),
        ([f"c{i}" for i in range(1000)], f"{EIGHT} and 992 more"),
    ],
    ids=["none", "one", "all shown", "abbreviated"],
)
def test_missing_column_lists_those_there_are(columns: list[str], shown: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        pair_terms(parse("x < zzz"), ["x"], columns)
    assert str(caught.value) == f"the right input has no column 'zzz'; its columns are {shown}"


def test_column_that_is_there_twice() -> None:
    with pytest.raises(InvalidInputError, match="the left input has 2 columns called 'x'"):
        pair_terms(parse("x < z"), ["x", "x"], ["z"])


HOLDS: dict[str, Any] = {
    "<": int.__lt__,
    "<=": int.__le__,
    ">": int.__gt__,
    ">=": int.__ge__,
    "!=": int.__ne__,
}


def holds(text: str, left: dict[str, int], right: dict[str, int]) -> bool:
    pairs = pair_terms(parse(text), list(left), list(right))
    return all(HOLDS[op](left[a], right[b]) for a, op, b in pairs)


@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "!="])
def test_oracle_turned_round(op: str) -> None:
    for a, b in product(range(3), repeat=2):
        assert holds(f"right.b {op} left.a", {"a": a}, {"b": b}) == HOLDS[op](b, a)


def test_oracle_between() -> None:
    for v, lo, hi in product(range(4), repeat=3):
        expected = lo <= v <= hi
        assert holds("v between lo and hi", {"v": v}, {"lo": lo, "hi": hi}) == expected
        turned = "right.v between left.lo and left.hi"
        assert holds(turned, {"lo": lo, "hi": hi}, {"v": v}) == expected


def test_oracle_overlaps() -> None:
    for a, b, c, d in product(range(5), repeat=4):
        if a < b and c < d:
            expected = bool(set(range(a, b)) & set(range(c, d)))
            left, right = {"lo": a, "hi": b}, {"lo": c, "hi": d}
            assert holds("overlaps(lo, hi)", left, right) == expected
            turned = "overlaps(right.lo, right.hi, left.lo, left.hi)"
            assert holds(turned, left, right) == expected
