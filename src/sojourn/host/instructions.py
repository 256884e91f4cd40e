"""What a desk tells the host to do."""

from dataclasses import dataclass

from sojourn.host.messages import Answer, Record

__all__ = [
    "Fail",
    "Finish",
    "Give",
    "Grant",
    "Instruction",
    "Keep",
    "KillProcessor",
    "NotKept",
    "Reply",
    "StartProcessor",
]


@dataclass(frozen=True, slots=True)
class Give:
    """Let a processor work on records, one after the other.

    Those that it only has to know are not *new*: what it makes of them is nobody's.
    """

    processor: int
    records: tuple[Record, ...]
    new: bool = True


@dataclass(frozen=True, slots=True)
class StartProcessor:
    """Start a processor; it is counted once it is ready."""

    processor: int


@dataclass(frozen=True, slots=True)
class KillProcessor:
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


@dataclass(frozen=True, slots=True)
class Keep:
    """Write down a record that processors that start later will get."""

    record: Record


@dataclass(frozen=True, slots=True)
class NotKept:
    """Say that processors that start later will not get a record, and why."""

    record: Record
    reason: str


Instruction = (
    Give | StartProcessor | KillProcessor | Grant | Reply | Fail | Finish | Keep | NotKept
)
