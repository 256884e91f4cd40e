"""Messages between relays, which run in Spark's tasks, and the host of their part.

A relay sends `RelayHello`, then `RowsMessage` within the credit of `Grant`, and `AllRead` at
the end of its batch. The host sends `Results` as they leave, and `Finished` once the cut is on
disk.
"""

from collections.abc import Iterable, Iterator

import msgspec

from sojourn.spark.wire.processor import Waits
from sojourn.spark.wire.record import Partition, Record, Root
from sojourn.spark.wire.repetitions import Provenance


class RelayHello(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The first message of a relay, which is a task of a batch."""

    run: str
    """The run of the query."""
    batch: int
    """The batch of that run."""
    stage: int
    """The stage of Spark that the task belongs to."""
    partition: int = 0
    """The number of the task in its stage; a retry of a lost task has the same number."""
    query: str = ""
    """The id in the checkpoint of the query; empty if unknown."""


class Row(msgspec.Struct, array_like=True, frozen=True):
    """A record that Spark has read from Kafka."""

    partition: Partition
    offset: int
    record: Record
    keys: dict[str, str | None] = {}
    """Its keys for the operators that read it by key, by operator."""
    only: str | None = None
    """The operator that a retry is for, empty if not in this part; None if not a retry."""
    refused: tuple[str, str] | None = None
    """The projection before the part that could not read it, and the error."""
    provenance: Provenance | None = None
    """Identifies duplicates; None where the part drops none."""
    null: bool = False
    """Whether the message has no value."""


class RowsMessage(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """Records that Spark has read, within the credit of the relay.

    When its batch has lasted long enough, a relay sends the rest without credit.
    """

    rows: list[Row]


class AllRead(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """All records of the batch were sent."""


class Heartbeat(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """Sent every second, also while the relay waits for Spark or for credit."""


class Grant(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """More credit: the number of additional rows that the relay may send."""

    number: int


class Ends(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The end offsets of partitions with a large backlog."""

    ends: list[tuple[Partition, int]]


class DeadResult(msgspec.Struct, array_like=True, frozen=True):
    """A record that *operator* could not process."""

    operator: str
    record: Record
    error: str
    traceback: str
    tries: int
    inner: bool = False
    """Whether the record was never in Kafka."""

    @property
    def size_bytes(self) -> int:
        return self.record.size_bytes + len(self.error) + len(self.traceback)


class Results(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """Records and dead letters that leave the part, each with its root and floor.

    The results of all roots of that partition below the floor are committed.
    """

    records: list[tuple[Record, Root, int]] = []
    letters: list[tuple[DeadResult, Root, int]] = []


class Finished(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The cut of the batch is on disk, so the relay may end."""


class Failed(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The relay must fail, for example because a later attempt has begun."""

    reason: str


FromRelay = RelayHello | RowsMessage | AllRead | Heartbeat | Waits
ToRelay = Grant | Ends | Results | Finished | Failed


def with_rows_together(messages: Iterable[FromRelay]) -> Iterator[FromRelay]:
    """Yield messages in order, with consecutive `RowsMessage` merged into one.

    Merged rows are processed together, and logged with one write.

    >>> row = Row(("lines", 0), 7, Record("lines/0/7", b""))
    >>> came = [RowsMessage([row]), RowsMessage([row, row]), AllRead(), RowsMessage([row])]
    >>> together = list(with_rows_together(came))
    >>> [len(each.rows) if isinstance(each, RowsMessage) else each for each in together]
    [3, AllRead(), 1]
    """
    rows: list[Row] = []
    for message in messages:
        if isinstance(message, RowsMessage):
            rows += message.rows
            continue
        if rows:
            yield RowsMessage(rows)
            rows = []
        yield message
    if rows:
        yield RowsMessage(rows)
