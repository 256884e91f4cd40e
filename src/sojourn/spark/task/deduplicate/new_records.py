"""The task of Spark that yields the records of a partition that are not at the sink yet."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from sojourn.spark.task.deduplicate.sink_filter import Passage, Rules
from sojourn.spark.task.deduplicate.sink_memory import SinkMemory
from sojourn.spark.task.deduplicate.sink_topic import SinkTopic
from sojourn.spark.task.rows import SCHEMA
from sojourn.spark.wire.headers import marked
from sojourn.spark.wire.signed_inputs import SignedInputs

__all__ = ["Deduplication", "new_alone"]

# In the checkpoint, because it is valid only for the offsets there.
_MEMORY = "memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deduplication:
    """The query that deduplicates a topic into a sink."""

    reads: str
    """The topic that it reads."""
    writes: str
    """The topic of the sink."""
    window: int
    """The number of earlier ids that the id from a producer is compared with."""
    checkpoint: Path
    """The checkpoint folder of the query."""
    clients: Mapping[str, str] = field(repr=False)
    """Options of Kafka clients in Python."""
    spark: Mapping[str, str] = field(repr=False)
    """Options of Spark's Kafka source."""
    mark: str = ""
    """The mark of the topic in ids of records without one; empty passes them as they are."""
    inputs: SignedInputs = field(default_factory=SignedInputs)
    """Verifies the headers by which duplicates from the application's writers are detected."""
    fence_s: float = 0.0
    """Brokers refuse messages that reach the sink later than this; 0 if they do not."""
    starting: str = "earliest"
    """Offsets at which the query starts without a checkpoint."""
    kept_batches: int = 3
    """Batches before the last commit from which a start may resume."""
    ends: str = ""
    """The name under which Java learns the end offsets of partitions."""


def new_alone(
    sink: Deduplication,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function of a task that passes on the records that are not at the sink yet."""
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
