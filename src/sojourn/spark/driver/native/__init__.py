"""Native operators: projections and aggregations that Spark runs itself, without a host.

Projections next to functions are steps of their query (`spark/driver/native/projection`). They
have no processors that could be changed while they run: a projection has one task for each
partition of its topic, an aggregation one more for each partition of its state, whose number
the first batch settles for good.

A record that cannot be read becomes a dead letter; where an aggregation reads, in a query of
its own. An expression that raises stops the query,
and again at every restart: write `try_cast`, `try_divide` and the like where input may be bad.
The time zone of expressions is UTC.
"""

from sojourn.spark.driver.native.query import (
    NativeQuery,
    native_frame,
    start_misfits,
    start_native,
)
from sojourn.spark.driver.native.schema import native_schema

__all__ = ["NativeQuery", "native_frame", "native_schema", "start_misfits", "start_native"]
