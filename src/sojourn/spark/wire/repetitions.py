"""Deduplication of one partition of a stream.

A query replays the records of a batch that it has not committed. Each record that it writes
carries an `Input`: the writer, the input offset that it derives from, and a *floor*, the offset
below which this writer had written everything before its last commit. So a reader remembers
only the ids from the highest floor it has seen on; a record from below the floor is a
duplicate. Floors rise only between batches, and a batch is written before the next one begins,
so no order within a batch is assumed.

Each writer has floors of its own: two parts that read the same topic are at different offsets.
A query of Spark's own passes on the inputs of the record it reads and appends its own; each of
them is checked, the nearest first.

A producer that gives its records ids may send one again at another offset. These ids are
compared with a window of the last ones. Ids without a valid input have a window of their own,
so a client that writes the id of a record in advance cannot suppress it.

The result depends only on the records up to some offset, not on which task reads them or how
often.
"""

from collections.abc import Collection, Sequence
from itertools import count
from typing import Self

import msgspec
from msgspec.structs import replace

ID_WINDOW = 100_000
"""The default number of earlier ids that the id from a producer is compared with."""


class Input(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """The record that a *writer* has read, from which it derived another record."""

    writer: str
    """A part or a query."""
    topic: str
    """The topic as in ids of its roots, with its mark."""
    partition: int
    offset: int
    floor: int
    """Output for all offsets below was written before the writer's last commit."""

    @property
    def position(self) -> str:
        """Its position, which is also the default id of a root.

        >>> Input(writer="split", topic="lines@m", partition=0, offset=7, floor=5).position
        'lines@m/0/7'
        """
        return f"{self.topic}/{self.partition}/{self.offset}"


class Provenance(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """The id of a record, and the inputs that it derives from."""

    identity: str
    inputs: tuple[Input, ...] = ()
    """Verified inputs, the nearest writer last."""
    named: bool = False
    """Whether a producer chose its id, or the id of its root."""


class FromPartition(msgspec.Struct, array_like=True):
    """The records that a writer has derived from one partition of its input."""

    writer: str
    topic: str
    partition: int
    floor: int = 0
    """The highest floor seen; records from offsets below are duplicates."""
    ids: dict[str, int] = {}
    """The input offset of each record from the floor on, by offset and id."""

    def adds(self, identity: str, entered: Input) -> bool:
        """Return whether a record is new, and remember it."""
        if entered.offset < self.floor:
            return False
        if entered.floor > self.floor:
            self.floor = entered.floor
            self.ids = {name: at for name, at in self.ids.items() if at >= self.floor}
        # with the offset, so that a copied id on another record suppresses nothing
        name = f"{entered.offset} {identity}"
        if name in self.ids:
            return False
        self.ids[name] = entered.offset
        return True


class RecentIds(msgspec.Struct, array_like=True):
    """The last ids from producers, with the number of each; *passed* counts all of them.

    >>> recent = RecentIds.of(["x", "a"])
    >>> [recent.adds(identity, window=2) for identity in ("b", "a", "c", "b", "a")]
    [True, False, True, False, True]
    """

    passed: int = 0
    ids: dict[str, int] = {}

    @classmethod
    def of(cls, ids: Sequence[str]) -> Self:
        """Return a window that contains *ids*, the latest last."""
        return cls(len(ids), dict(zip(ids, count(1), strict=False)))

    def adds(self, identity: str, window: int) -> bool:
        """Return whether an id is not among the last *window*; if so, remember it."""
        number = self.ids.get(identity)
        if number is not None and number > self.passed - window:
            return False
        self.passed += 1
        self.ids[identity] = self.passed
        if self.passed % window == 0:  # rarely, because this scans all of them
            self.ids = {name: n for name, n in self.ids.items() if n > self.passed - window}
        return True


class Memory(msgspec.Struct, array_like=True):
    """The deduplication state of a partition that was read up to some offset."""

    partitions: list[FromPartition] = []
    named: RecentIds = msgspec.field(default_factory=RecentIds)
    """Ids from producers, of records with inputs."""
    outside: RecentIds = msgspec.field(default_factory=RecentIds)
    """Ids from producers, of records without inputs."""

    @classmethod
    def of(cls, ids: Sequence[str]) -> Self:
        """Return the state after records of which only the ids are known."""
        return cls([], RecentIds.of(ids), RecentIds.of(ids))

    def copied(self) -> "Memory":
        """Return a copy that later records do not change."""
        return Memory(
            [replace(known, ids=known.ids.copy()) for known in self.partitions],
            replace(self.named, ids=self.named.ids.copy()),
            replace(self.outside, ids=self.outside.ids.copy()),
        )


class Repetitions:
    """Detects duplicates among the records of one partition of a stream.

    Ids from producers are compared with the last *window*. State about topics that are not
    among *topics*, if given, is dropped, because these topics were recreated.
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
        """The state to resume from."""
        return Memory(list(self._partitions.values()), self._named, self._outside)

    def is_new(self, arrived: Provenance) -> bool:
        """Return whether a record is no duplicate, and remember it."""
        for entered in reversed(arrived.inputs):
            if not self._of(entered).adds(arrived.identity, entered):
                return False
        if not arrived.named:
            return True
        recent = self._named if arrived.inputs else self._outside
        return recent.adds(arrived.identity, self._window)

    def _of(self, entered: Input) -> FromPartition:
        source = entered.writer, entered.topic, entered.partition
        known = self._partitions.get(source)
        if known is None:
            known = self._partitions[source] = FromPartition(*source)
        return known
