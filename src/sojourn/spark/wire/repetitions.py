"""Which records of a stream are duplicates, judged for one partition of it.

A query repeats the records of a batch that it has not committed. Each record that it writes
carries an `Input`: who wrote it, which offset it comes from, and a *floor*, the offset below
which this writer had written everything before its last commit. So a reader keeps the ids from
the highest floor it has seen; a record from below the floor is a duplicate. Floors rise only
between batches, and a batch is written before the next one begins, so no order within a batch
is assumed.

Each writer has floors of its own: two parts that read the same topic are at different offsets.
A query of Spark's own passes on the inputs of the record it reads and appends its own; each of
them is judged, the nearest first.

A producer that names its records may send one again at another offset. Those are compared with
the last ids of such records. Ids without a valid input are remembered apart: somebody who
writes the id of a record in advance cannot displace it.

The result depends only on the records up to some offset, whoever reads them and how often.
"""

from collections.abc import Collection, Sequence
from itertools import count
from typing import Self

import msgspec

__all__ = [
    "ID_WINDOW",
    "FromPartition",
    "Input",
    "Memory",
    "Provenance",
    "RecentIds",
    "Repetitions",
]

ID_WINDOW = 100_000
"""With so many earlier ids, by default, one that a producer gave is compared."""


class Input(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """The record that entered *writer*, a part or a query, from which another record comes.

    *topic* is written as in the ids of its roots. Everything that comes of records below
    *floor* was written before the writer's last commit.
    """

    writer: str
    topic: str
    partition: int
    offset: int
    floor: int

    @property
    def place(self) -> str:
        """Its position, as the id of a root that no producer has named.

        >>> Input(writer="split", topic="lines@m", partition=0, offset=7, floor=5).place
        'lines@m/0/7'
        """
        return f"{self.topic}/{self.partition}/{self.offset}"


class Provenance(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """Where a record comes from: its id and the verified *inputs*, the nearest writer last.

    It is *named* if a producer chose its id, or that of its root.
    """

    identity: str
    inputs: tuple[Input, ...] = ()
    named: bool = False


class FromPartition(msgspec.Struct, array_like=True):
    """The records that a writer has made of one partition, from offset *floor* on.

    *ids* are offset and id of each, with the offset as the value.
    """

    writer: str
    topic: str
    partition: int
    floor: int = 0
    ids: dict[str, int] = {}

    def adds(self, identity: str, entered: Input) -> bool:
        """Return whether a record is new, and remember it."""
        if entered.offset < self.floor:
            return False
        if entered.floor > self.floor:
            self.floor = entered.floor
            self.ids = {name: at for name, at in self.ids.items() if at >= self.floor}
        # with the offset, so that an id copied to another record displaces none
        name = f"{entered.offset} {identity}"
        if name in self.ids:
            return False
        self.ids[name] = entered.offset
        return True

    def copied(self) -> "FromPartition":
        """Return a copy that later records do not change."""
        return msgspec.structs.replace(self, ids=dict(self.ids))


class RecentIds(msgspec.Struct, array_like=True):
    """The last ids that producers gave, by their order; so many *passed* in all.

    >>> recent = RecentIds.of(["x", "a"])
    >>> [recent.adds(identity, window=2) for identity in ("b", "a", "c", "b", "a")]
    [True, False, True, False, True]
    """

    passed: int = 0
    ids: dict[str, int] = {}

    @classmethod
    def of(cls, ids: Sequence[str]) -> Self:
        """Return ids that have passed, the latest last."""
        return cls(len(ids), dict(zip(ids, count(1), strict=False)))

    def adds(self, identity: str, window: int) -> bool:
        """Return whether an id is not among the last *window*, and remember it then."""
        place = self.ids.get(identity)
        if place is not None and place > self.passed - window:
            return False
        self.passed += 1
        self.ids[identity] = self.passed
        if self.passed % window == 0:  # seldom, because it looks at all of them
            self.ids = {name: n for name, n in self.ids.items() if n > self.passed - window}
        return True

    def copied(self) -> "RecentIds":
        """Return a copy that later records do not change."""
        return RecentIds(self.passed, dict(self.ids))


class Memory(msgspec.Struct, array_like=True):
    """The memory of a partition that was read up to some offset.

    *named* are ids of producers on records with inputs, *outside* on records without any.
    """

    partitions: list[FromPartition] = []
    named: RecentIds = msgspec.field(default_factory=RecentIds)
    outside: RecentIds = msgspec.field(default_factory=RecentIds)

    @classmethod
    def of(cls, ids: Sequence[str]) -> Self:
        """Return the memory of records with these ids, of which nothing else is known."""
        return cls([], RecentIds.of(ids), RecentIds.of(ids))

    def copied(self) -> "Memory":
        """Return a copy that later records do not change."""
        partitions = [known.copied() for known in self.partitions]
        return Memory(partitions, self.named.copied(), self.outside.copied())


class Repetitions:
    """Tells new records of one partition of a stream from duplicates.

    Ids that producers gave are compared with the last *window*. What is remembered of topics
    that are not among *topics*, if those are given, is dropped: they were recreated.
    """

    def __init__(
        self, window: int, memory: Memory, topics: Collection[str] | None = None
    ) -> None:
        self._window = window
        self._named, self._outside = memory.named, memory.outside
        self._partitions = {
            (known.writer, known.topic, known.partition): known
            for known in memory.partitions
            if topics is None or known.topic in topics
        }

    @property
    def memory(self) -> Memory:
        """What to resume from."""
        return Memory(list(self._partitions.values()), self._named, self._outside)

    def is_new(self, arrived: Provenance) -> bool:
        """Return whether a record comes for the first time, and remember it."""
        for entered in reversed(arrived.inputs):
            if not self._of(entered).adds(arrived.identity, entered):
                return False
        if not arrived.named:
            return True
        recent = self._named if arrived.inputs else self._outside
        return recent.adds(arrived.identity, self._window)

    def _of(self, entered: Input) -> FromPartition:
        place = entered.writer, entered.topic, entered.partition
        known = self._partitions.get(place)
        if known is None:
            known = self._partitions[place] = FromPartition(*place)
        return known
