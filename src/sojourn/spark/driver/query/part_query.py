"""The real-time queries of parts, which pass records to a host, and of deduplicated sinks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery

from sojourn.app.operator import NativeOperator
from sojourn.spark.driver.native.frame import Address, own_session
from sojourn.spark.driver.native.projection import REFUSED, project_read, project_written
from sojourn.spark.driver.query.real_time import start_real_time
from sojourn.spark.driver.query.transfer import transferred, without_end_rows
from sojourn.spark.task.deduplication import Deduplication, new_alone
from sojourn.spark.task.relay import relay
from sojourn.spark.task.rows import OUTPUT, SCHEMA, Route
from sojourn.spark.wire.host_address import HostAddress

__all__ = [
    "COLUMNS",
    "PartQuery",
    "Projections",
    "part_frame",
    "start_deduplication",
    "start_part",
    "through_host",
]

COLUMNS = ("key", "value", "headers", "topic", "partition", "offset")
"""Columns of Kafka's source that a relay passes on, apart from the timestamp."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Projections:
    """The projections that run in the query of a part."""

    before: Mapping[str, NativeOperator] = field(default_factory=dict)
    """Projections before the functions, by the topic that each reads."""
    behind: Mapping[str, NativeOperator] = field(default_factory=dict)
    """Projections after the functions, by the topic that each writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartQuery:
    """A part with its host and the settings of its query."""

    route: Route
    kafka: Mapping[str, str] = field(repr=False)
    """Options of Spark's source and sink."""
    host: HostAddress
    checkpoint: Path
    projections: Projections = Projections()
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


def start_part(spark: SparkSession, part: PartQuery) -> StreamingQuery:
    """Start the query of *part*. Raise `BadApplication` if a projection is invalid."""
    return start_real_time(
        part_frame(spark, part),
        name=part.route.part,
        kafka=part.kafka,
        checkpoint=part.checkpoint,
        batch_s=part.batch_s,
    )


def part_frame(spark: SparkSession, part: PartQuery) -> DataFrame:
    """Return the rows that the query of *part* writes to Kafka."""
    # a query reads its settings at the start: a session of its own keeps them apart
    spark = own_session(spark)
    if part.records_per_transfer:
        most = part.records_per_transfer
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", most)
    source = (
        spark.readStream.format("kafka")
        .options(**part.kafka)
        .option("subscribe", ",".join(part.route.topics))
        .option("startingOffsets", part.starting)
        .option("includeHeaders", "true")
        .load()
    )
    return through_host(
        source,
        part.host,
        part.route,
        part.batch_s,
        part.projections,
        ends=part.ends,
        relays_tell_ends=part.relays_tell_ends,
    )


def through_host(  # noqa: PLR0913 - most by name
    source: DataFrame,
    host: HostAddress,
    route: Route,
    batch_s: float,
    projections: Projections = Projections(),  # noqa: B008 - it is frozen
    *,
    ends: str = "",
    relays_tell_ends: bool = False,
) -> DataFrame:
    """Return the rows that leave a part, given the rows that Spark reads from Kafka."""
    columns = list(COLUMNS)
    if projections.before:
        source = project_read(source, projections.before, route.dead_letters)
        columns.append(REFUSED)
    # timestamps as integers: those of other producers may exceed the range of datetime
    moment = sql.unix_micros("timestamp").alias("timestamp_us")
    rows = transferred(source, sql.struct(*columns, moment), ends)
    told = ends if relays_tell_ends else ""
    left = rows.mapInArrow(relay(host, route, batch_s, told), OUTPUT)
    if told:
        left = without_end_rows(left)
    letters = Address(
        writes="", dead_letters=route.dead_letters, most_bytes=route.most_bytes, inner=True
    )
    return project_written(left, projections.behind, letters)


def start_deduplication(spark: SparkSession, sink: Deduplication) -> StreamingQuery:
    """Start the query that copies records to *sink* and drops duplicates.

    Each partition of the stream is written to the partition of the sink with the same number,
    so the tasks (`sojourn.spark.task.deduplication`) work independently of each other.
    """
    source = (
        spark.newSession()
        .readStream.format("kafka")
        .options(**sink.spark)
        .option("subscribe", sink.reads)
        .option("startingOffsets", sink.starting)
        .option("includeHeaders", "true")
        .load()
    )
    record = sql.struct(*(name for name in SCHEMA.names if name != "topic"), "offset")
    rows = transferred(source, record, sink.ends)
    return start_real_time(
        rows.mapInArrow(new_alone(sink), OUTPUT),
        name=f"sink {sink.name}",
        kafka=sink.spark,
        checkpoint=sink.checkpoint,
        batch_s=sink.batch_s,
    )
