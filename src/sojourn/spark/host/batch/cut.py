"""A cut: all that is open in a part at the end of a batch, as it is kept on disk."""

from typing import Any, NamedTuple

import msgspec

from sojourn.spark.host.state.part_clock import ClockReading
from sojourn.spark.wire.record import Partition, Record, Root
from sojourn.spark.wire.repetitions import Memory

__all__ = [
    "Cut",
    "CutId",
    "Leaving",
    "OpenRecord",
    "Segment",
    "floors",
]


class CutId(NamedTuple):
    """The cut of a batch by one attempt at it."""

    batch: int
    attempt: int


class OpenRecord(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A record that *operator* has to do, or is at.

    Its *number* is unique in the part; ids come from producers, and two records may have one.
    """

    root: Root
    operator: str
    record: Record
    number: int = 0

    @property
    def key(self) -> str | None:
        """What it is served in order with."""
        return self.record.key


class Segment(msgspec.Struct, array_like=True, frozen=True):
    """So many records that wait for *operator*, in a file of that *name*.

    *lowest* are the first offsets of the roots that they come of, by partition.
    """

    operator: str
    name: str
    records: int
    bytes: int
    lowest: dict[Partition, int]


class Leaving(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A result that leaves the part."""

    root: Root
    result: Any

    @property
    def size_bytes(self) -> int:
        """What it takes in memory, about."""
        size_bytes: int = self.result.size_bytes
        return size_bytes


class Cut(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """The records that are open, in order of arrival, and the next offsets to take.

    *latest* are the records that operators tell to processors that start later. *spilled*
    records are open as well, and came to their operator after those. The state of keys is that
    of the store, with what had *changed* by these cuts, one after the other. What is *known* of
    partitions tells which of their records come again. *reminded* has the number of the next
    reminder, by partition: those before it are done or open. *numbered* is the last number of a
    record. *clock* is when the cut was made. By then the store had all states up to batch
    *merged*, and so many bytes: it never has less again.

    Results need no place in it: what was given to a relay by then is written before Spark
    commits the batch, and what comes later is of records that are open here.
    """

    id: CutId
    taken: dict[Partition, int]
    open: tuple[OpenRecord, ...] = ()
    latest: dict[str, tuple[Record, ...]] = {}
    spilled: tuple[Segment, ...] = ()
    changed: tuple[CutId, ...] = ()
    known: dict[Partition, Memory] = {}
    reminded: dict[Partition, int] = {}
    numbered: int = 0
    clock: ClockReading | None = None
    merged: int = -1
    store_bytes: int = 0


def floors(cut: Cut) -> dict[Partition, int]:
    """Return the offset, by partition, below which all roots were done, and had left.

    >>> lines = ("lines", 0)
    >>> split = OpenRecord(Root(lines, 7), "split", Record("lines/0/7", b"{}"))
    >>> floors(Cut(id=CutId(3, 1), taken={lines: 9, ("lines", 1): 4}, open=(split,)))
    {('lines', 0): 7, ('lines', 1): 4}
    """
    lowest = {**cut.taken, **cut.reminded}
    opened = [record.root for record in cut.open]
    opened += [Root(*place) for segment in cut.spilled for place in segment.lowest.items()]
    for partition, offset in opened:
        lowest[partition] = min(lowest.get(partition, offset), offset)
    return lowest
