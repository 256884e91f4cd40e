"""The real-time query of a part: it brings its records, and takes away what leaves."""

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
from sojourn.spark.task.relay import relay
from sojourn.spark.task.rows import OUTPUT, Route
from sojourn.spark.wire.host_address import HostAddress

__all__ = ["COLUMNS", "PartQuery", "Projections", "part_frame", "start_part", "through_host"]

COLUMNS = ("key", "value", "headers", "topic", "partition", "offset")
"""Of Kafka's source, what a relay passes on, beside the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Projections:
    """The projections that run in the query of a part.

    Those *before* its functions are told by the topic that each reads, those *behind* them by
    the topic that each writes.
    """

    before: Mapping[str, NativeOperator] = field(default_factory=dict)
    behind: Mapping[str, NativeOperator] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartQuery:
    """What a part reads, where its *host* is, and where results go.

    *kafka* are the options of Spark's source and sink. *starting* is where it begins without
    a checkpoint, as Spark writes it. *batch_s* is how often offsets are committed, and what is
    open is written to disk. At most so many *records_per_transfer* go to the host together,
    if it is told; *ends* is the name under which Java knows where topics end, which on a
    cluster *relays_tell_ends*.
    """

    route: Route
    kafka: Mapping[str, str] = field(repr=False)
    host: HostAddress
    checkpoint: Path
    projections: Projections = Projections()
    starting: str = "earliest"
    batch_s: float = 60.0
    records_per_transfer: int | None = None
    ends: str = ""
    relays_tell_ends: bool = False


def start_part(spark: SparkSession, part: PartQuery) -> StreamingQuery:
    """Return the running query of *part*, or raise a `BadApplication` and start nothing."""
    return start_real_time(
        part_frame(spark, part),
        name=part.route.part,
        kafka=part.kafka,
        checkpoint=part.checkpoint,
        batch_s=part.batch_s,
    )


def part_frame(spark: SparkSession, part: PartQuery) -> DataFrame:
    """Return what the query of *part* writes."""
    # settings are read when a query starts, and each has its own
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
    """Return what leaves a part, of what Spark reads from Kafka."""
    columns = list(COLUMNS)
    if projections.before:
        source = project_read(source, projections.before, route.dead_letters)
        columns.append(REFUSED)
    # times as numbers: a stranger's may be beyond what Python has
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
