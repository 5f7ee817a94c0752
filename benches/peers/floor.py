"""What no join can beat: writing its output, computing nothing."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module

import pyarrow as pa
from engines import THREADS


@dataclass
class Written:
    """As many rows as a table has, and buffers in place of its columns."""

    num_rows: int
    batches: list[list[pa.Buffer]]


class WriteOnly:
    """Two threads write buffers of the sizes that dovetail's answer has, batch by batch.

    The question is dovetail's. It is answered once, before the clock starts, for the sizes of the
    columns in each batch. Memory comes from the system's allocator, as dovetail's does.
    """

    def load(self, tables: dict[str, pa.Table], settings: str) -> None:
        self._names = {"dt": import_module("dovetail"), **tables}

    def prepare(self, question: str) -> None:
        """Learns how large the answer is."""
        self._rows = 0
        self._sizes: list[list[int]] = []
        for batch in eval(question, self._names):
            self._rows += batch.num_rows
            self._sizes.append([column.nbytes for column in batch.columns])
        # What those batches leave behind is not fresh.
        ctypes.CDLL(None).malloc_trim(0)

    def table(self, question: str) -> Written:
        pool = pa.system_memory_pool()

        def batch(sizes: list[int]) -> list[pa.Buffer]:
            buffers = [pa.allocate_buffer(size, memory_pool=pool) for size in sizes]
            for buffer in buffers:
                ctypes.memset(buffer.address, 1, buffer.size)
            return buffers

        with ThreadPoolExecutor(THREADS) as threads:
            return Written(self._rows, list(threads.map(batch, self._sizes)))
