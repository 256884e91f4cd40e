"""The real-time query of a native operator."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery

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
from sojourn.spark.driver.query.real_time import read_topics, start_real_time

__all__ = ["NativeQuery", "native_frame", "start_misfits", "start_native"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeQuery:
    """A native operator with its topics and the settings of its query."""

    operator: NativeOperator
    reads: str
    address: Address
    kafka: Mapping[str, str] = field(repr=False)
    """Options of Spark's source and sink."""
    checkpoint: Path
    partitions: int = 1
    """State partitions of an aggregation; the first committed batch fixes their number."""
    starting: str = "earliest"
    """Start offsets without a checkpoint, in Spark's format."""
    batch_s: float = 60.0


def start_native(spark: SparkSession, native: NativeQuery) -> StreamingQuery:
    """Start the query of *native*. Raise `BadApplication` if the operator is invalid.

    The query of a projection also writes the dead letters of records that do not fit its
    schema; for an aggregation see `start_misfits`.
    """
    return _started(native_frame(spark, native), native, native.operator.name)


def native_frame(spark: SparkSession, native: NativeQuery) -> DataFrame:
    """Return the rows that the query of *native* writes to Kafka."""
    operator = native.operator
    made = native_schema(spark, operator)
    records = _read(spark, native)
    if operator.kind == "aggregate":
        records = fitting(records)
    results = worked(records, operator, operator.columns)
    return addressed(results, operator, made, native.address)


def start_misfits(spark: SparkSession, native: NativeQuery, name: str) -> StreamingQuery:
    """Start the query *name*, which writes dead letters of records that do not fit the schema.

    An aggregation cannot write them itself: it emits one row per group, and so would report
    only one of several.
    """
    operator, unfit = native.operator, misfits(_read(spark, native))
    letters = addressed(unfit, operator, schema_read(operator), native.address)
    return _started(letters, native, name)


def _read(spark: SparkSession, native: NativeQuery) -> DataFrame:
    session = own_session(spark, native.partitions)
    operator, letters = native.operator, native.address.dead_letters
    topic = (
        read_topics(session, native.kafka, [native.reads], native.starting)
        .where(is_for(sql.col("headers"), letters, operator.name))
        .where(has_value(sql.col("value")))
    )
    return read_stream(topic, operator, schema_read(operator))


def _started(frame: DataFrame, native: NativeQuery, name: str) -> StreamingQuery:
    return start_real_time(
        frame,
        name=name,
        kafka=native.kafka,
        checkpoint=native.checkpoint,
        batch_s=native.batch_s,
    )
