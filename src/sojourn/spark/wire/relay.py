"""What relays, which run in Spark's tasks, and the host of a part say to each other."""

from collections.abc import Iterable, Iterator

import msgspec

from sojourn.spark.wire.processor import Waits
from sojourn.spark.wire.record import Partition, Record, Root
from sojourn.spark.wire.repetitions import Provenance

__all__ = [
    "AllRead",
    "DeadLetter",
    "Ends",
    "Failed",
    "Finished",
    "FromRelay",
    "Grant",
    "Heartbeat",
    "RelayHello",
    "Results",
    "Row",
    "Rows",
    "ToRelay",
    "with_rows_together",
]


class RelayHello(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A relay begins, in a batch of one run of the query, as a task of a *stage* of Spark.

    Spark numbers the tasks of a stage by *partition*. It runs one again with the same number if
    it believes the first to be lost. *query* is the id of the checkpoint of the query, if it is
    known.
    """

    run: str
    batch: int
    stage: int
    partition: int = 0
    query: str = ""


class Row(msgspec.Struct, array_like=True, frozen=True):
    """A record as Spark has read it, and the keys by which operators read it.

    It is for *only* one operator if it was put back in for that; for none if that is of
    another part or application. One that a projection before the part could not read was
    *refused*: by which, and why. Where records may come twice, *provenance* tells them apart.
    The value of a message may be *null*.
    """

    partition: Partition
    offset: int
    record: Record
    keys: dict[str, str | None] = {}
    only: str | None = None
    refused: tuple[str, str] | None = None
    provenance: Provenance | None = None
    null: bool = False


class Rows(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """What Spark has read, no more than there is credit for."""

    rows: list[Row]


class AllRead(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """Spark reads no more in this batch."""


class Heartbeat(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The relay lives, whatever it waits for; it says so every second."""


class Grant(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The relay may hand over so many rows more."""

    number: int


class Ends(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """Partitions of which many records wait, and the offset at which each ends."""

    ends: list[tuple[Partition, int]]


class DeadLetter(msgspec.Struct, array_like=True, frozen=True):
    """A record that *operator* could not do, and why; *inner* if it never was in Kafka."""

    operator: str
    record: Record
    error: str
    traceback: str
    tries: int
    inner: bool = False

    @property
    def size_bytes(self) -> int:
        """What it takes in memory, about."""
        return self.record.size_bytes + len(self.error) + len(self.traceback)


class Results(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """Records and dead letters that leave: each with the root that it came of, and its floor.

    All roots of that partition below the floor have left for good.
    """

    records: list[tuple[Record, Root, int]] = []
    letters: list[tuple[DeadLetter, Root, int]] = []


class Finished(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The relay may end: the cut of its batch is on disk."""


class Failed(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The relay has to fail: its batch or attempt is over, or a record stops it all."""

    reason: str


FromRelay = RelayHello | Rows | AllRead | Heartbeat | Waits
ToRelay = Grant | Ends | Results | Finished | Failed


def with_rows_together(messages: Iterable[FromRelay]) -> Iterator[FromRelay]:
    """Yield messages in order, and rows that follow each other as if they came in one.

    They are decided together, and logged with one write.

    >>> row = Row(("lines", 0), 7, Record("lines/0/7", b""))
    >>> came = [Rows([row]), Rows([row, row]), AllRead(), Rows([row])]
    >>> together = list(with_rows_together(came))
    >>> [len(each.rows) if isinstance(each, Rows) else each for each in together]
    [3, AllRead(), 1]
    """
    rows: list[Row] = []
    for message in messages:
        if isinstance(message, Rows):
            rows += message.rows
            continue
        if rows:
            yield Rows(rows)
            rows = []
        yield message
    if rows:
        yield Rows(rows)
