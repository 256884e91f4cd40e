"""A feed: the real-time query that brings an operator its records and takes results away."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery

from sojourn.spark.carry_over import CarryOver
from sojourn.spark.real_time import start_real_time
from sojourn.spark.relay import relay
from sojourn.spark.rows import OUTPUT, Route

__all__ = ["Feed", "start_feed"]

_COLUMNS = ("key", "value", "headers", "topic", "partition", "offset")


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """What a feed reads, where its host is, and where results go.

    *kafka* are the options of Spark's source and sink. *starting* is where it begins without
    a checkpoint, as Spark writes it. *batch_s* is how often offsets are committed: a pause of
    some hundred milliseconds, and what comes again after a failure. So many
    *records_per_transfer* wait for each other on their way to the host. What is in service
    when a batch ends goes over to the next, through files in the folder *carry_over*; without
    that folder the batch waits for it.
    """

    route: Route
    kafka: Mapping[str, str] = field(repr=False)
    host: Path
    checkpoint: Path
    starting: str = "earliest"
    batch_s: float = 60.0
    records_per_transfer: int = 1
    carry_over: Path | None = None


def start_feed(spark: SparkSession, feed: Feed) -> StreamingQuery:
    """Return the running query of *feed*."""
    # Settings are read when a query starts, and each has its own. A transfer holds records and
    # the markers between them; the last marker sends it off.
    spark = spark.newSession()
    rows = 2 * feed.records_per_transfer - 1
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", rows)
    source = (
        spark.readStream.format("kafka")
        .options(**feed.kafka)
        .option("subscribe", ",".join(feed.route.reads))
        .option("startingOffsets", feed.starting)
        .option("includeHeaders", "true")
        .load()
    )
    # A record leaves for Python only when the next one is there, so each is followed by an
    # empty one.
    # Times as numbers: a stranger's may be beyond what Python has.
    moment = sql.unix_micros("timestamp").alias("timestamp_us")
    record = sql.struct(*(sql.col(name) for name in _COLUMNS), moment)
    marked = source.select(sql.explode(sql.array(record, sql.lit(None))).alias("record"))
    carry_over = None if feed.carry_over is None else CarryOver(feed.carry_over)
    passed = marked.mapInArrow(relay(str(feed.host), feed.route, carry_over), OUTPUT)
    return start_real_time(
        passed,
        name=feed.route.operator,
        kafka=feed.kafka,
        checkpoint=feed.checkpoint,
        batch_s=feed.batch_s,
    )
