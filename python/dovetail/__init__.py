"""The joins that Spark, pandas and SQL engines do badly, done right: Arrow in, Arrow out.

>>> import dovetail as dt, pyarrow as pa
>>> phones = pa.table({"phone": ["x", "y"], "price": [300, 900]})
>>> laptops = pa.table({"laptop": ["u", "v"], "price": [500, 800]})
>>> dt.theta_join(phones, laptops, "price > price").count()
2
"""

from dovetail._native import __version__
from dovetail.chain import chain_join
from dovetail.errors import (
    BudgetError,
    DovetailError,
    InternalError,
    InvalidInputError,
    PredicateError,
    SpillError,
    UnsupportedError,
)
from dovetail.partitioning import Partitioning
from dovetail.predicates import col
from dovetail.result import JoinResult
from dovetail.theta import theta_join
from dovetail.theta_stream import ThetaJoin

__all__ = [
    "BudgetError",
    "DovetailError",
    "InternalError",
    "InvalidInputError",
    "JoinResult",
    "Partitioning",
    "PredicateError",
    "SpillError",
    "ThetaJoin",
    "UnsupportedError",
    "__version__",
    "chain_join",
    "col",
    "theta_join",
]
