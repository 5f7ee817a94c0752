"""The joins of dovetail on Spark: the same names and arguments, DataFrames in and out.

Plans are lazy and run inside Spark's own tasks, where the same Rust operators join Arrow batches
that give the same rows as in a single process. Nothing is collected to the driver, and the
session's settings are never changed but by `configure`, which is for you to call::

    import dovetail.spark as ds

    ds.configure(spark)
    pairs = ds.theta_join(phones, laptops, "price > price")

This package is the only place that imports pyspark: `planning` runs on the driver, `worker` in the
tasks. The executors need dovetail installed, as they need any package that a task uses.
"""

try:
    import pyspark  # noqa: F401
except ImportError as error:
    raise ImportError(
        "dovetail.spark needs PySpark 4.1 or later: pip install 'pyspark>=4.1' 'pandas<3'"
    ) from error

from dovetail.spark.chain import chain_join
from dovetail.spark.session import configure
from dovetail.spark.theta import theta_join

__all__ = ["chain_join", "configure", "theta_join"]
