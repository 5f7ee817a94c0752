"""Theta joins: pairs of rows by inequality."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from dovetail import _native
from dovetail._grammar import parse
from dovetail._resolve import check_equality_columns, pair_terms
from dovetail.errors import InvalidInputError
from dovetail.inputs import read_pair
from dovetail.partitioning import Partitioning, check_options
from dovetail.predicates import Predicate
from dovetail.progress import Progress
from dovetail.result import JoinResult

How = Literal["inner", "left", "right", "full", "semi", "anti"]
ThetaAlgorithm = Literal["auto", "nested_loop", "prefap", "ftj", "cfs", "obt", "rbm"]
#: One column name, or several.
Columns = str | Sequence[str]


def theta_join(
    left: Any,
    right: Any,
    where: str | Predicate,
    *,
    by: Columns | None = None,
    left_by: Columns | None = None,
    right_by: Columns | None = None,
    how: How = "inner",
    suffix: str = "_right",
    algorithm: ThetaAlgorithm = "auto",
    options: Partitioning | None = None,
    workers: int | None = None,
    progress: Progress = False,
) -> JoinResult:
    """All pairs of a left and a right row for which ``where`` holds.

    ``where`` compares columns of the left input with columns of the right one, by position:
    ``"price > price"``, ``"x < x2 and y >= y2"``; ``left.x`` and ``right.y`` say it outright.
    ``by`` (or ``left_by`` and ``right_by``) names columns that must be equal besides; they come
    out once. A right column whose name is taken gets ``suffix``.

    ``how`` keeps rows without a match (``"left"``, ``"right"``, ``"full"``), or gives the left
    rows that have one (``"semi"``) or none (``"anti"``).

    Nulls match nothing; NaN equals NaN and is greater than every number. Output order: matches by
    left row and then by key of the right side, but by key of the first inequality where there are
    two, and by begin for overlapping intervals; behind them rows without a match. Nothing runs
    before the result is used.

    ``algorithm``: ``"nested_loop"`` compares every pair, in row order; ``"prefap"``, ``"ftj"``,
    ``"cfs"``, ``"obt"`` and ``"rbm"`` are those of the Prefap paper, for one inequality; they take
    ``options``, a `Partitioning`.

    >>> import dovetail as dt, pyarrow as pa
    >>> r = pa.table({"a": [1, 5, 9]})
    >>> s = pa.table({"b": [4, 8]})
    >>> dt.theta_join(r, s, "a < b").to_arrow().to_pydict()
    {'a': [1, 1, 5], 'b': [4, 8, 8]}
    """
    for option, value in (("how", how), ("suffix", suffix), ("algorithm", algorithm)):
        check_text(option, value)
    check_options(options)
    predicate = parse(where)
    left_input, right_input = read_pair(left, right)
    pairs = equality_pairs(by, left_by, right_by)
    check_equality_columns(pairs, left_input.names, right_input.names)
    join = _native.theta_join(
        left_input,
        right_input,
        terms=pair_terms(predicate, left_input.names, right_input.names),
        by=pairs,
        how=how,
        suffix=suffix,
        algorithm=algorithm,
        options=options,
    )
    title = f"theta_join {how}: {predicate}"
    if pairs:
        title += " by " + ", ".join(a if a == b else f"{a} = {b}" for a, b in pairs)
    return JoinResult(join, title, workers=workers, progress=progress)


def equality_pairs(
    by: Columns | None, left_by: Columns | None, right_by: Columns | None
) -> list[tuple[str, str]]:
    """The pairs of columns that ``by``, or ``left_by`` and ``right_by``, ask to be equal.

    >>> equality_pairs(None, "a", "b")
    [('a', 'b')]
    """
    if by is not None and (left_by is not None or right_by is not None):
        raise InvalidInputError("give by=, or left_by= and right_by=, not both")
    if by is not None:
        names = column_names(by, "by")
        return list(zip(names, names, strict=True))
    lefts, rights = column_names(left_by, "left_by"), column_names(right_by, "right_by")
    if len(lefts) != len(rights):
        raise InvalidInputError(
            f"left_by= names {len(lefts)} columns and right_by= {len(rights)}; "
            "expected as many on both sides"
        )
    return list(zip(lefts, rights, strict=True))


def column_names(columns: Columns | None, option: str) -> list[str]:
    """The column names that ``option`` gives."""
    if columns is None:
        return []
    # No sets: the order of columns pairs them up.
    names = [columns] if isinstance(columns, str) else columns
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InvalidInputError(
            f"{option}={columns!r}; expected a column name or a list of column names"
        )
    for name in names:
        check_text(option, name)
    return list(names)


def check_text(option: str, value: object) -> None:
    """Refuse what is no text, or text that cannot be encoded."""
    if not isinstance(value, str):
        raise InvalidInputError(f"{option}={value!r}; expected text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"{option}={value!r}; expected text: {error.reason}") from None
