"""Messages between a processor and its host, or the agent of its node."""

from collections.abc import Mapping, Sequence

import msgspec

from sojourn.spark.wire.record import Record


class OutputRecord(msgspec.Struct, array_like=True, frozen=True):
    """A record that an operator sends to a stream."""

    stream: str
    payload: bytes
    blobs: dict[str, bytes] = {}
    """Binary columns."""
    keys: dict[str, str | None] = {}
    """Its keys for the operators of the same part that read it by key, by operator."""

    @property
    def size_bytes(self) -> int:
        blobs = self.blobs
        return len(self.payload) + (sum(map(len, blobs.values())) if blobs else 0)


class Answer(msgspec.Struct, array_like=True, frozen=True):
    """The final outcome of a record, after retries: outputs, or a dead letter.

    Hosts make it; it is not sent.
    """

    outputs: Sequence[OutputRecord] = ()
    dead: str = ""
    """The error of a dead letter; empty if the record succeeded."""
    traceback: str = ""
    tries: int = 0
    """How often the function was called before the record became a dead letter."""
    state: bytes | None = None
    """The new state of its key; empty if it was deleted, None if unchanged."""
    reminders: Sequence[tuple[float, str]] = ()
    """Reminders requested for its key: delay in seconds, and note."""


class Ready(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A processor can take its first record."""

    pid: int


class NotReady(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A processor's set-up raised, and it ends."""

    error: str
    traceback: str = ""


class Assignment(msgspec.Struct, array_like=True, frozen=True):
    """Records that a processor must process in order."""

    records: list[Record]
    states: Mapping[str, bytes] | None = None
    """The states of their keys; None if the operator keeps no state."""


class Result(msgspec.Struct, array_like=True, frozen=True):
    """The result of one call of the function: outputs, or an error."""

    outputs: list[OutputRecord]
    error: str = ""
    took_s: float = 0.0
    """Wall-clock time of the call."""
    cpu_s: float = 0.0
    traceback: str = ""
    skipped: bool = False
    """Whether it was not processed because an earlier record of its key failed."""
    state: bytes | None = None
    """The new state of its key; None if unchanged."""
    reminders: list[tuple[float, str]] = []
    """Reminders requested for its key: delay in seconds, and note."""


class Done(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The results of the next records of an assignment, in order."""

    results: list[Result]


class Waits(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A processor or a relay waits for an external service, such as a schema registry."""

    reason: str


FromProcessor = Ready | NotReady | Done | Waits
