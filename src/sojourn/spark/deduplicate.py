"""A sink at which nothing arrives twice, as far back as it remembers.

What it remembers is what the sink itself holds (`spark/sink_tail`), so that neither a failure
in between nor another start makes it forget.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery

from sojourn.errors import EngineError
from sojourn.spark.headers import ID, identity_of, is_retry, marked
from sojourn.spark.real_time import start_real_time
from sojourn.spark.rows import OUTPUT, SCHEMA
from sojourn.spark.sink_tail import RecentIds, sink_tail

__all__ = ["Deduplication", "start_deduplication"]

_POSITION = ("partition", "offset")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deduplication:
    """What a sink reads and writes; *clients* and *spark* are options for either to Kafka.

    What has no id gets that of its position, with *mark*; without one it passes as it is.
    """

    name: str
    reads: str
    writes: str
    window: int
    checkpoint: Path
    clients: Mapping[str, str] = field(repr=False)
    spark: Mapping[str, str] = field(repr=False)
    mark: str = ""
    starting: str = "earliest"
    batch_s: float = 60.0


def start_deduplication(spark: SparkSession, sink: Deduplication) -> StreamingQuery:
    """Return the running query that writes what is new."""
    session = spark.newSession()
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 1)
    source = (
        session.readStream.format("kafka")
        .options(**sink.spark)
        .option("subscribe", sink.reads)
        .option("startingOffsets", sink.starting)
        .option("includeHeaders", "true")
        .load()
    )
    # each record is followed by an empty one, as in a feed
    columns = [*(name for name in SCHEMA.names if name != "topic"), *_POSITION]
    record = sql.struct(*columns)
    followed = source.select(sql.explode(sql.array(record, sql.lit(None))).alias("record"))
    return start_real_time(
        followed.mapInArrow(_new_alone(sink), OUTPUT),
        name=f"sink {sink.name}",
        kafka=sink.spark,
        checkpoint=sink.checkpoint,
        batch_s=sink.batch_s,
    )


def _new_alone(
    sink: Deduplication,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what passes on the records that are not at the sink yet."""
    clients, writes, window = dict(sink.clients), sink.writes, sink.window
    reads, roots = sink.reads, marked(sink.reads, sink.mark) if sink.mark else ""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _check_alone(reads)
        written, passed = sink_tail(clients, writes, window), RecentIds(window)
        for batch in batches:
            rows = [
                row
                for row in batch.column(0).to_pylist()
                # what is put back in for one operator was here before
                if row is not None and not is_retry(row["headers"])
            ]
            identified = [_identified(row, roots) for row in rows]
            new = [
                {**row, "topic": writes}
                for identity, row in identified
                if identity is None or (identity not in written and passed.is_new(identity))
            ]
            if new:
                yield pa.RecordBatch.from_pylist(new, SCHEMA)

    return run


def _check_alone(reads: str) -> None:
    """Raise an `EngineError` in all tasks but the first: none knows what the others pass on."""
    task = TaskContext.get()
    if task is not None and task.partitionId() > 0:
        raise EngineError(
            f"{reads} has more than one partition, and duplicates may be in different ones; "
            "use a topic with one partition, or leave out deduplicate="
        )


def _identified(row: dict[str, Any], roots: str) -> tuple[str | None, dict[str, Any]]:
    """Return a record with its id, which begins with *roots* where it had none.

    What Spark's own aggregations write has none, nor what comes from outside.
    """
    identity = identity_of(row["headers"])
    if identity is None and roots:
        identity = "/".join([roots, *(str(row[name]) for name in _POSITION)])
        header = {"key": ID, "value": identity.encode()}
        row = {**row, "headers": [*(row["headers"] or ()), header]}
    return identity, row
