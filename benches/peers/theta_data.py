"""Tables for theta joins: `l` with ids `i`, `r` with ids `j`, as many rows in each.

How many partners a row has does not depend on the number of rows, unless it is said. Where `wide`
is asked for, `l` also has a text and `r` a list.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from measure import Tables

#: Partners of a row where there is a band, its width on either side, and the number of keys.
PARTNERS, REACH, KEYS = 5, 2500, 1000
#: The longest interval.
LONGEST = 2000


def one_inequality(rows: int, *, wide: bool) -> Tables:
    """`a <= b` holds for 22 % of all pairs."""
    random = np.random.default_rng(1)
    return sides({"a": random.uniform(20, 50, rows)}, {"b": random.uniform(10, 40, rows)}, wide)


def one_inequality_fixed(rows: int, *, results: int) -> Tables:
    """`a <= b` holds for that many pairs, however many rows there are."""
    random = np.random.default_rng(2)
    shift = 1 - sqrt(min(1.0, 2 * results / rows**2))
    return sides({"a": random.uniform(0, 1, rows) + shift}, {"b": random.uniform(0, 1, rows)})


def skewed_inequality(
    rows: int, *, keys: Callable[[np.random.Generator, int], np.ndarray]
) -> Tables:
    """`a <= b` on keys of a given distribution."""
    random = np.random.default_rng(3)
    return sides({"a": keys(random, rows)}, {"b": keys(random, rows)})


def two_inequalities(rows: int, *, wide: bool = False, results: int | None = None) -> Tables:
    """`x > x2 and y < y2`, where y is little more than x: three partners for two rows."""
    random = np.random.default_rng(4)
    top = rows * 10 / 3 if results is None else 1.45 / 0.3 * rows**2 / results
    begins = random.uniform(0, top, (2, rows))
    ends = begins + random.uniform(1, 30, (2, rows))
    return sides({"x": begins[0], "y": ends[0]}, {"x2": begins[1], "y2": ends[1]}, wide)


def intervals(rows: int, *, wide: bool = False, results: int | None = None) -> Tables:
    """Half-open intervals of whole numbers, six partners for each."""
    random = np.random.default_rng(5)
    top = rows * LONGEST // 6 if results is None else LONGEST * rows**2 // results
    begins = random.integers(0, top, (2, rows))
    ends = begins + random.integers(1, LONGEST, (2, rows))
    return sides({"x": begins[0], "y": ends[0]}, {"x2": begins[1], "y2": ends[1]}, wide)


def keyed_band(
    rows: int,
    *,
    wide: bool = False,
    results: int | None = None,
    keys: Callable[[np.random.Generator, int], np.ndarray] | None = None,
) -> Tables:
    """Equal `k`, and `t` no farther than REACH from `u`."""
    random = np.random.default_rng(6)
    keys = keys or uniform_keys
    k, k2 = keys(random, rows), keys(random, rows)
    most = max(k.max(), k2.max()) + 1
    pairs = float(np.bincount(k, minlength=most) @ np.bincount(k2, minlength=most))
    top = max(1, int(pairs * (2 * REACH + 1) / (results or PARTNERS * rows)))
    t, u = random.integers(0, top, (2, rows))
    return sides({"k": k, "t": t}, {"k": k2, "u": u}, wide)


def uniform_keys(random: np.random.Generator, rows: int) -> np.ndarray:
    return random.integers(0, KEYS, rows)


def zipf_keys(random: np.random.Generator, rows: int) -> np.ndarray:
    """The k-th of KEYS values with a frequency of k^-1.2."""
    weights = np.arange(1, KEYS + 1) ** -1.2
    return random.choice(KEYS, rows, p=weights / weights.sum())


def equal_keys(random: np.random.Generator, rows: int) -> np.ndarray:
    return np.zeros(rows, np.int64)


def sides(left: dict[str, np.ndarray], right: dict[str, np.ndarray], wide: bool = False) -> Tables:
    """Both tables, with ids and, where they are wide, what is no number."""
    rows = len(next(iter(left.values())))
    numbers = np.arange(rows)
    lefts, rights = pa.table({**left, "i": numbers}), pa.table({**right, "j": numbers})
    if wide:
        names = pc.binary_join_element_wise("item", pa.array(numbers).cast(pa.string()), " ")
        offsets = np.concatenate([[0], np.cumsum(numbers % 4)]).astype(np.int32)
        tags = pa.ListArray.from_arrays(offsets, np.arange(offsets[-1]))
        lefts, rights = lefts.append_column("name", names), rights.append_column("tags", tags)
    return {"l": lefts, "r": rights}
