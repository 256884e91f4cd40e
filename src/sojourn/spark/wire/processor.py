"""Messages between a host and its processors."""

from collections.abc import Mapping, Sequence

import msgspec

from sojourn.spark.wire.record import Record

__all__ = [
    "Answer",
    "Assignment",
    "Done",
    "FromProcessor",
    "NotReady",
    "OutputRecord",
    "Ready",
    "Result",
    "Waits",
]


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
