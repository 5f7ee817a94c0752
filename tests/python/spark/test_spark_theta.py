"""`dovetail.spark.theta_join`: the oracle's rows, lazily, whatever the types and the partitions."""

from __future__ import annotations

import datetime as dt
import logging
import random
from collections import Counter
from decimal import Decimal

import oracle
import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

import dovetail
import dovetail.spark as ds
from dovetail.spark import session as session_module
from dovetail.spark.planning import Grid, Side, grid_for

INF, NAN = float("inf"), float("nan")


def expected(left, right, terms, by=()):
    """The oracle's rows for two frames, whose contents Spark itself hands over."""
    left, right = left.toArrow(), right.toArrow()
    return Counter(oracle.pair_rows(left, right, oracle.theta_pairs(left, right, terms, by), by))


def column(rng, values, rows, kind):
    return pa.array([rng.choice([*values, None]) for _ in range(rows)], kind)


def table(rng, rows, **columns):
    drawn = {name: column(rng, values, rows, kind) for name, (values, kind) in columns.items()}
    return pa.table({"row": pa.array(range(rows), "int32"), **drawn})


DAY = dt.date(2024, 3, 31)
NOON = dt.datetime(2024, 3, 31, 12)
INSTANT = NOON.replace(tzinfo=dt.timezone.utc)
HOUR = dt.timedelta(hours=1)
# Per case: the left key's values and type, the right key's, and the comparison.
KEYS = {
    "ints": ((range(5), "int32"), (range(-1, 4), "int32"), "<"),
    "ints of two widths": ((range(3), "int8"), ([0, 1, 2**40], "int64"), "!="),
    "floats": (
        ([0.0, -0.0, 1.5, NAN, INF, -INF], "float64"),
        ([0.0, -0.0, 1.5, NAN, INF, -INF], "float64"),
        ">=",
    ),
    "integer against float beyond 2^53": (
        ([2**53, 2**53 + 1, 0], "int64"),
        ([2.0**53, 2.0**53 + 2, NAN, -INF], "float64"),
        "<=",
    ),
    "decimals of two scales": (
        ([Decimal("1.50"), Decimal("-2.25"), Decimal("9.99")], pa.decimal128(10, 2)),
        ([Decimal("1.5"), Decimal("1.5000000001"), Decimal(-3)], pa.decimal128(38, 10)),
        ">",
    ),
    "strings": ((["", "a", "ab", "ä", "z"], "string"), (["", "a", "b", "ä"], "string"), "<"),
    "binary": (([b"", b"a", b"\xff"], "binary"), ([b"", b"a\0", b"\xfe"], "binary"), ">="),
    "booleans": (([True, False], "bool"), ([True, False], "bool"), ">"),
    "dates": (([DAY, DAY + 24 * HOUR], "date32"), ([DAY, DAY - 24 * HOUR], "date32"), ">"),
    "timestamps": (
        ([INSTANT, INSTANT - 11 * HOUR, INSTANT + HOUR], pa.timestamp("us", "UTC")),
        ([INSTANT, INSTANT - 10 * HOUR], pa.timestamp("us", "UTC")),
        "<=",
    ),
    "timestamps without zone": (
        ([NOON, NOON + HOUR], pa.timestamp("us")),
        ([NOON, NOON - HOUR], pa.timestamp("us")),
        ">",
    ),
    "durations": (
        ([HOUR, 2 * HOUR], pa.duration("us")),
        ([-HOUR, HOUR], pa.duration("us")),
        "!=",
    ),
}


@pytest.mark.parametrize("name", KEYS)
def test_oracle_rows_for_every_type_of_key(spread, name):
    left_key, right_key, comparison = KEYS[name]
    rng = random.Random(name)
    left = spread(table(rng, 60, a=left_key))
    right = spread(table(rng, 50, b=right_key))
    joined = ds.theta_join(left, right, f"a {comparison} b")
    found = oracle.rows(joined.toArrow())
    assert found == expected(left, right, [("a", comparison, "b")])
    assert found.total() > 0


