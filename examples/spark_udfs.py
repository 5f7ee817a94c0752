"""dovetail inside your own Spark functions: one small example for each kind that Spark offers.

Every operator is a plain function of Arrow tables, pandas or Polars frames, so it works in any
Python function that Spark calls with those. Inside a task it uses the cores that Spark gave the
task, and keeps nothing from one call to the next.

The data are orders (when, where, how much) and offers (for orders in a city from some amount on).
Run it: `python examples/spark_udfs.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import arrow_udf, pandas_udf

import dovetail as dt

# --- groupBy().applyInArrow: one Arrow table per group --------------------------------------------


def setbacks(orders: DataFrame) -> DataFrame:
    """Pairs of orders of one city of which the later one is smaller: one join per city."""

    def of_one_city(city: pa.Table) -> pa.Table:
        pairs = dt.theta_join(city, city, "at < at and amount > amount", by="city").to_arrow()
        return pairs.select(["city", "id", "id_right"])

    return orders.groupBy("city").applyInArrow(of_one_city, "city string, id long, id_right long")


# --- cogroup().applyInArrow: two Arrow tables per group -------------------------------------------


def offers_by_city(orders: DataFrame, offers: DataFrame) -> DataFrame:
    """The offers that each order of a city is large enough for.

    Spark puts rows without a city into one group; `by` keeps them from matching.
    """

    def of_one_city(orders: pa.Table, offers: pa.Table) -> pa.Table:
        pairs = dt.theta_join(orders, offers, "amount >= from_amount", by="city").to_arrow()
        return pairs.select(["city", "id", "offer"])

    both = orders.groupBy("city").cogroup(offers.groupBy("city"))
    return both.applyInArrow(of_one_city, "city string, id long, offer string")


# --- mapInArrow: a stream of batches, against a small table that travels with the function --------


def offers_by_batch(orders: DataFrame, offers: pa.Table) -> DataFrame:
    """The same pairs without a shuffle; output leaves batch by batch, however much matches."""

    def of_one_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for pairs in dt.theta_join(batch, offers, "amount >= from_amount", by="city"):
                yield pairs.select(["city", "id", "offer"])

    return orders.mapInArrow(of_one_partition, "city string, id long, offer string")


# --- groupBy().applyInPandas: one pandas frame per group ------------------------------------------


def setbacks_in_pandas(orders: DataFrame) -> DataFrame:
    """`setbacks` for those who prefer pandas: frames go in and come out as they are."""

    def of_one_city(city: pd.DataFrame) -> pd.DataFrame:
        pairs = dt.theta_join(city, city, "at < at and amount > amount", by="city").to_pandas()
        return pairs[["city", "id", "id_right"]]

    return orders.groupBy("city").applyInPandas(of_one_city, "city string, id long, id_right long")


# --- pandas_udf: a column in, a column out --------------------------------------------------------


def open_offers(amount: Column, offers: pa.Table) -> Column:
    """How many offers, of any city, an order of this amount is large enough for."""

    @pandas_udf("long")
    def count(amounts: pd.Series) -> pd.Series:
        orders = pd.DataFrame({"row": range(len(amounts)), "amount": amounts.to_numpy()})
        pairs = dt.theta_join(orders, offers, "amount >= from_amount").to_pandas()
        return pairs.groupby("row").size().reindex(orders["row"], fill_value=0)

    return count(amount)


# --- arrow_udf: the same on Arrow arrays, which tell null from NaN --------------------------------


def best_offer(amount: Column, offers: pa.Table) -> Column:
    """The largest `from_amount`, of any city, that an order of this amount reaches, or null."""

    @arrow_udf("double")
    def best(amounts: pa.Array) -> pa.Array:
        rows = pa.array(range(len(amounts)), pa.int64())
        orders = pa.table({"row": rows, "amount": amounts})
        pairs = dt.theta_join(orders, offers, "amount >= from_amount").to_arrow()
        reached = pairs.group_by("row").aggregate([("from_amount", "max")])
        place = pc.index_in(rows, reached["row"].combine_chunks())
        return reached["from_amount_max"].combine_chunks().take(place)

    return best(amount)


def example_orders(spark: SparkSession) -> DataFrame:
    """A thousand orders over eight partitions; some lack a city or an amount."""
    return spark.range(0, 1000, 1, 8).selectExpr(
        "id",
        "element_at(array('Bonn', 'Lyon', 'Oslo', null), int(id % 4) + 1) as city",
        "timestamp_seconds(1700000000 + id * 7919 % 1000) as at",
        "if(id % 50 = 0, null, double(id * 37 % 211)) as amount",
    )


def example_offers() -> pa.Table:
    """What is on offer where, from which amount on."""
    return pa.table(
        {
            "offer": ["tote bag", "free delivery", "discount", "gift"],
            "city": ["Bonn", "Lyon", "Lyon", "Oslo"],
            "from_amount": [20.0, 50.0, 150.0, 205.0],
        }
    )


def main() -> None:
    """Shows a few rows of each."""
    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.log.level", "ERROR")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    orders, offers = example_orders(spark), example_offers()
    results = {
        "applyInArrow": setbacks(orders),
        "cogroup().applyInArrow": offers_by_city(orders, spark.createDataFrame(offers)),
        "mapInArrow": offers_by_batch(orders, offers),
        "applyInPandas": setbacks_in_pandas(orders),
        "pandas_udf": orders.withColumn("open_offers", open_offers(orders.amount, offers)),
        "arrow_udf": orders.withColumn("best_offer", best_offer(orders.amount, offers)),
    }
    for name, result in results.items():
        print(f"{name}: {result.count()} rows")
        result.sort("id").show(3)
    spark.stop()


if __name__ == "__main__":
    main()
