"""Options of the algorithms of the Prefap paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dovetail.errors import InvalidInputError

_LARGEST_SEED = 2**64 - 1


@dataclass(frozen=True, kw_only=True)
class Partitioning:
    """How ``prefap``, ``ftj``, ``cfs``, ``obt`` and ``rbm`` partition; each takes what it knows.

    ``partitions`` a side before any are merged or split, for all of them. For ``prefap``:
    ``prefilter`` drops rows that the other side's extremes rule out, ``amalgamation`` cuts both
    sides where either is cut. For ``prefap`` and ``ftj``: ``repartition`` splits partitions above
    the average size until none is left, or each ``"once"`` as the paper prints it, or not at all;
    ``ceiling`` rounds the span of a split up to a whole number, as printed (then a partition
    narrower than 1 is never split); ``window`` is the paper's w, which it divides by the number of
    partitions to get their average size (by default the rows that are there are divided). ``seed``
    is where ``obt`` begins to deal at random.

    >>> Partitioning(partitions=0)
    Traceback (most recent call last):
    ...
    dovetail.errors.InvalidInputError: partitions=0; expected a whole number from 1 on
    """

    partitions: int = 10
    prefilter: bool = True
    amalgamation: bool = True
    repartition: bool | Literal["once"] = True
    ceiling: bool = False
    window: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_positive("partitions", self.partitions)
        if self.window is not None:
            check_positive("window", self.window)
        for option in ("prefilter", "amalgamation", "ceiling"):
            if not isinstance(value := getattr(self, option), bool):
                raise InvalidInputError(f"{option}={value!r}; expected True or False")
        if not (isinstance(self.repartition, bool) or self.repartition == "once"):
            raise InvalidInputError(
                f"repartition={self.repartition!r}; expected True, False or 'once'"
            )
        if not (isinstance(self.seed, int) and 0 <= self.seed <= _LARGEST_SEED):
            raise InvalidInputError(
                f"seed={self.seed!r}; expected a whole number from 0 to {_LARGEST_SEED}"
            )


def check_options(options: object) -> None:
    """Refuse what ``options=`` does not take."""
    if not isinstance(options, Partitioning | None):
        raise InvalidInputError(f"options={options!r}; expected a dovetail.Partitioning")


def check_positive(option: str, value: object) -> None:
    """Refuse what is no whole number from 1 on."""
    if isinstance(value, bool) or not (isinstance(value, int) and 1 <= value < 2**63):
        raise InvalidInputError(f"{option}={value!r}; expected a whole number from 1 on")