@pytest.mark.parametrize("partitions", [None, 1, 2, 5, 16])
def test_oracle_rows_with_equality_and_two_terms_on_any_grid(spread, partitions):
    rng = random.Random(3)
    city, floor = (["x", "y", "z"], "string"), ([0, 1], "int64")
    left = spread(table(rng, 90, city=city, floor=floor, x=(range(6), "int32")))
    right = spread(table(rng, 80, city=city, level=(range(2), "int16"), x=(range(6), "int64")))
    joined = ds.theta_join(
        left,
        right,
        "x < x and right.row > left.row",
        left_by=["city", "floor"],
        right_by=["city", "level"],
        partitions=partitions,
    )
    terms = [("x", "<", "x"), ("row", "<", "row")]
    by = [("city", "city"), ("floor", "level")]
    assert joined.columns == ["row", "city", "floor", "x", "row_right", "x_right"]
    found = oracle.rows(joined.toArrow())
    assert found == expected(left, right, terms, by)
    assert found.total() > 0
    if partitions is not None:
        assert joined.rdd.getNumPartitions() == grid_for(partitions).cells


def test_agrees_with_the_local_operator(spread):
    rng = random.Random(5)
    numbers = (range(20), "int32")
    left, right = table(rng, 200, a=numbers), table(rng, 300, b=numbers)
    local = dovetail.theta_join(left, right, "a >= b").to_arrow()
    joined = ds.theta_join(spread(left), spread(right), "a >= b", algorithm="nested_loop")
    assert oracle.rows(joined.toArrow()) == oracle.rows(local)
    assert joined.columns == local.column_names


def test_any_size_of_batches_gives_the_same_rows(spark, spread):
    rng = random.Random(6)
    left = spread(table(rng, 100, a=(range(20), "int32")))
    right = spread(table(rng, 90, b=(range(20), "int32")))
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(name)
    for records in (1, 7, 10_000):
        spark.conf.set(name, records)
        try:
            found = ds.theta_join(left, right, "a < b", partitions=9).toArrow()
        finally:
            spark.conf.set(name, before)
        assert oracle.rows(found) == expected(left, right, [("a", "<", "b")])


def test_a_frame_with_itself(spread):
    frame = spread(table(random.Random(7), 60, a=(range(9), "int32")))
    found = ds.theta_join(frame, frame, "a < a").toArrow()
    assert oracle.rows(found) == expected(frame, frame, [("a", "<", "a")])


@pytest.mark.parametrize("empty", ["left", "right", "both"])
def test_empty_sides_give_no_rows(spark, spread, empty):
    rows = table(random.Random(8), 20, a=(range(9), "int32"))
    frames = {side: spread(rows) for side in ("left", "right")}
    for side in frames if empty == "both" else [empty]:
        frames[side] = frames[side].limit(0)
    joined = ds.theta_join(frames["left"], frames["right"], "a <= a")
    assert joined.toArrow().num_rows == 0


def test_payload_of_every_type_passes_unharmed(spark):
    payload = {
        "array": "array(id, null)",
        "arrays": "array(array(timestamp_seconds(id)), null)",
        "struct": "if(id % 3 = 0, null, named_struct('not_null', id, 'at', timestamp_seconds(id)))",
        "map": "map('k', id, 'l', null)",
        "map_of_structs": "map(id, named_struct('d', cast(id as decimal(38, 3))))",
        "binary": "cast(cast(id as string) as binary)",
        "decimal": "cast(id as decimal(38, 20))",
        "void": "null",
        "empty_struct": "struct()",
        "time": "time'10:11:12.5'",
        "ntz": "timestamp_ntz'2024-03-31 02:30:00'",
        "days": "make_dt_interval(id)",
        "day": "cast(make_dt_interval(id) as interval day)",
        "hours": "array(cast(make_dt_interval(id) as interval hour to minute))",
        "lower": "'aB' collate UTF8_LCASE",
        "lowers": "array('aB' collate UNICODE_CI)",
        "fixed": "cast('ab' as char(5))",
        "float": "if(id % 2 = 0, cast('NaN' as float), cast(id as float))",
    }
    columns = [f"{expression} as {name}" for name, expression in payload.items()]
    left = spark.range(0, 40, 1, 8).selectExpr("id", *columns)
    right = spark.range(15, 25, 1, 3).selectExpr("id as other", *columns)
    joined = ds.theta_join(left, right, "id < other", partitions=4)
    plain = left.alias("l").join(right.alias("r"), F.expr("l.id < r.other"))
    for field, origin in zip(joined.schema, plain.schema, strict=True):
        assert field.dataType == origin.dataType
        assert field.metadata == origin.metadata

    def strings(frame):  # Arrow on the driver knows fewer of these types than the plan does
        numbered = frame.toDF(*map(str, range(len(frame.columns))))
        return Counter(tuple(row) for row in numbered.select(F.to_json(F.struct("*"))).collect())

    assert strings(joined) == strings(plain)


