"""The real-time queries of parts, which pass records to a host, and of deduplicated sinks."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from sojourn.app.operator import NativeOperator
from sojourn.spark.driver.native.frame import Address, own_session
from sojourn.spark.driver.native.query import REFUSED, project_read, project_written
from sojourn.spark.driver.query.real_time import (
    read_topics,
    transferred,
    without_end_rows,
)
from sojourn.spark.task.deduplication import Deduplication, new_alone
from sojourn.spark.task.relay import relay
from sojourn.spark.task.rows import OUTPUT, SCHEMA, Route
from sojourn.spark.wire.host_address import HostAddress

COLUMNS = ("key", "value", "headers", "topic", "partition", "offset")
"""Columns of Kafka's source that a relay passes on, apart from the timestamp."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartQuery:
    route: Route
    host: HostAddress
    before: Mapping[str, NativeOperator] = field(default_factory=dict)
    """Projections before the functions, by the topic that each reads."""
    behind: Mapping[str, NativeOperator] = field(default_factory=dict)
    """Projections after the functions, by the topic that each writes."""
    kafka: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options of Spark's source."""
    starting: str = "earliest"
    """Start offsets without a checkpoint, in Spark's format."""
    batch_s: float = 60.0
    """Interval between commits, at which open records are written to disk."""
    records_per_transfer: int | None = None
    """Maximum number of records that Spark hands to a relay together."""
    ends: str = ""
    """Prefix of the system properties with end offsets (`KnownEnds`); empty without them."""
    relays_tell_ends: bool = False
    """Whether relays update those properties on executors; on a cluster they must."""


def part_frame(spark: SparkSession, part: PartQuery) -> DataFrame:
    """Return the rows that the query of *part* writes to Kafka.

    Raise `BadApplication` if a projection is invalid.
    """
    # a query reads its settings at the start: a session of its own keeps them apart
    spark = own_session(spark)
    if part.records_per_transfer:
        most = part.records_per_transfer
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", most)
    source = read_topics(spark, part.kafka, part.route.topics, part.starting)
    return through_host(source, part)


def through_host(source: DataFrame, part: PartQuery) -> DataFrame:
    """Return the rows that leave a part, given the rows that Spark reads from Kafka."""
    route, columns = part.route, list(COLUMNS)
    if part.before:
        source = project_read(source, part.before, route.dead_letters)
        columns.append(REFUSED)
    # timestamps as integers: those of other producers may exceed the range of datetime
    moment = sql.unix_micros("timestamp").alias("timestamp_us")
    rows = transferred(source, sql.struct(*columns, moment), part.ends)
    told = part.ends if part.relays_tell_ends else ""
    left = rows.mapInArrow(relay(part.host, route, part.batch_s, told), OUTPUT)
    if told:
        left = without_end_rows(left)
    letters = Address(
        writes="", dead_letters=route.dead_letters, most_bytes=route.most_bytes, inner=True
    )
    return project_written(left, part.behind, letters)


def deduplicated_frame(spark: SparkSession, sink: Deduplication) -> DataFrame:
    """Return the records that the query of *sink* copies there, without duplicates.

    Each partition of the stream is written to the partition of the sink with the same number,
    so the tasks (`sojourn.spark.task.deduplication`) work independently of each other.
    """
    source = read_topics(spark.newSession(), sink.spark, [sink.reads], sink.starting)
    record = sql.struct(*(name for name in SCHEMA.names if name != "topic"), "offset")
    rows = transferred(source, record, sink.ends)
    return rows.mapInArrow(new_alone(sink), OUTPUT)
