"""A sink at which nothing arrives twice: the real-time query that writes what is new.

Each partition of the stream is written to the partition of the sink with the same number, so
the task of a partition (`sojourn.spark.sink.passage`) need not know of the others.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery

from sojourn.spark.query.headers import marked
from sojourn.spark.query.real_time import start_real_time
from sojourn.spark.query.rows import OUTPUT, SCHEMA
from sojourn.spark.query.signed_inputs import SignedInputs
from sojourn.spark.query.transfer import transferred
from sojourn.spark.sink.passage import Passage, Rules
from sojourn.spark.sink.sink_memory import SinkMemory
from sojourn.spark.sink.sink_topic import SinkTopic

__all__ = ["Deduplication", "new_alone", "start_deduplication"]

# In the checkpoint: without that it would be of other offsets.
_MEMORY = "memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deduplication:
    """What a sink reads and writes; *clients* and *spark* are options for either to Kafka.

    What has no id gets that of its place, with *mark*; without one it passes as it is.
    Duplicates of the application's own writers are recognised by *inputs*; ids that producers
    gave are compared with the last *window*. Brokers refuse what comes to the sink later than
    *fence_s* after it was sent; 0 if they do not.
    """

    name: str
    reads: str
    writes: str
    window: int
    checkpoint: Path
    clients: Mapping[str, str] = field(repr=False)
    spark: Mapping[str, str] = field(repr=False)
    mark: str = ""
    inputs: SignedInputs = field(default_factory=SignedInputs)
    fence_s: float = 0.0
    starting: str = "earliest"
    batch_s: float = 60.0
    kept_batches: int = 3
    ends: str = ""


def start_deduplication(spark: SparkSession, sink: Deduplication) -> StreamingQuery:
    """Return the running query that writes what is new."""
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


def new_alone(
    sink: Deduplication,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what a task passes on: the records that are not at the sink yet."""
    topic = SinkTopic(sink.writes, dict(sink.clients))
    rules = Rules(
        window=sink.window,
        inputs=sink.inputs,
        fence_s=sink.fence_s,
        roots=marked(sink.reads, sink.mark) if sink.mark else None,
    )
    files = SinkMemory(sink.checkpoint / _MEMORY, sink.kept_batches)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        passage = None
        for batch in batches:
            rows = [row for row in batch.column(0).to_pylist() if row is not None]
            if not rows:
                continue
            if passage is None:
                passage = Passage(rules, topic, files, rows[0])
            if new := [{**row, "topic": topic.name} for row in passage.new(rows)]:
                yield pa.RecordBatch.from_pylist(new, SCHEMA)
        if passage is not None:
            passage.save()

    return run
