"""The records of a partition that are not at the sink yet, as a task of Spark yields them."""

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
