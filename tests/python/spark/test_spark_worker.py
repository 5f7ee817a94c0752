"""The task's side on its own: tagged batches in, joined batches out, no Spark about."""

from __future__ import annotations

import pickle
import random
from collections import Counter

import oracle
import pyarrow as pa
import pytest

import dovetail
from dovetail.spark import worker
from dovetail.spark.worker import CellJoin, join_cells

JOIN = CellJoin(
    left_names=("a", "n"),
    right_names=("b",),
    output_names=("0", "1", "2"),
    terms=(("a", "<", "b"),),
    by=(),
    how="inner",
    suffix="_right",
    algorithm="auto",
    workers=None,
)


def side(rng, rows, *names):
    values = {name: [rng.choice([0, 1, 2, 3, None]) for _ in range(rows)] for name in names}
    return pa.table({name: pa.array(column, "int32") for name, column in values.items()})


def tagged(cell, left, right):
    """One cell's rows as Spark hands them over: right rows first, the other side null."""
    structs = {
        name: pa.chunked_array(table.to_struct_array().chunks, pa.struct(table.schema))
        for name, table in (("left", left), ("right", right))
    }
    nothing = {
        "left": pa.nulls(right.num_rows, structs["left"].type),
        "right": pa.nulls(left.num_rows, structs["right"].type),
    }
    tags = [2 * cell] * right.num_rows + [2 * cell + 1] * left.num_rows
    lefts = pa.chunked_array([nothing["left"], *structs["left"].chunks])
    rights = pa.chunked_array([*structs["right"].chunks, nothing["right"]])
    return pa.table({"tag": pa.array(tags, "int32"), "left": lefts, "right": rights})


def cut(rng, table):
    """Batches of any size, some of them empty."""
    whole = table.combine_chunks().to_batches()[0]
    begin = 0
    while begin < whole.num_rows:
        rows = rng.randrange(0, 9)
        yield whole.slice(begin, rows)
        begin += rows


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("chunk", [1, 5, 1 << 16])
def test_oracle_rows_for_several_cells_cut_anyhow(monkeypatch, seed, chunk):
    monkeypatch.setattr(worker, "_CHUNK_ROWS", chunk)
    rng = random.Random(seed)
    cells = []
    wanted = Counter()
    for cell in sorted(rng.sample(range(9), 4)):
        left = side(rng, rng.choice([0, 1, 30]), "a", "n")
        right = side(rng, rng.choice([0, 2, 12]), "b")
        cells.append(tagged(cell, left, right))
        wanted.update(oracle.pair_rows(left, right, oracle.theta_pairs(left, right, JOIN.terms)))
    found = Counter()
    for batch in join_cells(cut(rng, pa.concat_tables(cells)), JOIN):
        assert batch.schema.names == ["0", "1", "2"]
        found.update(oracle.row_list(batch))
    assert found == wanted


def test_left_rows_stream_past_the_right_ones(monkeypatch):
    """Output begins before the last left row was read, and no more are held than allowed."""
    monkeypatch.setattr(worker, "_CHUNK_ROWS", 10)
    left = pa.table({"a": pa.array([0] * 100, "int32"), "n": pa.array(range(100), "int32")})
    right = pa.table({"b": pa.array([1] * 4, "int32")})
    batches = tagged(0, left, right).combine_chunks().to_batches(max_chunksize=2)
    read = 0

    def counted():
        nonlocal read
        for batch in batches:
            read += batch.num_rows
            yield batch

    given = 0
    for batch in join_cells(counted(), JOIN):
        given += batch.num_rows
        assert read <= 4 + given // 4 + 10
    assert given == 400


def test_rows_that_are_out_of_order_are_noticed():
    """Left rows before their right rows would lose pairs without a word."""
    left, right = side(random.Random(1), 3, "a", "n"), side(random.Random(2), 3, "b")
    batches = tagged(0, left, right).combine_chunks().to_batches()
    with pytest.raises(dovetail.InternalError, match="came after"):
        list(join_cells(iter([*batches, *batches]), JOIN))


def test_an_empty_partition_gives_nothing():
    assert list(join_cells(iter([]), JOIN)) == []


def test_what_is_sent_to_the_tasks_is_small():
    assert pickle.loads(pickle.dumps(JOIN)) == JOIN
    assert len(pickle.dumps(JOIN)) < 1000
