"""A feed: the real-time query that brings an operator its records and takes results away."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery

from sojourn.spark.relay import OUTPUT, Route, relay

__all__ = ["Feed", "start_feed"]

_COLUMNS = ("value", "headers", "topic", "partition", "offset", "timestamp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """What a feed reads, where its host is, and where results go.

    *batch_s* is how often offsets are committed: a pause of some hundred milliseconds, and
    what comes again after a failure.
    """

    route: Route
    servers: str
    reads: Sequence[str]
    host: Path
    checkpoint: Path
    starting: str = "earliest"
    batch_s: float = 60.0
    kafka: Mapping[str, str] = field(default_factory=dict)


def start_feed(spark: SparkSession, feed: Feed) -> StreamingQuery:
    """Return the running query of *feed*."""
    kafka = {"kafka.bootstrap.servers": feed.servers, **feed.kafka}
    source = (
        spark.readStream.format("kafka")
        .options(**kafka)
        .option("subscribe", ",".join(feed.reads))
        .option("startingOffsets", feed.starting)
        .option("includeHeaders", "true")
        .load()
    )
    # A record leaves for Python only when the next one is there, so each is followed by an
    # empty one.
    record = sql.struct(*(sql.col(name) for name in _COLUMNS))
    marked = source.select(sql.explode(sql.array(record, sql.lit(None))).alias("record"))
    passed = marked.mapInArrow(relay(str(feed.host), feed.route), OUTPUT)
    written = (
        passed.writeStream.format("kafka")
        .options(**kafka)
        .outputMode("update")
        .option("checkpointLocation", str(feed.checkpoint))
        .queryName(feed.route.operator)
    )
    # a trigger that PySpark's own types do not know yet
    query: StreamingQuery = written.trigger(realTime=f"{feed.batch_s:g} seconds").start()  # type: ignore[call-overload]
    return query
