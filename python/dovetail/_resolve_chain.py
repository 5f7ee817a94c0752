"""Which columns of which inputs the predicate of a chain means: the comparisons between neighbours.

A chain of columns is read by position, `high >= high < high`, one column of each input; everything
else says which input it means, `t0.a < t1.b and t1.c >= t2.d`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dovetail._resolve import TURNED_ROUND, check_column
from dovetail._tokens import quote_name
from dovetail.errors import InvalidInputError, UnsupportedError
from dovetail.predicates import And, Between, Chain, Col, Compare, Comparison, Predicate

#: Column of the earlier input, comparison, column of the later one.
Term = tuple[str, Comparison, str]


def chain_links(
    predicate: Predicate, names: Sequence[str], columns: Sequence[Sequence[str]]
) -> list[list[Term]]:
    """The terms between each two neighbours, for inputs of these names and columns.

    >>> from dovetail._grammar import parse
    >>> chain_links(parse("a >= b < c"), ["t0", "t1", "t2"], [["a"], ["b"], ["c"]])
    [[('a', '>=', 'b')], [('b', '<', 'c')]]
    >>> chain_links(parse("z.c > y.b and x.a != y.b"), ["x", "y", "z"], [["a"], ["b"], ["c"]])
    [[('a', '!=', 'b')], [('b', '<', 'c')]]
    """
    links: list[list[Term]] = [[] for _ in names[1:]]
    for term in predicate.terms if isinstance(predicate, And) else (predicate,):
        for first, op, second in _comparisons(term, names):
            for column in (first, second):
                check_column(column[1], names[column[0]], columns[column[0]])
            if op == "=":
                raise UnsupportedError(
                    f"a chain compares neighbours by <, <=, >, >= and !=, found '{term}'; columns "
                    "that all inputs have and that are to be equal go into by="
                )
            _check_neighbours(first[0], second[0], names, term)
            if first[0] < second[0]:
                links[first[0]].append((first[1], op, second[1]))
            else:
                links[second[0]].append((second[1], TURNED_ROUND[op], first[1]))
    return links


#: A column: number of its input, and its name.
_Place = tuple[int, str]


def _comparisons(
    term: Predicate, names: Sequence[str]
) -> Iterator[tuple[_Place, Comparison, _Place]]:
    if isinstance(term, Compare):
        first, second = _places(term, (term.left, term.right), names)
        yield first, term.op, second
    elif isinstance(term, Chain):
        places = _places(term, term.columns, names)
        yield from zip(places[:-1], term.ops, places[1:], strict=True)
    elif isinstance(term, Between):
        value, low, high = _places(term, (term.value, term.low, term.high), names, in_a_row=False)
        yield value, ">=", low
        yield value, "<=", high
    elif isinstance(term, Predicate):
        raise UnsupportedError(
            f"chain_join takes comparisons, chains of them and 'between', found '{term}'"
        )
    else:
        raise InvalidInputError(f"expected a predicate, found {type(term).__name__}")


def _places(
    term: Predicate, columns: Sequence[Col], names: Sequence[str], *, in_a_row: bool = True
) -> list[_Place]:
    """Where the columns of a term are; those without an input are meant by position."""
    by_position = in_a_row and len(columns) == len(names)
    places = []
    for position, column in enumerate(columns):
        if column.input is None and not by_position:
            raise InvalidInputError(
                f"which inputs are meant in '{term}'? For {len(names)} inputs write one chain with "
                f"a column of each ('a < b < c' for three), or say it: {names[0]}.{column}"
            )
        if column.input is None:
            places.append((position, column.name))
        elif column.input in names:
            places.append((names.index(column.input), column.name))
        else:
            dotted = quote_name(f"{column.input}.{column.name}")
            raise InvalidInputError(
                f"unknown input '{column.input}' in '{term}': the inputs are called "
                f"{', '.join(names)}; a column whose name contains the dot is written {dotted}"
            )
    return places


def _check_neighbours(first: int, second: int, names: Sequence[str], term: Predicate) -> None:
    if first == second:
        raise InvalidInputError(
            f"'{term}' compares columns of one input, {names[first]}; a chain compares each input "
            "with the next"
        )
    if abs(second - first) > 1:
        raise UnsupportedError(
            f"'{term}' compares {names[first]} with {names[second]}, which are not neighbours; a "
            "chain compares each input with the next"
        )
