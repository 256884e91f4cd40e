"""One batch of one partition on its way to a sink: what of it is not there yet.

What comes again in the stream is told by what was read of it before, which is kept in files
(`sojourn.spark.wire.repetitions`). An attempt that fails has written some of what it has read,
and nobody knows how much: the next one reads that from the sink itself. It may end earlier, so
what is ahead of it is kept for the batches that follow.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sojourn.spark.task.deduplicate.claim import Claim
from sojourn.spark.task.deduplicate.sink_memory import SavedMemory, SinkMemory
from sojourn.spark.task.deduplicate.sink_topic import SinkTopic
from sojourn.spark.wire.headers import ID, identity_of, is_retry, root_of
from sojourn.spark.wire.repetitions import Memory, Repetitions
from sojourn.spark.wire.signed_inputs import SignedInputs

__all__ = ["Passage", "Rules"]

Row = dict[str, Any]
"""The columns of a message, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How records are recognised.

    A record without an id gets that of its place, which begins with *roots*. Duplicates of the
    application's own writers are recognised by *inputs*; ids that producers gave are compared
    with the last *window*. Brokers refuse what comes to the sink later than *fence_s* after it
    was sent; 0 if they do not.
    """

    window: int
    fence_s: float = 0.0
    inputs: SignedInputs = field(default_factory=SignedInputs)
    roots: str | None = None


class Passage:
    """What one batch reads of a partition, from the row *first* on."""

    def __init__(self, rules: Rules, sink: SinkTopic, files: SinkMemory, first: Row) -> None:
        self._rules, self._sink, self._files = rules, sink, files
        self._partition, self._next = first["partition"], first["offset"]
        self._claim = Claim(files.folder, self._partition)
        claimed_s = self._claim.take()
        if files.sink_end(self._partition, self._next) is not None:
            # an attempt failed, and what it has sent may still be on its way to the sink
            self._claim.outwait(claimed_s, rules.fence_s)
        saved = files.load(self._partition, self._next) or self._begun()
        self._repetitions = Repetitions(rules.window, saved.memory, rules.inputs.topics)
        self._ahead = saved.ahead | self._written()

    def _begun(self) -> SavedMemory:
        """Return what the sink alone tells, and keep it: this batch may be repeated."""
        last = self._sink.last(self._partition, self._rules.window)
        begun = SavedMemory(Memory.of(last))
        self._files.save(self._partition, self._next, begun)
        return begun

    def _written(self) -> set[str]:
        """Return what attempts at this batch have written; the first one notes the end."""
        end = self._files.sink_end(self._partition, self._next)
        if end is not None:
            return set(self._sink.since(self._partition, end))
        end = self._sink.end(self._partition)
        self._files.note_sink_end(self._partition, self._next, end)
        return set()

    def new(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows that are not at the sink yet, with their ids.

        Raise `EngineError` if another task reads this partition by now.
        """
        self._claim.renew()
        for row in rows:
            self._next = row["offset"] + 1
            # what is put back in for one operator was here before
            if not is_retry(row["headers"]):
                yield from self._new(row)

    def _new(self, row: Row) -> Iterator[Row]:
        identity, given = identity_of(row["headers"]), True
        if identity is None:
            # as Spark's own aggregations write them, or producers
            if self._rules.roots is None:
                yield row
                return
            identity, given = f"{self._rules.roots}/{row['partition']}/{row['offset']}", False
            named = {"key": ID, "value": identity.encode()}
            row = {**row, "headers": [*(row["headers"] or ()), named]}
        root = root_of(row["headers"]) or identity
        arrived = self._rules.inputs.provenance(identity, root, row["headers"], given=given)
        if arrived is None or self._repetitions.is_new(arrived):
            if identity in self._ahead:
                self._ahead.remove(identity)
            else:
                yield row

    def save(self) -> None:
        """Keep what is known now; Spark commits the batch only after that."""
        self._claim.check()
        known = SavedMemory(self._repetitions.memory, self._ahead)
        self._files.save(self._partition, self._next, known)
