"""The native half of dovetail: private, wrapped by the modules beside it."""

from collections.abc import Callable, Sequence
from typing import final

import pyarrow as pa

from dovetail.partitioning import Partitioning

__all__ = ["Input", "Join", "Stream", "WindowJoin", "__version__", "chain_join", "theta_join"]

__version__: str

@final
class Input:
    def __new__(cls, data: object, label: str) -> Input: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def schema(self) -> pa.Schema: ...
    def read(self) -> None: ...

@final
class Join:
    @property
    def schema(self) -> pa.Schema: ...
    def stream(
        self,
        *,
        threads: int,
        limit: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Stream: ...
    def count(
        self, *, threads: int, progress: Callable[[int, int], object] | None = None
    ) -> tuple[int, dict[str, float]]: ...
    def explain(self, *, threads: int) -> str: ...

@final
class Stream:
    @property
    def metrics(self) -> dict[str, float]: ...
    def next_batch(self) -> pa.RecordBatch | None: ...
    def read_all(self) -> list[pa.RecordBatch]: ...
    def close(self) -> None: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class WindowJoin:
    def __new__(cls, *, window: int, memory: int | None, threads: int) -> WindowJoin: ...
    @property
    def schema(self) -> pa.Schema | None: ...
    @property
    def metrics(self) -> dict[str, float]: ...
    def describe(
        self,
        left: Input,
        right: Input,
        *,
        terms: Sequence[tuple[str, str, str] | tuple[str, str, str, str]],
        by: Sequence[tuple[str, str]],
        suffix: str,
        algorithm: str,
        options: Partitioning | None = None,
    ) -> None: ...
    def push(self, input: str, rows: Input) -> None: ...
    def poll(self) -> pa.RecordBatch | None: ...
    def finish(self) -> None: ...

def theta_join(
    left: Input,
    right: Input,
    *,
    terms: Sequence[tuple[str, str, str] | tuple[str, str, str, str]],
    by: Sequence[tuple[str, str]],
    how: str,
    suffix: str,
    algorithm: str,
    options: Partitioning | None = None,
) -> Join: ...
def chain_join(
    inputs: Sequence[Input],
    *,
    names: Sequence[str],
    links: Sequence[Sequence[tuple[str, str, str]]],
    by: Sequence[str],
    suffix: str,
    algorithm: str,
    options: Partitioning | None = None,
) -> Join: ...
