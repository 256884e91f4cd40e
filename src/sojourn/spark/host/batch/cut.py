"""A cut: the open records of a part at the end of a batch, as they are kept on disk."""

from typing import NamedTuple

import msgspec

from sojourn.spark.host.state.part_clock import ClockReading
from sojourn.spark.wire.record import Partition, Record, Root
from sojourn.spark.wire.repetitions import Memory


class CutId(NamedTuple):
    """The identity of a cut: its batch, and the attempt that made it."""

    batch: int
    attempt: int


class OpenRecord(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A record that waits for an operator, or is being processed by it."""

    root: Root
    operator: str
    record: Record
    number: int = 0
    """Unique in the part, in order of arrival; ids come from producers and may repeat."""

    @property
    def key(self) -> str | None:
        """The key whose records are processed in order."""
        return self.record.key


class Segment(msgspec.Struct, array_like=True, frozen=True):
    """Spilled records of an operator, in one file."""

    operator: str
    name: str
    records: int
    bytes: int
    lowest: dict[Partition, int]
    """Lowest offset of their roots, by partition."""


class Cut(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """The open records, offsets and states of a part at one moment.

    It has no results: those handed over before the cut are written before Spark commits its
    batch, and later ones derive from records that are open in it.
    """

    id: CutId
    taken: dict[Partition, int]
    """Next offset to take, by partition."""
    open: tuple[OpenRecord, ...] = ()
    """Records in memory, in order of arrival."""
    latest: dict[str, tuple[Record, ...]] = {}
    """Broadcast records for processors that start later, by operator."""
    spilled: tuple[Segment, ...] = ()
    """Records on disk, which are open too, and arrived after those in memory."""
    changed: tuple[CutId, ...] = ()
    """Cuts whose changes of states are not in the store, the oldest first."""
    known: dict[Partition, Memory] = {}
    """Memory of each partition by which repeated records are recognised."""
    reminded: dict[Partition, int] = {}
    """Number of the next reminder, by partition; all before it are done or open."""
    numbered: int = 0
    """Number of the last record."""
    clock: ClockReading | None = None
    """When the cut was made."""
    merged: int = -1
    """The store had all states up to this batch; it never has less again."""
    store_bytes: int = 0
    """Size of the store, which never shrinks."""


def floors(cut: Cut) -> dict[Partition, int]:
    """Return the offset, by partition, below which all roots were done and had left.

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
