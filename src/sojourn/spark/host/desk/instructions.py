"""What the desk of an operator tells the host to do."""

from collections.abc import Mapping
from dataclasses import dataclass

from sojourn.decide.plan import HERE
from sojourn.spark.host.batch.cut import OpenRecord
from sojourn.spark.wire.processor import Answer
from sojourn.spark.wire.record import Record

__all__ = [
    "Completed",
    "Give",
    "KillProcessor",
    "NotKept",
    "OperatorInstruction",
    "StartProcessor",
    "Stopping",
]


@dataclass(frozen=True, slots=True)
class Give:
    """Let a processor work on records, one after the other.

    Those that it only has to know are not *new*: what it makes of them is nobody's. Those that
    it waited for are given *at_once*, others *ahead* of the end of those that it has. With them
    it is lent the *states* of their keys, if the operator keeps any.
    """

    processor: int
    records: tuple[Record, ...]
    new: bool = True
    at_once: bool = False
    ahead: bool = False
    states: Mapping[str, bytes] | None = None


@dataclass(frozen=True, slots=True)
class StartProcessor:
    """Start a processor on a node; it is counted once it is ready."""

    processor: int
    node: str = HERE


@dataclass(frozen=True, slots=True)
class KillProcessor:
    """End a processor that has nothing to do, or takes too long."""

    processor: int


@dataclass(frozen=True, slots=True)
class NotKept:
    """Say that processors that start later will not get a record, and why."""

    record: Record
    reason: str


@dataclass(frozen=True, slots=True)
class Completed:
    """A record is done."""

    record: OpenRecord
    answer: Answer


@dataclass(frozen=True, slots=True)
class Stopping:
    """A record stops the application: none behind it of its key is served."""

    record: OpenRecord
    reason: str
    traceback: str = ""


OperatorInstruction = Give | StartProcessor | KillProcessor | NotKept | Completed | Stopping
