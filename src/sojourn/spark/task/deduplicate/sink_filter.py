"""One batch of one partition on its way to a sink: what of it is not there yet.

What comes again in the stream is told by what was read of it before, which is kept in files
(`sojourn.spark.wire.repetitions`). An attempt that fails has written some of what it has read,
and nobody knows how much: the next one reads that from the sink itself. It may end earlier, so
what is ahead of it is kept for the batches that follow.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from sojourn.errors import EngineError
from sojourn.files.private_files import make_folder, write_new
from sojourn.spark.task.deduplicate.sink_memory import SavedMemory, SinkMemory
from sojourn.spark.task.deduplicate.sink_topic import SinkTopic
from sojourn.spark.wire.headers import ID, identity_of, is_retry, root_of
from sojourn.spark.wire.repetitions import Memory, Repetitions
from sojourn.spark.wire.signed_inputs import SignedInputs

__all__ = ["Claim", "Passage", "Rules"]

Row = dict[str, Any]
"""The columns of a message, by name."""

_LOOK_S = 0.5


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


@dataclass(slots=True)
class Claim:
    """The claim of one task on a *partition*, in *folder*; the times are those of *clock*.

    A machine that is cut off the network seems dead, and another task takes over. When it is
    connected again, the first task is still there, and so is what its Kafka client has not
    sent. The claim on a partition, a file in the shared folder, ends such a task: it looks
    before it passes anything on, at most half a second after the last look. What its client
    still holds is refused by the broker (`message.timestamp.before.max.ms`), and whoever takes
    over waits until that is certain.
    """

    folder: Path
    partition: int
    clock: Callable[[], float] = time.monotonic
    wait: Callable[[float], None] = time.sleep
    _token: str = field(default_factory=lambda: uuid4().hex)
    _looked_s: float = 0.0

    def take(self) -> float | None:
        """Claim the partition; return how long ago the claim before was renewed.

        None if nobody has claimed it before. The time is that of the file system: machines
        may have different clocks.
        """
        make_folder(self.folder)
        try:
            before_s: float | None = self._path.stat().st_mtime
        except FileNotFoundError:
            before_s = None
        new = self._path.with_suffix(f".{self._token}")
        write_new(new, self._token.encode())
        new.replace(self._path)  # nobody reads half of it
        self._looked_s = self.clock()
        return None if before_s is None else self._path.stat().st_mtime - before_s

    def outwait(self, age_s: float | None, fence_s: float) -> None:
        """Wait until the broker refuses all that the task before may still send.

        Its claim was renewed *age_s* ago, and brokers refuse what is older than *fence_s*; 0
        if they do not, and there is nothing to wait for.
        """
        if fence_s and age_s is not None and (left_s := fence_s + _LOOK_S - age_s) > 0:
            self.wait(left_s)

    def renew(self) -> None:
        """Look whether the claim still holds, unless that was seen just now."""
        if self.clock() - self._looked_s > _LOOK_S:
            self.check()

    def check(self) -> None:
        """Raise `EngineError` if another task has claimed the partition since."""
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
