"""How each engine is set up and asked: two threads, everything in memory before the clock starts.

A question is text in the engine's own words: SQL over the tables `l` and `r`, or a Python
expression over frames of these names. Settings belong to one question and are undone behind it.
Nothing here knows what kind of join is asked for.

What an engine has:
- `load(tables, settings)`: bring the tables into its own form;
- `prepare(question)`, where it needs that: what only this question needs, off the clock;
- `table(question)`: the whole answer as Arrow;
- `count(question)`, `stream(question)`, where it can: the number of rows, by whatever is fastest;
  the batches one after the other, none of them kept; `value(question)`: the one number it gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pyarrow as pa

THREADS = 2

#: What a process must have in its environment before it imports an engine.
ENVIRONMENT = {"DOVETAIL_THREADS": str(THREADS), "POLARS_MAX_THREADS": str(THREADS)}

#: Engine -> module and class; each runs in a process of its own (worker.py).
ENGINES = {
    "dovetail": ("engines", "Dovetail"),
    "duckdb": ("engines", "DuckDB"),
    "polars": ("engines", "Polars"),
    "datafusion": ("engines", "DataFusion"),
    "write-only": ("floor", "WriteOnly"),
    "polars-bio": ("interval_libraries", "PolarsBio"),
    "ncls": ("interval_libraries", "Ncls"),
    "pyranges": ("interval_libraries", "PyRanges"),
    "bioframe": ("interval_libraries", "Bioframe"),
}


def start(name: str) -> Any:
    """The engine of this name."""
    module, kind = ENGINES[name]
    return getattr(import_module(module), kind)()


class Dovetail:
    """A question is an expression that gives a result, over pyarrow tables and `dt`."""

    def load(self, tables: dict[str, pa.Table], settings: str) -> None:
        self._names = {"dt": import_module("dovetail"), **tables}

    def table(self, question: str) -> pa.Table:
        return eval(question, self._names).to_arrow()

    def count(self, question: str) -> int:
        return eval(question, self._names).count()

    def stream(self, question: str) -> Iterator[pa.RecordBatch]:
        yield from eval(question, self._names)


class DuckDB:
    """SQL over DuckDB's own tables; rows may come in any order, which lets it do more at once."""

    def load(self, tables: dict[str, pa.Table], settings: str) -> None:
        self._connection = import_module("duckdb").connect(
            config={"threads": THREADS, "preserve_insertion_order": False}
        )
        for name, table in tables.items():
            self._connection.register("arrow", table)
            self._connection.execute(f"CREATE TABLE {name} AS FROM arrow")
            self._connection.unregister("arrow")
        if settings:
            self._connection.execute(settings)

    def table(self, question: str) -> pa.Table:
        return self._connection.sql(question).to_arrow_table()

    def count(self, question: str) -> int:
        return self.value(f"SELECT count(*) FROM ({question})")

    def value(self, question: str) -> int:
        ((rows,),) = self._connection.sql(question).fetchall()
        return int(rows)

    def stream(self, question: str) -> Iterator[pa.RecordBatch]:
        yield from self._connection.sql(question).to_arrow_reader()


class Polars:
    """An expression that gives a LazyFrame; settings name the engine that collects it."""

    def load(self, tables: dict[str, pa.Table], settings: str) -> None:
        pl = import_module("polars")
        self._pl = pl
        self._collect: dict[str, Any] = {"engine": settings or "in-memory"}
        frames = {name: pl.from_arrow(table).lazy() for name, table in tables.items()}
        self._names = {"pl": pl, **frames}

    def table(self, question: str) -> pa.Table:
        return eval(question, self._names).collect(**self._collect).to_arrow()

    def count(self, question: str) -> int:
        rows = eval(question, self._names).select(self._pl.len())
        return rows.collect(**self._collect).item()

    def stream(self, question: str) -> Iterator[pa.RecordBatch]:
        for frame in eval(question, self._names).collect_batches(**self._collect):
            yield from frame.to_arrow().to_batches()


class DataFusion:
    """SQL over tables in as many partitions as there are threads."""

    def load(self, tables: dict[str, pa.Table], settings: str) -> None:
        datafusion = import_module("datafusion")
        config = datafusion.SessionConfig().with_target_partitions(THREADS)
        self._context = datafusion.SessionContext(config)
        for name, table in tables.items():
            share = -(-table.num_rows // THREADS)
            parts = [table[part * share : (part + 1) * share] for part in range(THREADS)]
            self._context.register_record_batches(name, [part.to_batches() for part in parts])
        if settings:
            self._context.sql(settings)

    def table(self, question: str) -> pa.Table:
        return self._context.sql(question).to_arrow_table()

    def count(self, question: str) -> int:
        return self._context.sql(f"SELECT count(*) AS n FROM ({question})").to_pylist()[0]["n"]

    def stream(self, question: str) -> Iterator[pa.RecordBatch]:
        for batch in self._context.sql(question).execute_stream():
            yield batch.to_pyarrow()
