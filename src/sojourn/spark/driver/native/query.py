"""The rows that the query of a native operator writes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from sojourn.app.operator import NativeOperator
from sojourn.spark.driver.native.frame import (
    Address,
    addressed,
    fitting,
    misfits,
    own_session,
    read_stream,
    worked,
)
from sojourn.spark.driver.native.headers import is_for
from sojourn.spark.driver.native.payload import has_value
from sojourn.spark.driver.native.schema import native_schema, schema_read
from sojourn.spark.driver.query.real_time import read_topics

__all__ = ["NativeQuery", "misfits_frame", "native_frame"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeQuery:
    operator: NativeOperator
    reads: str
    """The topic that it reads."""
    address: Address
    kafka: Mapping[str, str] = field(repr=False)
    """Options of Spark's source."""
    partitions: int = 1
    """State partitions of an aggregation; the first committed batch fixes their number."""
    starting: str = "earliest"
    """Start offsets without a checkpoint, in Spark's format."""


def native_frame(spark: SparkSession, native: NativeQuery) -> DataFrame:
    """Return the rows that the query of *native* writes to Kafka.

    Those of a projection include dead letters of records that do not fit its schema; for an
    aggregation see `misfits_frame`. Raise `BadApplication` if the operator is invalid.
    """
    operator = native.operator
    made = native_schema(spark, operator)
    records = _read(spark, native)
    if operator.kind == "aggregate":
        records = fitting(records)
    results = worked(records, operator, operator.columns)
    return addressed(results, operator, made, native.address)


def misfits_frame(spark: SparkSession, native: NativeQuery) -> DataFrame:
    """Return the dead letters of records that do not fit the schema of an aggregation.

    It cannot write them itself: it emits one row per group, and so would report only one of
    several.
    """
    operator, unfit = native.operator, misfits(_read(spark, native))
    return addressed(unfit, operator, schema_read(operator), native.address)


def _read(spark: SparkSession, native: NativeQuery) -> DataFrame:
    session = own_session(spark, native.partitions)
    operator, letters = native.operator, native.address.dead_letters
    topic = (
        read_topics(session, native.kafka, [native.reads], native.starting)
        .where(is_for(sql.col("headers"), letters, operator.name))
        .where(has_value(sql.col("value")))
    )
    return read_stream(topic, operator, schema_read(operator))
