"""What a desk tells the host to do."""

from dataclasses import dataclass

from sojourn.host.messages import Answer, Record

__all__ = [
    "Fail",
    "Finish",
    "Give",
    "Grant",
    "Instruction",
    "Kill",
    "Reply",
    "Start",
]


@dataclass(frozen=True, slots=True)
class Give:
    """Let a processor work on records, one after the other."""

    processor: int
    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class Start:
    """Start a processor; it is counted once it is ready."""

    processor: int


@dataclass(frozen=True, slots=True)
class Kill:
    """End a processor that has nothing to do, or takes too long."""

    processor: int


@dataclass(frozen=True, slots=True)
class Grant:
    """Let a feed send so many records more."""

    feed: int
    number: int


@dataclass(frozen=True, slots=True)
class Reply:
    """Tell a feed, if it is there, what became of a record.

    *record* is None where that was remembered.
    """

    feed: int
    answer: Answer
    record: Record | None = None


@dataclass(frozen=True, slots=True)
class Fail:
    """Tell a feed that a record stops the application, and where its function raised."""

    feed: int
    record: Record
    reason: str
    traceback: str = ""


@dataclass(frozen=True, slots=True)
class Finish:
    """Tell a feed that all its records are answered."""

    feed: int


Instruction = Give | Start | Kill | Grant | Reply | Fail | Finish
