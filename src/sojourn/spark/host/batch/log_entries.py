"""Entries of a host's log: changes of open records, results and states."""

import msgspec

from sojourn.spark.host.batch.cut import CutId, OpenRecord
from sojourn.spark.host.state.part_clock import ClockReading
from sojourn.spark.wire.record import Record, Root
from sojourn.spark.wire.relay import DeadResult
from sojourn.spark.wire.repetitions import Provenance

__all__ = [
    "Changed", "Committed", "Did", "Entered", "Entry", "Kept", "Left", "LogMark", "Started",
    "Took",
]  # fmt: skip


class Took(msgspec.Struct, tag="t", array_like=True, frozen=True):
    """A root was taken from Spark."""

    root: Root
    provenance: Provenance | None = None


class Entered(msgspec.Struct, tag="e", array_like=True, frozen=True):
    """A record was opened."""

    record: OpenRecord


class Did(msgspec.Struct, tag="d", array_like=True, frozen=True):
    """The open record with this number is done."""

    number: int


class Left(msgspec.Struct, tag="l", array_like=True, frozen=True):
    """A result or a dead letter leaves."""

    root: Root
    record: Record | None
    letter: DeadResult | None = None


class Changed(msgspec.Struct, tag="s", array_like=True, frozen=True):
    """A key has a new state; an empty one means none."""

    operator: str
    key: str
    state: bytes


class Kept(msgspec.Struct, tag="k", array_like=True, frozen=True):
    """An operator keeps a broadcast record for processors that start later."""

    operator: str
    record: Record


class LogMark(msgspec.Struct, tag="m", array_like=True, frozen=True):
    """A cut was made here."""

    cut: CutId


class Committed(msgspec.Struct, tag="c", array_like=True, frozen=True):
    """Spark has committed the batch of a cut, so earlier entries are not needed any more."""

    cut: CutId


class Started(msgspec.Struct, tag="b", array_like=True, frozen=True):
    """A host resumes at this time, because no cut has it or the clock was in doubt."""

    clock: ClockReading


Entry = Took | Entered | Did | Left | Changed | Kept | LogMark | Committed | Started
