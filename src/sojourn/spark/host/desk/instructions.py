"""What desks and the ledger of a part decide: the host carries it out.

Instructions are structs, which are cheap to make: there are several for each record.
"""

from collections.abc import Mapping

import msgspec

from sojourn.decide.plan import HERE
from sojourn.spark.host.batch.cut import Cut, Leaving, OpenRecord
from sojourn.spark.host.state.keyed_state import Delta, MergeState
from sojourn.spark.wire.processor import Answer
from sojourn.spark.wire.record import Record

__all__ = [
    "AtOperator", "BatchInstruction", "Completed", "CountArrival", "CountOutputs",
    "FinishRelay", "Give", "GrantRelay", "HandOver", "Instruction", "KillProcessor", "NotKept",
    "OperatorInstruction", "RefuseRelay", "Restore", "SaveCut", "StartProcessor",
    "StationInstruction", "StopPart", "Stopping",
]  # fmt: skip


# -- for the station of an operator -----------------------------------------------------------


class Give(msgspec.Struct, frozen=True, gc=False):
    """Let a processor work on records, one after the other."""

    processor: int
    records: tuple[Record, ...]
    new: bool = True
    """Whether anything may come of them: of those that it only has to know, nothing does."""
    at_once: bool = False
    """Whether it waited for them."""
    ahead: bool = False
    """Whether it is not done with those that it has."""
    states: Mapping[str, bytes] | None = None
    """The states of their keys, if the operator keeps any."""


class StartProcessor(msgspec.Struct, frozen=True, gc=False):
    """Start a processor on a node; it is counted once it is ready."""

    processor: int
    node: str = HERE


class KillProcessor(msgspec.Struct, frozen=True, gc=False):
    """End a processor that has nothing to do."""

    processor: int


class NotKept(msgspec.Struct, frozen=True, gc=False):
    """Log that processors that start later will not get a record, and why."""

    record: Record
    reason: str


# -- from the desk of an operator to that of its part -----------------------------------------


class Completed(msgspec.Struct, frozen=True, gc=False):
    """A record is done."""

    record: OpenRecord
    answer: Answer


class Stopping(msgspec.Struct, frozen=True, gc=False):
    """A record stops the application: none behind it of its key is served."""

    record: OpenRecord
    reason: str
    traceback: str = ""


# -- for relays, and the disk -----------------------------------------------------------------


class HandOver(msgspec.Struct, frozen=True, gc=False):
    """Give a result to a relay.

    All roots of its partition below *floor* have left for good: what comes of one later is a
    repetition.
    """

    relay: int
    leaving: Leaving
    floor: int


class GrantRelay(msgspec.Struct, frozen=True, gc=False):
    """Let a relay hand over so many records more."""

    relay: int
    number: int


class SaveCut(msgspec.Struct, frozen=True, gc=False):
    """Write a cut to disk, with the states that have changed, and say when it is there."""

    cut: Cut
    changed: Delta


class FinishRelay(msgspec.Struct, frozen=True, gc=False):
    """Let a relay end: the cut of its batch is on disk."""

    relay: int


class RefuseRelay(msgspec.Struct, frozen=True, gc=False):
    """End a relay of a batch or an attempt that is over."""

    relay: int
    reason: str


class Restore(msgspec.Struct, frozen=True, gc=False):
    """Forget all records, and continue with those of a cut, which are open again."""

    cut: Cut


# -- for the host -----------------------------------------------------------------------------


class AtOperator(msgspec.Struct, frozen=True, gc=False):
    """Do something at the station of an operator."""

    operator: str
    instruction: "StationInstruction"


class CountArrival(msgspec.Struct, frozen=True, gc=False):
    """Count a record that came to an operator."""

    operator: str
    record: Record


class CountOutputs(msgspec.Struct, frozen=True, gc=False):
    """Count what an operator made of a record."""

    operator: str
    record: Record
    children: tuple[Record, ...]


class StopPart(msgspec.Struct, frozen=True, gc=False):
    """Stop the application: a record cannot be done."""

    operator: str
    record: Record
    reason: str
    traceback: str


StationInstruction = Give | StartProcessor | KillProcessor | NotKept
OperatorInstruction = StationInstruction | Completed | Stopping
BatchInstruction = HandOver | SaveCut | FinishRelay | RefuseRelay | Restore | MergeState
Instruction = (
    BatchInstruction | AtOperator | CountArrival | CountOutputs | GrantRelay | StopPart
)