def test_names_are_only_names(spread):
    names = ["a.b", "we`ird", "a b", "tag", "left", "block", "0", "A", "a"]
    rows = [pa.array([place, 9 - place], "int64") for place in range(len(names))]
    left = pa.table(rows, names=names)
    right = left.rename_columns([f"{name}'" for name in names])
    terms = [("a.b", "<", "we`ird'"), ("a", ">=", "A'")]
    where = (dovetail.col("a.b") < dovetail.col("we`ird'")) & (
        dovetail.col("a") >= dovetail.col("A'")
    )
    session = spread(left.select(["tag"])).sparkSession
    frames = [session.createDataFrame(side) for side in (left, right)]
    joined = ds.theta_join(*frames, where)
    assert joined.columns == names + right.column_names
    wanted = oracle.pair_rows(left, right, oracle.theta_pairs(left, right, terms))
    assert Counter(map(tuple, joined.collect())) == Counter(wanted)


def test_comments_stay_with_their_columns(spark):
    field = T.StructField("a", T.IntegerType(), metadata={"comment": "in euros"})
    left = spark.createDataFrame([(1,)], T.StructType([field]))
    joined = ds.theta_join(left, left, "a <= a")
    assert [field.metadata for field in joined.schema] == [{"comment": "in euros"}] * 2


def test_no_job_runs_before_the_result_is_used(spark, spread):
    left = spread(pa.table({"a": pa.array(range(30), "int32")}))
    context = spark.sparkContext
    context.setJobGroup("lazy", "the call of theta_join")
    try:
        joined = ds.theta_join(left, left, "a < a")
        joined.schema  # noqa: B018
        assert context.statusTracker().getJobIdsForGroup("lazy") == []
        joined.count()
        assert len(context.statusTracker().getJobIdsForGroup("lazy")) > 0
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)


def test_only_configure_changes_the_session(spark, spread):
    fresh = spark.newSession()
    frame = fresh.range(5).selectExpr("id a")
    before = fresh.conf.getAll
    ds.theta_join(frame, frame, "a < a").collect()
    assert fresh.conf.getAll == before
    fresh.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 0)
    changed = ds.configure(fresh)
    assert {name.rpartition(".")[2]: after for name, (_, after) in changed.items()} == {
        "maxBytesPerBatch": "2147483647",
        "maxRecordsPerBatch": "10000",
    }
    assert ds.configure(fresh) == {}
    after = fresh.conf.getAll
    assert {name: after[name] for name in before if name not in changed} == {
        name: before[name] for name in before if name not in changed
    }


def test_a_slow_session_is_warned_of_once(spark, caplog, monkeypatch):
    monkeypatch.setattr(session_module, "_warned", False)
    slow, fast = spark.newSession(), spark.newSession()
    ds.configure(fast)
    caplog.set_level(logging.WARNING, "dovetail.spark")
    for session, warnings in ((fast, 0), (slow, 1), (slow, 1)):
        frame = session.range(2)
        ds.theta_join(frame, frame, "id < id")
        assert len(caplog.records) == warnings
    assert "configure(spark)" in caplog.text


INVALID = {
    "missing column": ("a < nothing", {}),
    "missing by": ("a < a", {"by": "nothing"}),
    "incomparable": ("a < s", {}),
    "nested key": ("a < list", {}),
    "how": ("a < a", {"how": "left", "algorithm": "nested_loop"}),
    "unknown how": ("a < a", {"how": "sideways"}),
    "algorithm": ("a < a", {"algorithm": "quick"}),
    "grammar": ("a < ", {}),
    "workers": ("a < a", {"workers": 0}),
    "suffix": ("a < a", {"suffix": ""}),
    "by twice": ("a < a", {"by": "a", "left_by": "a"}),
}


@pytest.mark.parametrize("name", INVALID)
def test_bad_calls_fail_at_once_as_they_do_locally(spark, name):
    where, options = INVALID[name]
    frame = spark.sql("select 1 as a, 'x' as s, array(1) as list")
    arrow = pa.table({"a": pa.array([1], "int32"), "s": ["x"], "list": pa.array([[1]])})
    arrow = arrow.cast(frame.toArrow().schema)
    with pytest.raises(dovetail.DovetailError) as local:
        dovetail.theta_join(arrow, arrow, where, **options)
    with pytest.raises(dovetail.DovetailError) as found:
        ds.theta_join(frame, frame, where, **options)
    assert type(found.value) is type(local.value)
    assert str(found.value) == str(local.value)


