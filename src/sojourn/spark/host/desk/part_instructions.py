"""What the desk of a part tells the host to do."""

from dataclasses import dataclass

from sojourn.spark.host.batch.instructions import CutInstruction
from sojourn.spark.host.desk.admission import GrantRelay
from sojourn.spark.host.desk.instructions import Give, KillProcessor, NotKept, StartProcessor
from sojourn.spark.wire.record import Record

__all__ = ["Arrived", "AtOperator", "PartInstruction", "Sent", "StopPart"]


@dataclass(frozen=True, slots=True)
class AtOperator:
    """Do something at an operator."""

    operator: str
    instruction: Give | StartProcessor | KillProcessor | NotKept


@dataclass(frozen=True, slots=True)
class Arrived:
    """Take note of a record that came to an operator."""

    operator: str
    record: Record


@dataclass(frozen=True, slots=True)
class Sent:
    """Take note of what an operator made of a record."""

    operator: str
    record: Record
    children: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class StopPart:
    """Stop the application: a record cannot be done."""

    operator: str
    record: Record
    reason: str
    traceback: str


PartInstruction = CutInstruction | AtOperator | Arrived | Sent | GrantRelay | StopPart
