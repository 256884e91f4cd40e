"""The real-time query of a native operator."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery

from sojourn.app.operator import NativeOperator
from sojourn.app.schema import Schema
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
from sojourn.spark.driver.query.real_time import start_real_time
from sojourn.spark.wire.record import MOST_BYTES

__all__ = ["NativeQuery", "native_frame", "start_misfits", "start_native"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeQuery:
    """A native operator with its topics and the settings of its query."""

    operator: NativeOperator
    servers: str
    reads: str
    writes: str
    dead_letters: str
    checkpoint: Path
    schema: Schema | None = None
    """Schema of *reads*, if its stream has none: `native_schema` of the operator before."""
    partitions: int = 1
    """State partitions of an aggregation; the first committed batch fixes their number."""
    spread: int = 0
    """Partitions of *writes*, if its readers drop duplicates; otherwise 0."""
    mark: str = ""
    """Mark in the ids of roots (`headers.marked`)."""
    starting: str = "earliest"
    """Start offsets without a checkpoint, in Spark's format."""
    batch_s: float = 60.0
    kafka: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options of Spark's source and sink."""
    most_bytes: int = MOST_BYTES
    """Maximum size of a message."""


def start_native(spark: SparkSession, native: NativeQuery) -> StreamingQuery:
    """Start the query of *native*. Raise `BadApplication` if the operator is invalid.

    The query of a projection also writes the dead letters of records that do not fit its
    schema; for an aggregation see `start_misfits`.
    """
    return _started(native_frame(spark, native), native, native.operator.name)


def native_frame(spark: SparkSession, native: NativeQuery) -> DataFrame:
    """Return the rows that the query of *native* writes to Kafka."""
    operator = native.operator
    schema = schema_read(operator, native.schema)
    made = native_schema(spark, operator, schema)
    records = _read(spark, native, schema)
    if operator.kind == "aggregate":
        records = fitting(records)
    return _addressed(worked(records, operator, operator.columns), native, made)


def start_misfits(spark: SparkSession, native: NativeQuery, name: str) -> StreamingQuery:
    """Start the query *name*, which writes dead letters of records that do not fit the schema.

    An aggregation cannot write them itself: it emits one row per group, and so would report
    only one of several.
    """
    schema = schema_read(native.operator, native.schema)
    letters = _addressed(misfits(_read(spark, native, schema)), native, schema)
    return _started(letters, native, name)


def _read(spark: SparkSession, native: NativeQuery, schema: Schema) -> DataFrame:
    topic = (
        own_session(spark, native.partitions)
        .readStream.format("kafka")
        .options(**_kafka(native))
        .option("subscribe", native.reads)
        .option("startingOffsets", native.starting)
        .option("includeHeaders", "true")
        .load()
        .where(is_for(sql.col("headers"), native.dead_letters, native.operator.name))
        .where(has_value(sql.col("value")))
    )
    return read_stream(topic, native.operator, schema)


def _addressed(frame: DataFrame, native: NativeQuery, made: Schema) -> DataFrame:
    return addressed(
        frame,
        native.operator,
        made,
        Address(
            writes=native.writes,
            dead_letters=native.dead_letters,
            most_bytes=native.most_bytes,
            mark=native.mark,
            writer=native.operator.name if native.spread else "",
            partitions=native.spread,
        ),
    )


def _started(frame: DataFrame, native: NativeQuery, name: str) -> StreamingQuery:
    return start_real_time(
        frame,
        name=name,
        kafka=_kafka(native),
        checkpoint=native.checkpoint,
        batch_s=native.batch_s,
    )


def _kafka(native: NativeQuery) -> dict[str, str]:
    return {"kafka.bootstrap.servers": native.servers, **native.kafka}
