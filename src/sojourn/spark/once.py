"""A sink at which nothing arrives twice, as far back as it remembers.

What it remembers is what the sink itself holds (`spark/sink_end`), so that neither a failure
in between nor another start makes it forget.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery

from sojourn.spark.headers import identity_of, is_put_back
from sojourn.spark.real_time import start_real_time
from sojourn.spark.relay import OUTPUT, SCHEMA
from sojourn.spark.sink_end import Remembered, sink_end

__all__ = ["Once", "start_once"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    """What a sink reads and writes; *clients* and *spark* are options for either to Kafka."""

    name: str
    reads: str
    writes: str
    window: int
    checkpoint: Path
    clients: Mapping[str, str] = field(repr=False)
    spark: Mapping[str, str] = field(repr=False)
    starting: str = "earliest"
    batch_s: float = 60.0


def start_once(spark: SparkSession, once: Once) -> StreamingQuery:
    """Return the running query that writes what is new."""
    session = spark.newSession()
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 1)
    source = (
        session.readStream.format("kafka")
        .options(**once.spark)
        .option("subscribe", once.reads)
        .option("startingOffsets", once.starting)
        .option("includeHeaders", "true")
        .load()
    )
    # each record is followed by an empty one, as in a feed
    record = sql.struct(*(name for name in SCHEMA.names if name != "topic"))
    marked = source.select(sql.explode(sql.array(record, sql.lit(None))).alias("record"))
    return start_real_time(
        marked.mapInArrow(_new_alone(once), OUTPUT),
        name=f"sink {once.name}",
        kafka=once.spark,
        checkpoint=once.checkpoint,
        batch_s=once.batch_s,
    )


def _new_alone(
    once: Once,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what passes on the records that are not at the sink yet."""
    clients, writes, window = dict(once.clients), once.writes, once.window

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        written, passed = sink_end(clients, writes, window), Remembered(window)
        for batch in batches:
            rows = [
                row
                for row in batch.column(0).to_pylist()
                # what is put back in for one operator was here before
                if row is not None and not is_put_back(row["headers"])
            ]
            new = [
                {**row, "topic": writes}
                for row in rows
                # Spark's own aggregations write records that are none of any other
                if (identity := identity_of(row["headers"])) is None
                or (identity not in written and passed.is_new(identity))
            ]
            if new:
                yield pa.RecordBatch.from_pylist(new, SCHEMA)

    return run
