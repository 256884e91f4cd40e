"""Decisions of desks and of the ledger, which the host carries out.

Instructions are structs, which are cheap to make: there are several for each record.
"""

from collections.abc import Mapping

import msgspec

from sojourn.decide.plan import HERE
from sojourn.spark.host.batch.cut import Cut, OpenRecord
from sojourn.spark.host.batch.host_log import Leaving
from sojourn.spark.host.state.keyed_state import Delta, MergeState
from sojourn.spark.wire.processor import Answer
from sojourn.spark.wire.record import Record

# -- for the station of an operator -----------------------------------------------------------


class Give(msgspec.Struct, frozen=True, gc=False):
    """Send records to a processor, which processes them one after the other."""

    processor: int
    records: tuple[Record, ...]
    new: bool = True
    """Whether their outputs count; those of a backfill are dropped."""
    at_once: bool = False
    """Whether the records found an idle processor when they arrived."""
    ahead: bool = False
    """Whether the processor still works on earlier records."""
    states: Mapping[str, bytes] | None = None
    """States of their keys, if the operator is stateful."""


class StartProcessor(msgspec.Struct, frozen=True, gc=False):
    """Start a processor on a node; it is counted once it is ready."""

    processor: int
    node: str = HERE


class KillProcessor(msgspec.Struct, frozen=True, gc=False):
    """End an idle processor."""

    processor: int


class NotKept(msgspec.Struct, frozen=True, gc=False):
    """Log that processors that start later will not get a broadcast record, and why."""

    record: Record
    reason: str


# -- from the desk of an operator to that of its part -----------------------------------------


class RecordCompleted(msgspec.Struct, frozen=True, gc=False):
    """A record is done."""

    record: OpenRecord
    answer: Answer


class StopPart(msgspec.Struct, frozen=True, gc=False):
    """Stop the application: a record cannot be processed, nor any later one of its key."""

    record: OpenRecord
    reason: str
    traceback: str = ""


# -- for relays, and the disk -----------------------------------------------------------------


class HandOver(msgspec.Struct, frozen=True, gc=False):
    """Hand a result over to a relay."""

    relay: int
    leaving: Leaving
    floor: int
    """The results of all roots of its partition below this offset have left and are committed.

    Any further result of such a root is a repetition.
    """


class GrantRelay(msgspec.Struct, frozen=True, gc=False):
    """Grant a relay credit for *number* more records."""

    relay: int
    number: int


class SaveCut(msgspec.Struct, frozen=True, gc=False):
    """Write a cut and the states that have changed to disk, and report when that is done."""

    cut: Cut
    changed: Delta


class FinishRelay(msgspec.Struct, frozen=True, gc=False):
    """Let a relay end: the cut of its batch is on disk."""

    relay: int


class RefuseRelay(msgspec.Struct, frozen=True, gc=False):
    """End a relay whose batch or attempt is over."""

    relay: int
    reason: str


class Restore(msgspec.Struct, frozen=True, gc=False):
    """Forget all records, and resume with those of a cut."""

    cut: Cut


# -- for the host -----------------------------------------------------------------------------


class AtOperator(msgspec.Struct, frozen=True, gc=False):
    """Carry out an instruction at the station of an operator."""

    operator: str
    instruction: "RunnerInstruction"


class CountArrival(msgspec.Struct, frozen=True, gc=False):
    """Count a record that arrived at an operator."""

    operator: str
    record: Record


class CountOutputs(msgspec.Struct, frozen=True, gc=False):
    """Count the outputs of an operator for a record."""

    operator: str
    record: Record
    children: tuple[Record, ...]


RunnerInstruction = Give | StartProcessor | KillProcessor | NotKept
OperatorInstruction = RunnerInstruction | RecordCompleted | StopPart
BatchInstruction = HandOver | SaveCut | FinishRelay | RefuseRelay | Restore | MergeState
Instruction = (
    BatchInstruction | AtOperator | CountArrival | CountOutputs | GrantRelay | StopPart
)