def test_inputs_that_are_no_batch_dataframes_are_refused(spark):
    frame = spark.range(3)
    arrow = pa.table({"id": [1]})
    with pytest.raises(dovetail.InvalidInputError, match=r"left input is a pyarrow.lib.Table;"):
        ds.theta_join(arrow, frame, "id < id")
    with pytest.raises(dovetail.InvalidInputError, match=r"right input is a builtins.NoneType;"):
        ds.theta_join(frame, None, "id < id")
    stream = spark.readStream.format("rate").load()
    with pytest.raises(dovetail.UnsupportedError, match="right input is a streaming DataFrame"):
        ds.theta_join(frame, stream, "id < value")
    with pytest.raises(dovetail.UnsupportedError, match=r"use the function .* in dovetail.spark"):
        dovetail.theta_join(frame, arrow, "id < id")
    with pytest.raises(dovetail.InvalidInputError, match="left input has two columns called"):
        ds.theta_join(frame.selectExpr("id", "id"), frame, "id < id")
    with pytest.raises(dovetail.InvalidInputError, match="no column"):
        ds.theta_join(frame.select(), frame, "id < id")


@pytest.mark.parametrize(
    "expression",
    [
        "interval '1' year",
        "make_interval(1)",
        "parse_json('1')",
        "array(parse_json('1'))",
        "named_struct('a', 1, 'a', 2)",
    ],
)
def test_types_that_cannot_travel_are_refused(spark, expression):
    frame = spark.range(3).selectExpr("id", f"{expression} as odd")
    with pytest.raises(dovetail.UnsupportedError, match="right column 'odd'"):
        ds.theta_join(spark.range(3), frame, "id < id")


def test_a_collated_key_is_refused(spark):
    frame = spark.sql("select 'a' collate UTF8_LCASE as s")
    with pytest.raises(dovetail.UnsupportedError, match="left column 's' has the collation"):
        ds.theta_join(frame, spark.sql("select 'a' as s"), "s < s")


@pytest.mark.parametrize("partitions", [0, -1, 2.0, True, "8", 10**7])
def test_partitions_is_a_sensible_number(spark, partitions):
    with pytest.raises(dovetail.InvalidInputError, match="partitions="):
        ds.theta_join(spark.range(1), spark.range(1), "id < id", partitions=partitions)


def test_grids_are_nearly_square_and_large_enough():
    for cells in range(1, 500):
        grid = grid_for(cells)
        assert cells <= grid.cells <= cells + 40
        assert grid.rows <= grid.columns <= 2 * grid.rows


def test_a_row_goes_to_the_same_cells_when_its_task_runs_again(spread):
    """A second attempt sees a partition's rows in another order, and sums that differ a little."""
    rng = random.Random(11)
    frame = spread(table(rng, 200, a=(range(4), "int32"), f=([1.5, 2.5], "float64")))
    frame = frame.drop("row")  # leaves rows that are equal
    grid = Grid(3, 4)

    def places(again):
        tagged = Side(again, "left").tagged(grid)
        return Counter(tagged.selectExpr("tag", "left.`0`", "round(left.`1`, 3)").collect())

    first = places(frame.sortWithinPartitions("a", "f"))
    reordered = frame.sortWithinPartitions(F.desc("f"), F.desc("a"))
    second = places(reordered.withColumn("f", F.col("f") + 1e-9))
    assert first == second
    assert first.total() == 200 * grid.columns
    assert len({tag for tag, *_ in first}) == grid.cells


def test_equal_rows_are_spread_over_the_blocks_by_their_partitions(spark):
    same = spark.range(0, 64, 1, 32).selectExpr("1 as a")
    tags = Side(same, "right").tagged(Grid(1, 4)).select("tag").distinct().count()
    assert tags == 4


@pytest.mark.parametrize("options", [{"how": "full"}, {"algorithm": "prefap"}])
def test_what_only_one_process_can_do_is_refused(spark, options):
    frame = spark.range(3)
    with pytest.raises(dovetail.UnsupportedError, match=r"dovetail.spark.theta_join offers"):
        ds.theta_join(frame, frame, "id < id", **options)
