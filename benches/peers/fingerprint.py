"""One number for a multiset of rows, whatever their order and however Arrow spells the types.

A row's hash mixes the hashes of its values, column by column; the rows' hashes are added up modulo
2^64. Numbers are hashed by value (whole numbers as int64, others as float64), texts by their bytes,
lists by their elements in order, so that `large_list<string_view>` agrees with `list<string>`.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Hashes = np.ndarray  # of uint64

#: Rows hashed at a time.
BLOCK = 1 << 17
NULL = np.uint64(0x6E756C6C)
_ODD = np.uint64(0x9E3779B97F4A7C15)
_INVERSE = np.uint64(pow(int(_ODD), -1, 2**64))
_MIX = np.uint64(0xD6E8FEB86659FD93)


def fingerprint(table: pa.Table, threads: int = 2) -> str:
    """The number, in hexadecimal; columns count by name, not by place."""
    with ThreadPoolExecutor(threads) as pool:
        blocks = table.select(sorted(table.column_names)).to_batches(max_chunksize=BLOCK)
        total = sum(pool.map(_block, blocks))
    return f"{total % 2**64:016x}"


def _block(batch: pa.RecordBatch) -> int:
    rows = np.zeros(batch.num_rows, np.uint64)
    for column in batch.columns:
        rows = _mixed(rows + hashes(column))
    return int(rows.sum(dtype=np.uint64))


def hashes(array: pa.Array) -> Hashes:
    """One hash for each value."""
    kind = array.type
    if pa.types.is_struct(kind):
        found = np.zeros(len(array), np.uint64)
        for part in array.flatten():
            found = _mixed(found + hashes(part))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        offsets = array.offsets.to_numpy().astype(np.int64)
        found = _runs(hashes(array.values[offsets[0] : offsets[-1]]), offsets - offsets[0])
    elif pa.types.is_integer(kind):
        found = _mixed(_numbers(array, pa.int64()).view(np.uint64))
    elif pa.types.is_floating(kind):
        found = _mixed((_numbers(array, pa.float64()) + 0.0).view(np.uint64))  # -0.0 is 0.0
    else:
        found = _texts(array)
    if array.null_count:
        found = np.where(array.is_valid().to_numpy(zero_copy_only=False), found, NULL)
    return found


def _numbers(array: pa.Array, kind: pa.DataType) -> np.ndarray:
    return array.cast(kind).fill_null(0).to_numpy()


def _texts(array: pa.Array) -> Hashes:
    # Joins repeat their inputs: hash each text once.
    encoded = pc.dictionary_encode(array.cast(pa.large_string()).fill_null(""))
    _, offsets, data = encoded.dictionary.buffers()
    count = len(encoded.dictionary) + 1
    bounds = np.frombuffer(offsets, np.int64)[:count]
    letters = np.frombuffer(data or b"", np.uint8)[: bounds[-1]].astype(np.uint64)
    return _runs(_mixed(letters + np.uint64(1)), bounds)[encoded.indices.to_numpy()]


def _runs(values: Hashes, bounds: np.ndarray) -> Hashes:
    """A hash of each run of values between two bounds, in which their order counts.

    The k-th of all values has the weight _ODD^k; a run's sum is a difference of running sums, and
    an odd number has an inverse, by which the weights are made to start at 1 in every run.
    """
    weighted = values * _powers(_ODD, len(values))
    before = np.zeros(len(values) + 1, np.uint64)
    np.cumsum(weighted, out=before[1:])
    sums = before[bounds[1:]] - before[bounds[:-1]]
    aligned = sums * _powers(_INVERSE, len(values) + 1)[bounds[:-1]]
    return _mixed(aligned + np.diff(bounds).astype(np.uint64))


@cache
def _all_powers(base: np.uint64, size: int) -> Hashes:
    powers = np.full(size, base)
    powers[0] = 1
    return np.cumprod(powers, dtype=np.uint64)


def _powers(base: np.uint64, count: int) -> Hashes:
    """The first powers of a number, kept for the next block."""
    return _all_powers(base, 1 << max(BLOCK.bit_length(), count.bit_length()))[:count]


def _mixed(values: Hashes) -> Hashes:
    """Spreads every bit over all others, as splitmix does; zero does not stay zero."""
    values = (values + _ODD) * _MIX
    values ^= values >> np.uint64(32)
    values *= _MIX
    values ^= values >> np.uint64(29)
    return values
