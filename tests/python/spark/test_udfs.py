"""The examples of user functions give what plain Spark plans give; and workers may be reused."""

from __future__ import annotations

import os
import sys
import types
from collections import Counter
from pathlib import Path

import oracle
import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812

import dovetail

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(scope="module")
def examples(spark):
    """The module of examples, for the driver and for the tasks."""
    spark.sparkContext.addPyFile(str(EXAMPLES / "spark_udfs.py"))
    sys.path.insert(0, str(EXAMPLES))
    try:
        import spark_udfs

        yield spark_udfs
    finally:
        sys.path.remove(str(EXAMPLES))


@pytest.fixture(scope="module")
def orders(spark, examples):
    """The example's orders, over eight partitions of which three are empty."""
    rows = examples.example_orders(spark)
    place = F.when(F.col("id") < 600, 1).otherwise(F.col("id") % 4 * 2)
    return rows.repartitionById(8, place.cast("int"))


@pytest.fixture(scope="module")
def offers(spark, examples):
    return spark.createDataFrame(examples.example_offers())


def collected(frame):
    return Counter(map(tuple, frame.collect()))


def test_some_partitions_are_empty(orders):
    sizes = orders.groupBy(F.spark_partition_id()).count().collect()
    assert orders.rdd.getNumPartitions() == 8
    assert len(sizes) == 5


@pytest.mark.parametrize("name", ["setbacks", "setbacks_in_pandas"])
def test_groups(examples, orders, name):
    found = collected(getattr(examples, name)(orders))
    later = orders.alias("l").join(
        orders.alias("r"),
        F.expr("l.city = r.city and l.at < r.at and l.amount > r.amount"),
    )
    assert found == collected(later.select("l.city", "l.id", "r.id"))
    assert found.total() > 1000


def test_cogroups_and_batches(examples, orders, offers):
    plain = orders.join(offers, "city").where("amount >= from_amount")
    wanted = collected(plain.select("city", "id", "offer"))
    assert wanted.total() > 100
    assert collected(examples.offers_by_city(orders, offers)) == wanted
    assert collected(examples.offers_by_batch(orders, examples.example_offers())) == wanted


def test_columns(examples, orders):
    table = examples.example_offers()
    found = orders.select(
        "id",
        examples.open_offers(orders.amount, table).alias("open"),
        examples.best_offer(orders.amount, table).alias("best"),
    )
    limits = table["from_amount"].to_pylist()
    reached = {
        row.id: [limit for limit in limits if row.amount is not None and row.amount >= limit]
        for row in orders.collect()
    }
    wanted = {(id, len(limits), max(limits, default=None)) for id, limits in reached.items()}
    assert set(map(tuple, found.collect())) == wanted


def test_examples_agree_with_the_oracle(examples, orders):
    city = orders.where("city = 'Oslo'").limit(80).localCheckpoint()
    table = city.toArrow()
    terms = [("at", "<", "at"), ("amount", ">", "amount")]
    pairs = oracle.theta_pairs(table, table, terms)
    ids = table["id"].to_pylist()
    wanted = Counter(("Oslo", ids[i], ids[j]) for i, j in pairs)
    assert collected(examples.setbacks(city)) == wanted


def counts(group: pa.Table) -> pa.Table:
    """The pairs of a group, counted on one thread, on three and by building them; who did it."""
    results = [
        dovetail.theta_join(group, group, "id < id", workers=1).count(),
        dovetail.theta_join(group, group, "id < id", workers=3).count(),
        dovetail.theta_join(group, group, "id < id").to_arrow().num_rows,
        os.getpid(),
    ]
    return pa.table({name: [result] for name, result in zip("abcd", results, strict=True)})


COUNTS = "a long, b long, c long, d long"


def test_workers_fork_after_a_call_and_are_reused(spark):
    """A call here first, threads and all; then many groups in few workers."""
    numbers = pa.table({"id": pa.array(range(3000), "int64")})
    assert counts(numbers)["b"].to_pylist() == [3000 * 2999 // 2]
    groups = spark.range(0, 4000, 1, 8).repartition(8, F.col("id") % 40).groupBy(F.col("id") % 40)
    # By value: the tasks do not know the modules of tests.
    rows = groups.applyInArrow(by_value(counts), COUNTS).collect()
    assert {(row.a, row.b, row.c) for row in rows} == {(100 * 99 // 2,) * 3}
    assert len(rows) == 40
    workers = {row.d for row in rows}
    assert 1 <= len(workers) <= 4
    assert os.getpid() not in workers


def test_two_tasks_side_by_side(spark):
    joined = by_value(counts)

    def together(batches):
        from pyspark import BarrierTaskContext

        BarrierTaskContext.get().barrier()
        rows = pa.Table.from_batches(list(batches))
        yield from joined(rows).to_batches()

    rows = spark.range(0, 2000, 1, 2).mapInArrow(together, COUNTS, barrier=True).collect()
    assert [(row.a, row.b, row.c) for row in rows] == [(1000 * 999 // 2,) * 3] * 2
    assert len({row.d for row in rows}) == 2


def by_value(function):
    """A copy of a function that is pickled whole, as functions of a script or a notebook are."""
    return types.FunctionType(
        function.__code__, {**function.__globals__, "__name__": "__main__"}, function.__name__
    )


def test_a_task_uses_the_cores_that_spark_gave_it(spark):
    def threads(batches):
        from dovetail.threads import in_spark_task, thread_count

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"n": [thread_count(None)], "in": [in_spark_task()]})

    found = spark.range(0, 8, 1, 8).mapInArrow(threads, "n long, in boolean").distinct().collect()
    assert [tuple(row) for row in found] == [(1, True)]


def test_an_error_in_a_task_names_the_cause(spark):
    def fails(batches):
        for batch in batches:
            yield from dovetail.theta_join(batch, batch, "id < nothing")

    with pytest.raises(Exception, match=r"InvalidInputError.*nothing"):
        spark.range(3).mapInArrow(fails, "id long, id_right long").collect()
