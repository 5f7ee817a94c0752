"""The native half of dovetail: private, wrapped by the modules beside it."""

from collections.abc import Callable, Sequence
from typing import final

import pyarrow as pa

__all__ = ["Input", "Join", "Stream", "__version__", "theta_join"]

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

def theta_join(
    left: Input,
    right: Input,
    *,
    terms: Sequence[tuple[str, str, str] | tuple[str, str, str, str]],
    by: Sequence[tuple[str, str]],
    how: str,
    suffix: str,
    algorithm: str,
) -> Join: ...
