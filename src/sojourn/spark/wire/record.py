"""A record, as all processes of an application have it."""

from typing import NamedTuple

import msgspec

__all__ = ["Partition", "Record", "Root"]

Partition = tuple[str, int]
"""A topic and the number of a partition of it."""


class Root(NamedTuple):
    """The record of a source that others come of, by its place in Kafka."""

    partition: Partition
    offset: int


# Records cannot refer to themselves, and a part has many: the garbage collector passes by.
class Record(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A record on its way to a processor.

    *name* is its id: the same when it is worked on again after a failure, and no other's.
    *blobs* are binary columns, *key* is what it is served in order with, *written_s* is when
    it was written to its stream. *traced* is the number of roots that its own, born at
    *birth_s*, stands for; 0 of one that is not followed. *place* is the topic, partition and
    offset that it, or the record that it came of, was read from. Of the message that was read
    there are its key, which what comes of it has too, and the headers of *others*. What it
    sends to Kafka has *room* for so many bytes; 0 where that is not known.
    """

    name: str
    payload: bytes
    stream: str = ""
    blobs: dict[str, bytes] = {}
    key: str | None = None
    written_s: float = 0.0
    everyone: bool = False
    root: str = ""
    birth_s: float = 0.0
    traced: int = 0
    room: int = 0
    place: str = ""
    message_key: bytes | None = None
    others: tuple[tuple[str, bytes], ...] = ()

    @property
    def size_bytes(self) -> int:
        """What it carries: payload, binary columns, keys and headers."""
        if not (self.blobs or self.key or self.message_key or self.others):
            return len(self.payload)  # most often: it is asked several times for each record
        return (
            len(self.payload)
            + sum(map(len, self.blobs.values()))
            + len(self.key or "")
            + len(self.message_key or b"")
            + sum(len(name) + len(value) for name, value in self.others)
        )
