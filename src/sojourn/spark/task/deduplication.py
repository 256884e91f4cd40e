"""Deduplication of one batch of one partition before a sink.

Duplicates in the stream are detected by the state after earlier records, which is saved in
files (`sojourn.spark.wire.repetitions`). An attempt that fails may have written any part of its
batch, so the next attempt reads the ids that were written from the sink itself. That attempt
may end at an earlier offset, so ids ahead of its end are saved for the batches that follow.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from sojourn.errors import EngineError
from sojourn.files.private_files import make_folder, write_new
from sojourn.spark.task.rows import SCHEMA, SparkRow
from sojourn.spark.task.sink_memory import SavedMemory, SinkMemory
from sojourn.spark.task.sink_topic import SinkTopic
from sojourn.spark.wire.headers import ID, ROOT, id_in, is_retry, marked
from sojourn.spark.wire.repetitions import Memory, Repetitions
from sojourn.spark.wire.signed_inputs import SignedInputs

# In the checkpoint, because it is valid only for the offsets there.
_MEMORY = "memory"
_LOOK_S = 0.5


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
    topic = SinkTopic(sink.writes, sink.clients)
    files = SinkMemory(sink.checkpoint / _MEMORY, sink.kept_batches)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        passage = None
        for batch in batches:
            rows = [row for row in batch.column(0).to_pylist() if row is not None]
            if not rows:
                continue
            if passage is None:
                passage = Passage(sink, topic, files, rows[0])
            if new := [{**row, "topic": topic.name} for row in passage.new(rows)]:
                yield pa.RecordBatch.from_pylist(new, SCHEMA)
        if passage is not None:
            passage.save()

    return run


class Passage:
    """One batch of a partition, which begins with the row *first*."""

    def __init__(
        self, rules: Deduplication, sink: SinkTopic, files: SinkMemory, first: SparkRow
    ) -> None:
        self._rules, self._sink, self._files = rules, sink, files
        self._partition, self._next = first["partition"], first["offset"]
        self._claim = Claim(files.folder, self._partition)
        claimed_s = self._claim.take()
        if files.sink_end(self._partition, self._next) is not None:
            # an attempt failed, and messages that it has sent may still be in flight
            self._claim.outwait(claimed_s, rules.fence_s)
        saved = files.load(self._partition, self._next) or self._begun()
        self._repetitions = Repetitions(rules.window, saved.memory, rules.inputs.topics)
        self._ahead = saved.ahead | self._written()

    def _begun(self) -> SavedMemory:
        """Return the state after the ids in the sink, saved for a retry of this batch."""
        last = self._sink.last(self._partition, self._rules.window)
        begun = SavedMemory(Memory.of(last))
        self._files.save(self._partition, self._next, begun)
        return begun

    def _written(self) -> set[str]:
        """Return the ids written by earlier attempts; the first one saves the sink's end."""
        end = self._files.sink_end(self._partition, self._next)
        if end is not None:
            return set(self._sink.since(self._partition, end))
        end = self._sink.end(self._partition)
        self._files.note_sink_end(self._partition, self._next, end)
        return set()

    def new(self, rows: Iterable[SparkRow]) -> Iterator[SparkRow]:
        """Yield the rows that are not at the sink yet, with their ids.

        Raise `EngineError` if another task has claimed this partition.
        """
        self._claim.renew()
        for row in rows:
            self._next = row["offset"] + 1
            # a retry is for one operator: the record itself was read here before
            if not is_retry(row["headers"]):
                yield from self._new(row)

    def _new(self, row: SparkRow) -> Iterator[SparkRow]:
        identity, given = id_in(row["headers"], ID), True
        if identity is None:
            # from a producer, or an aggregation of Spark's own
            if not self._rules.mark:
                yield row
                return
            topic = marked(self._rules.reads, self._rules.mark)
            identity, given = f"{topic}/{row['partition']}/{row['offset']}", False
            named = {"key": ID, "value": identity.encode()}
            row = {**row, "headers": [*(row["headers"] or ()), named]}
        root = id_in(row["headers"], ROOT) or identity
        arrived = self._rules.inputs.provenance(identity, root, row["headers"], given=given)
        if arrived is None or self._repetitions.is_new(arrived):
            if identity in self._ahead:  # an earlier attempt has written it to the sink
                self._ahead.remove(identity)
            else:
                yield row

    def save(self) -> None:
        """Save the state; Spark commits the batch only after that."""
        self._claim.check()
        known = SavedMemory(self._repetitions.memory, self._ahead)
        self._files.save(self._partition, self._next, known)


@dataclass(slots=True)
class Claim:
    """The claim of one task on a *partition*: a file in the shared *folder*, used as a fence.

    A machine that loses its network seems dead, and another task takes over. When the network
    is back, the first task still runs, and its Kafka client still holds unsent messages. The
    claim ends such a task: it checks the file before it passes records on, unless it has within
    the last half second. Messages that its client still holds are refused by the broker
    (`message.timestamp.before.max.ms`), and the new task waits until that is certain.
    """

    folder: Path
    partition: int
    clock: Callable[[], float] = time.monotonic
    wait: Callable[[float], None] = time.sleep
    _token: str = field(default_factory=lambda: uuid4().hex)
    _looked_s: float = 0.0

    def take(self) -> float | None:
        """Claim the partition; return the age of the previous claim, None without one.

        Both times are those of the file system, because the clocks of machines may differ.
        """
        make_folder(self.folder)
        try:
            before_s: float | None = self._path.stat().st_mtime
        except FileNotFoundError:
            before_s = None
        new = self._path.with_suffix(f".{self._token}")
        write_new(new, self._token.encode())
        new.replace(self._path)  # atomic for readers
        self._looked_s = self.clock()
        return None if before_s is None else self._path.stat().st_mtime - before_s

    def outwait(self, age_s: float | None, fence_s: float) -> None:
        """Wait until the broker refuses all messages that the previous task may still send.

        Its claim was renewed *age_s* ago, and brokers refuse messages older than *fence_s*.
        With 0 they refuse none, and waiting would not help.
        """
        if fence_s and age_s is not None and (left_s := fence_s + _LOOK_S - age_s) > 0:
            self.wait(left_s)

    def renew(self) -> None:
        """Check the claim, unless it was checked within the last half second."""
        if self.clock() - self._looked_s > _LOOK_S:
            self.check()

    def check(self) -> None:
        """Renew the claim. Raise `EngineError` if another task has claimed the partition."""
        if self._path.read_text() != self._token:
            raise EngineError(
                f"another task has taken over partition {self.partition}; this one was "
                "presumed dead"
            )
        os.utime(self._path)
        self._looked_s = self.clock()

    @property
    def _path(self) -> Path:
        return self.folder / f"{self.partition}.claim"
