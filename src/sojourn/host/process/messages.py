"""What the host and its processors say to each other.

Frames are a length and a message in MessagePack. All of it stays on one machine.
"""

from collections.abc import Mapping, Sequence
from struct import Struct as Layout

import msgspec

__all__ = [
    "PREFIX_BYTES",
    "Answer",
    "Assignment",
    "Done",
    "Frames",
    "FromProcessor",
    "NotReady",
    "OutputRecord",
    "Ready",
    "Record",
    "Result",
    "Waits",
    "framed",
]

_LENGTH = Layout("!I")
PREFIX_BYTES = _LENGTH.size
"""What a frame has before its message."""
_encoder = msgspec.msgpack.Encoder()


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


class OutputRecord(msgspec.Struct, array_like=True, frozen=True):
    """A record that an operator sends to a stream.

    *keys* are those by which operators of the same part read it, by their names.
    """

    stream: str
    payload: bytes
    blobs: dict[str, bytes] = {}
    keys: dict[str, str | None] = {}

    @property
    def size_bytes(self) -> int:
        """What it carries."""
        blobs = self.blobs
        return len(self.payload) + (sum(map(len, blobs.values())) if blobs else 0)


class Answer(msgspec.Struct, array_like=True, frozen=True):
    """What became of a record: what it sends on, or why it is a dead letter.

    Of a dead letter *traceback* is where the function raised, and *tries* how often. *state*
    is what its key has from now on, if that has changed; empty if it has none any more.
    *reminders* are asked for, for its key: after how many seconds, and a note.
    """

    outputs: Sequence[OutputRecord] = ()
    dead: str = ""
    traceback: str = ""
    tries: int = 0
    state: bytes | None = None
    reminders: Sequence[tuple[float, str]] = ()


class Ready(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A processor can take its first record."""

    pid: int


class NotReady(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A processor's set-up raised, and it ends."""

    error: str
    traceback: str = ""


class Assignment(msgspec.Struct, array_like=True, frozen=True):
    """What a processor is to do next, one after the other, with the *states* of the keys."""

    records: list[Record]
    states: Mapping[str, bytes] | None = None


class Result(msgspec.Struct, array_like=True, frozen=True):
    """What a record came to: outputs, or the error that was raised, and where.

    One is *skipped* if another of its key, given with it, failed before it. *state* is that of
    its key from now on, if it has changed, and *reminders* are what was asked for.
    """

    outputs: list[OutputRecord]
    error: str = ""
    took_s: float = 0.0
    cpu_s: float = 0.0
    traceback: str = ""
    skipped: bool = False
    state: bytes | None = None
    reminders: list[tuple[float, str]] = []


class Done(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A processor is done with so many of what it was given, in order."""

    results: list[Result]


class Waits(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A processor or a relay cannot go on with a record until something outside answers."""

    reason: str


FromProcessor = Ready | NotReady | Done | Waits


def framed(message: msgspec.Struct) -> bytes:
    """Return *message* as a frame."""
    body = _encoder.encode(message)
    return _LENGTH.pack(len(body)) + body


class Frames:
    """Bytes as they come in, cut into frames.

    >>> frames = Frames()
    >>> one = framed(Ready(3))
    >>> list(frames.fed(one[:3])), [len(body) for body in frames.fed(one[3:] + one)]
    ([], [8, 8])
    """

    def __init__(self) -> None:
        self._buffer = bytearray()

    def fed(self, some: bytes | memoryview) -> list[bytes]:
        """Return the frames that *some* more bytes complete."""
        buffer = self._buffer
        if buffer:
            buffer += some
            some = memoryview(buffer)
        frames: list[bytes] = []
        start, end = 0, len(some)
        while (begin := start + _LENGTH.size) <= end:
            (length,) = _LENGTH.unpack_from(some, start)
            if begin + length > end:
                break
            start = begin + length
            frames.append(bytes(some[begin:start]))
        if not buffer:  # most often: whole frames come, and nothing is copied twice
            buffer += some[start:]
        elif start:
            self._buffer = bytearray(some[start:])
        return frames
