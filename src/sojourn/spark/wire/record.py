"""A record, as relays, hosts, agents and processors exchange it, and its size in Kafka.

Kafka refuses a message above its limit, however often it is retried.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

MOST_BYTES = 1 << 20
"""The default limit of Kafka's clients (`max.request.size`) and brokers."""

# As estimated by the Java client: a batch of one record, and the lengths of its parts.
_MESSAGE, _HEADER = 61 + 21 + 15, 10
# The prefix of the name of a binary column in its header, and more.
_BLOB = 32

Partition = tuple[str, int]
"""A topic and a partition number."""


class Root(NamedTuple):
    """The record from which others derive, by its position in Kafka."""

    partition: Partition
    offset: int


# A part has many records and they form no cycles, so the garbage collector need not track them.
class Record(msgspec.Struct, array_like=True, frozen=True, gc=False):
    name: str
    """Its unique id, which stays the same when it is processed again after a failure."""
    payload: bytes
    stream: str = ""
    blobs: dict[str, bytes] = {}
    """Binary columns."""
    key: str | None = None
    """Its key for the operator that reads it; records of one key are processed in order."""
    written_s: float = 0.0
    """When it was written to its stream (Unix time)."""
    everyone: bool = False
    """Whether it is broadcast to all processors of the operator."""
    root: str = ""
    """The id of its root."""
    birth_s: float = 0.0
    """The birth of its root."""
    traced: int = 0
    """The number of roots that its own stands for; 0 if not traced."""
    room: int = 0
    """The maximum size of a record that it sends to Kafka; 0 if unknown."""
    position: str = ""
    """The topic, partition and offset that it, or its ancestor in Kafka, was read from."""
    message_key: bytes | None = None
    """The Kafka key, which derived records inherit."""
    others: tuple[tuple[str, bytes], ...] = ()
    """Kafka headers that Sojourn did not set."""

    @property
    def size_bytes(self) -> int:
        if not (self.blobs or self.key or self.message_key or self.others):
            return len(self.payload)  # the usual case, asked several times for each record
        return (
            len(self.payload)
            + sum(map(len, self.blobs.values()))
            + len(self.key or "")
            + len(self.message_key or b"")
            + sum(len(name) + len(value) for name, value in self.others)
        )


class Reminded(msgspec.Struct, frozen=True):
    """The payload of a reminder that is due."""

    key: str
    note: str
    due_s: float


def reminder_key(payload: bytes) -> str | None:
    """Return the key in the payload of a reminder; None if it cannot be decoded."""
    try:
        return msgspec.json.decode(payload, type=Reminded).key
    except msgspec.MsgspecError:
        return None


def message_bytes(
    key: bytes | None, value: bytes, headers: Iterable[tuple[str, bytes]] = ()
) -> int:
    """Return an upper bound of the size of a message.

    >>> message_bytes(b"k", b"value", [("name", b"content")])
    124
    """
    beside = sum(_HEADER + len(name.encode()) + len(content) for name, content in headers)
    return _MESSAGE + len(key or b"") + len(value) + beside


def blobs_bytes(blobs: Mapping[str, bytes]) -> int:
    """Return an upper bound of the size of binary columns as headers."""
    return sum(_BLOB + len(name.encode()) + len(content) for name, content in blobs.items())
