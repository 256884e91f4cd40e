"""What feeds, the host and its processors say to each other.

Frames are a length and a message in MessagePack. All of it stays on one machine.
"""

from collections.abc import Iterator, Sequence
from struct import Struct as Layout

import msgspec

__all__ = [
    "Answer",
    "Answers",
    "Assignment",
    "Credit",
    "Done",
    "End",
    "Failed",
    "Finished",
    "Frames",
    "FromFeed",
    "FromProcessor",
    "Hello",
    "Leave",
    "NotReady",
    "OutputRecord",
    "PassedBy",
    "Ready",
    "Record",
    "Records",
    "Result",
    "Stay",
    "ToFeed",
    "framed",
]

_LENGTH = Layout("!I")
_encoder = msgspec.msgpack.Encoder()


class Record(msgspec.Struct, array_like=True, frozen=True):
    """A record on its way to a processor.

    *number* is the feed's own, *identity* the same when the record comes again after a
    failure, and no other's; *name* is what it is called in the tree of its root. *blobs* are
    binary columns, *written_s* is when it was written to its stream. *traced* is the number of
    roots that its own, born at *birth_s*, stands for; 0 of one that is not followed. *place*
    is its topic, *partition* and *offset*, as people are told. What it sends on has *room* for
    so many bytes; 0 where that is not known.
    """

    number: int
    identity: str
    payload: bytes
    stream: str = ""
    blobs: dict[str, bytes] = {}
    key: str | None = None
    written_s: float = 0.0
    everyone: bool = False
    root: str = ""
    birth_s: float = 0.0
    traced: int = 0
    partition: int = 0
    offset: int = -1
    room: int = 0
    name: str = ""
    place: str = ""

    @property
    def size_bytes(self) -> int:
        """What it carries."""
        return len(self.payload) + sum(map(len, self.blobs.values()))

    @property
    def is_child(self) -> bool:
        """Whether an operator made it of another record."""
        return self.name not in ("", self.root)


class OutputRecord(msgspec.Struct, array_like=True, frozen=True):
    """A record that an operator sends to a stream."""

    stream: str
    payload: bytes
    blobs: dict[str, bytes] = {}

    @property
    def size_bytes(self) -> int:
        """What it carries."""
        return len(self.payload) + sum(map(len, self.blobs.values()))


class Answer(msgspec.Struct, array_like=True, frozen=True):
    """What became of a record: what it sends on, or why it is a dead letter.

    Of a dead letter *traceback* is where the function raised, and *tries* how often.
    """

    number: int
    outputs: Sequence[OutputRecord] = ()
    dead: str = ""
    traceback: str = ""
    tries: int = 0


class Hello(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A feed begins: which partition, in which batch of its query.

    One that goes on *brings* records that were passed on before, to a host that is gone or in
    the batch before, and needs no credit for them; one that begins anew brings None.
    """

    query: str
    partition: int
    batch: int
    brings: int | None = None


class Records(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """Records of a feed, no more than it has credit for."""

    records: list[Record]


class PassedBy(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A record was read and is none of this operator's: nothing is to be done about it."""

    stream: str
    partition: int
    offset: int


class End(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The feed has no more records in this batch."""


class Leave(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The feed ends, and brings what is not answered in its next batch again."""


class Stay(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The feed should wait until everything is answered: there is no next batch."""


class Credit(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The feed may send so many records more."""

    number: int


class Answers(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """What became of some records, in any order."""

    answers: list[Answer]


class Failed(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A record stops the application."""

    number: int
    reason: str


class Finished(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """Every record of the feed is answered, or it leaves."""


class Ready(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A processor can take its first record."""

    pid: int


class NotReady(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A processor's set-up raised, and it ends."""

    error: str
    traceback: str = ""


class Assignment(msgspec.Struct, array_like=True, frozen=True):
    """What a processor is to do next, one after the other."""

    records: list[Record]


class Result(msgspec.Struct, array_like=True, frozen=True):
    """What a record came to: outputs, or the error that was raised, and where.

    One is *skipped* if another of its key, given with it, failed before it.
    """

    outputs: list[OutputRecord]
    error: str = ""
    took_s: float = 0.0
    cpu_s: float = 0.0
    traceback: str = ""
    skipped: bool = False


class Done(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A processor is done with so many of what it was given, in order."""

    results: list[Result]


FromFeed = Hello | Records | PassedBy | End | Leave
ToFeed = Credit | Answers | Failed | Finished | Stay
FromProcessor = Ready | NotReady | Done


def framed(message: msgspec.Struct) -> bytes:
    """Return *message* as a frame."""
    body = _encoder.encode(message)
    return _LENGTH.pack(len(body)) + body


class Frames:
    """Bytes as they come in, cut into frames.

    >>> frames = Frames()
    >>> one = framed(Credit(3))
    >>> list(frames.fed(one[:3])), [len(body) for body in frames.fed(one[3:] + one)]
    ([], [9, 9])
    """

    def __init__(self) -> None:
        self._buffer = bytearray()

    def fed(self, some: bytes) -> Iterator[bytes]:
        """Yield the frames that *some* more bytes complete."""
        self._buffer += some
        start = 0
        while len(self._buffer) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer, start)
            begin = start + _LENGTH.size
            if len(self._buffer) - begin < length:
                break
            yield bytes(self._buffer[begin : begin + length])
            start = begin + length
        del self._buffer[:start]
