"""Which records of a stream are repetitions: told by their ids, from one partition of it.

A part repeats a batch that was not committed. A record that left it says which record had
entered, and the *floor* of that one's partition (`Input`): whatever comes of records below was
written before. So ids are kept from the highest floor that was seen on, and what comes of a
record below it is a repetition. Floors rise between batches, and a batch is written before the
next begins: no order within one is relied on.

What has no such header is compared with the last ids. So are records whose ids do not come of
what entered the part: those that a producer has named, or another part, or that were put back
in may enter twice.

All of this follows from the records up to some offset, whoever reads them, and how often.
"""

from collections.abc import Collection, Sequence
from itertools import count
from typing import Self

import msgspec

__all__ = ["FromPartition", "Input", "Memory", "Provenance", "RecentIds", "Repetitions"]


class Input(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """The record that entered a part, of which a record that leaves it comes.

    *topic* is as ids of its roots begin. *floor* is the lowest offset of the partition that
    was open in the last committed cut: what comes of records below it was written before that
    cut was committed.
    """

    topic: str
    partition: int
    offset: int
    floor: int

    @property
    def place(self) -> str:
        """Where it was, as the id of a root that has no other.

        >>> Input(topic="lines@Xk3f9a2B-5f0c9e1a", partition=0, offset=7, floor=5).place
        'lines@Xk3f9a2B-5f0c9e1a/0/7'
        """
        return f"{self.topic}/{self.partition}/{self.offset}"


class Provenance(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """Of a record of the stream: its id, that of its *root*, and what it comes of.

    It is *unnamed* if its id is its place in the stream, where nothing comes twice.
    """

    identity: str
    root: str | None = None
    entered: Input | None = None
    unnamed: bool = False


class FromPartition(msgspec.Struct, array_like=True):
    """What came of the records of one partition: *ids*, with the offset, from *floor* on."""

    topic: str
    partition: int
    floor: int = 0
    ids: dict[str, int] = {}

    def adds(self, identity: str, entered: Input) -> bool:
        """Return whether an id was not seen before, and remember it."""
        if entered.offset < self.floor:
            return False
        if entered.floor > self.floor:
            self.floor = entered.floor
            self.ids = {name: at for name, at in self.ids.items() if at >= self.floor}
        if identity in self.ids:
            return False
        self.ids[identity] = entered.offset
        return True


class RecentIds(msgspec.Struct, array_like=True):
    """The ids of the last records, by their place among all, of which *passed* have come.

    >>> recent, seen = RecentIds.of(["x", "a"]), []
    >>> for identity in ("b", "a", "c", "b", "a"):
    ...     seen.append(recent.knows(identity, 2))
    ...     if not seen[-1]:
    ...         recent.passes(identity, 2)
    >>> seen
    [False, True, False, True, False]
    """

    passed: int = 0
    ids: dict[str, int] = {}

    @classmethod
    def of(cls, ids: Sequence[str]) -> Self:
        """Return records that have come, the last one last."""
        return cls(len(ids), dict(zip(ids, count(1), strict=False)))

    def knows(self, identity: str, window: int) -> bool:
        """Tell whether an id is among those of the last *window* records."""
        place = self.ids.get(identity)
        return place is not None and place > self.passed - window

    def passes(self, identity: str | None, window: int) -> None:
        """Count a record, and remember its id if it is given."""
        self.passed += 1
        if identity is not None:
            self.ids[identity] = self.passed
        if self.passed % window == 0:  # seldom: all are looked at
            self.ids = {name: n for name, n in self.ids.items() if n > self.passed - window}


class Memory(msgspec.Struct, array_like=True):
    """What is kept of a stream that was read up to some offset."""

    partitions: list[FromPartition] = []
    recent: RecentIds = msgspec.field(default_factory=RecentIds)


class Repetitions:
    """Tells what is new among the records of one partition of a stream.

    What parts say is believed of the topics in *inputs* alone, if they are given: somebody who
    copies records from elsewhere may mix them up, and then what is new would be taken for a
    repetition.
    """

    def __init__(self, window: int, inputs: Collection[str] | None, memory: Memory) -> None:
        self._window, self._inputs = window, inputs
        self._recent = memory.recent
        self._partitions = {
            (known.topic, known.partition): known
            for known in memory.partitions
            if inputs is None or known.topic in inputs  # others were made anew
        }

    @property
    def memory(self) -> Memory:
        """What to go on from."""
        return Memory(list(self._partitions.values()), self._recent)

    def copied(self) -> Memory:
        """Return what to go on from, as it is now."""
        return Memory(
            [
                FromPartition(known.topic, known.partition, known.floor, dict(known.ids))
                for known in self._partitions.values()
            ],
            RecentIds(self._recent.passed, dict(self._recent.ids)),
        )

    def is_new(self, arrived: Provenance) -> bool:
        """Return whether a record comes for the first time, and remember it."""
        new = not self._recent.knows(arrived.identity, self._window)
        named, entered = not arrived.unnamed, arrived.entered
        if entered is not None and (self._inputs is None or entered.topic in self._inputs):
            place = entered.topic, entered.partition
            known = self._partitions.setdefault(place, FromPartition(*place))
            new = known.adds(arrived.identity, entered) and new
            named = arrived.root != entered.place
        if new:
            self._recent.passes(arrived.identity if named else None, self._window)
        return new
