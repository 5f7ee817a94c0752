"""Chains: any number of inputs, each compared with the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dovetail import _native
from dovetail._grammar import parse
from dovetail._resolve import check_column
from dovetail._resolve_chain import chain_links
from dovetail.errors import InvalidInputError
from dovetail.inputs import read_input
from dovetail.partitioning import Partitioning, check_options
from dovetail.predicates import Predicate
from dovetail.progress import Progress
from dovetail.result import JoinResult
from dovetail.theta import Columns, ThetaAlgorithm, check_text, column_names


def chain_join(
    inputs: Sequence[Any] | Mapping[str, Any],
    where: str | Predicate,
    *,
    by: Columns | None = None,
    suffix: str = "_",
    algorithm: ThetaAlgorithm = "auto",
    options: Partitioning | None = None,
    workers: int | None = None,
    progress: Progress = False,
) -> JoinResult:
    """All tuples of a row of each input for which ``where`` holds between neighbours.

    ``where`` has a column of each input, by position: ``"high >= high < high"`` for three. Or it
    says which inputs it means, ``t0``, ``t1`` and so on for a list, a dict's own names for a dict:
    ``"t0.a < t1.b and t1.c >= t2.d"``, with a comparison between each two neighbours at least.
    There may be several between two, as long as all are with one column of the later input
    (``"t1.x between t0.lo and t0.hi"``), or everywhere with one column of the earlier.

    ``by`` names columns that all inputs have and that must be equal; they come out once. A column
    whose name an earlier input has too gets ``suffix`` and the number of its input: ``high_1``.

    Nothing intermediate is built: rows that cannot take part are ruled out along the chain first,
    and ``count()`` takes no longer than sorting, however many tuples there are. Output order: by
    row of the first input, then by key of the second among its partners, then of the third, and so
    on (from the last input to the first where only the earlier input of a link has one column).
    Nulls match nothing; NaN equals NaN and is greater than every number.

    ``algorithm``: by default as above; ``"nested_loop"`` and those of the Prefap paper (with
    ``options``) join two inputs, then that result with the third, and so on, and add up what they
    compare.

    >>> import dovetail as dt, pyarrow as pa
    >>> r, s, t = (pa.table({"x": values}) for values in ([5, 1], [3, 4], [2, 9]))
    >>> dt.chain_join([r, s, t], "x > x < x").to_arrow().to_pydict()
    {'x': [5, 5], 'x_1': [3, 4], 'x_2': [9, 9]}
    >>> dt.chain_join({"r": r, "s": s}, "s.x > r.x").count()
    2
    """
    for option, value in (("suffix", suffix), ("algorithm", algorithm)):
        check_text(option, value)
    check_options(options)
    predicate = parse(where)
    names, tables = _named(inputs)
    columns = [table.names for table in tables]
    shared = column_names(by, "by")
    for column in shared:
        for name, here in zip(names, columns, strict=True):
            check_column(column, name, here)
    join = _native.chain_join(
        tables,
        names=names,
        links=chain_links(predicate, names, columns),
        by=shared,
        suffix=suffix,
        algorithm=algorithm,
        options=options,
    )
    title = f"chain_join of {len(names)}: {predicate}"
    if shared:
        title += " by " + ", ".join(shared)
    return JoinResult(join, title, workers=workers, progress=progress)


def _named(inputs: Sequence[Any] | Mapping[str, Any]) -> tuple[list[str], list[_native.Input]]:
    """The inputs and what they are called; an object that is there twice is read once."""
    if isinstance(inputs, Mapping):
        names, given = list(inputs), list(inputs.values())
        for name in names:
            check_text("name of an input", name)
    elif isinstance(inputs, list | tuple):
        names, given = [f"t{number}" for number in range(len(inputs))], list(inputs)
    else:
        raise InvalidInputError(
            f"inputs= is a {type(inputs).__name__}; expected a list of tables, or a dict of tables "
            "by name"
        )
    if len(given) < 2:
        raise InvalidInputError(
            f"a chain of {len(given)} inputs; expected two or more, each compared with the next"
        )
    read: dict[int, _native.Input] = {}
    for name, table in zip(names, given, strict=True):
        if id(table) not in read:
            read[id(table)] = read_input(table, name)
    return names, [read[id(table)] for table in given]
