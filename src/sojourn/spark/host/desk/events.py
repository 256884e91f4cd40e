"""What happens to a part: its desk handles one event after the other.

Events are structs, which are cheap to make: there is one for each message of a processor.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from sojourn.spark.host.batch.cut import CutId
from sojourn.spark.wire.processor import Result
from sojourn.spark.wire.relay import Row

__all__ = [
    "Arrival", "BatchEvent", "CutSaved", "DrainAsked", "Event", "NodeCame", "NodeLeft",
    "OperatorEvent", "PlacementAsked", "ProcessorDone", "ProcessorEnded", "ProcessorReady",
    "RelayCame", "RelayEnded", "RelayLeft", "RelaysCaughtUp", "RelaysCounted", "RowsCame",
    "TimePassed",
]  # fmt: skip


# -- relays and batches -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """The batch of a relay, the attempt at it, and its *task* in that batch."""

    attempt: int
    batch: int
    task: int = field(default=0, compare=False)


class RelayCame(msgspec.Struct, frozen=True, gc=False):
    """A relay begins; the first of a batch begins the batch."""

    relay: int
    arrival: Arrival


class RelaysCounted(msgspec.Struct, frozen=True, gc=False):
    """Spark has said how many relays a batch has."""

    attempt: int
    batch: int
    relays: int


class RowsCame(msgspec.Struct, frozen=True, gc=False):
    """A relay hands over rows."""

    relay: int
    rows: Sequence[Row]


class RelayEnded(msgspec.Struct, frozen=True, gc=False):
    """A relay has handed over all that Spark has read."""

    relay: int


class RelayLeft(msgspec.Struct, frozen=True, gc=False):
    """A relay has closed its connection, finished or not."""

    relay: int


class RelaysCaughtUp(msgspec.Struct, frozen=True, gc=False):
    """Relays can take more of the results that leave again from the log."""


class CutSaved(msgspec.Struct, frozen=True, gc=False):
    """A cut is on disk."""

    cut: CutId


class DrainAsked(msgspec.Struct, frozen=True, gc=False):
    """The application is to end with nothing open."""


# -- processors -------------------------------------------------------------------------------


class ProcessorReady(msgspec.Struct, frozen=True, gc=False):
    """A processor can take its first record."""

    operator: str
    processor: int


class ProcessorDone(msgspec.Struct, frozen=True, gc=False):
    """A processor is done with the first of the records that it was given."""

    operator: str
    processor: int
    results: Sequence[Result]


class ProcessorEnded(msgspec.Struct, frozen=True, gc=False):
    """A processor is gone, whatever it was doing.

    It was ended because it was *late* with a record, or its system was *starved* of memory or
    the like, so that it could not be started.
    """

    operator: str
    processor: int
    reason: str
    late: bool = False
    starved: bool = False


class PlacementAsked(msgspec.Struct, frozen=True, gc=False):
    """An operator is to have so many processors *on* each node."""

    operator: str
    on: Mapping[str, int]


# -- all operators ----------------------------------------------------------------------------


class NodeCame(msgspec.Struct, frozen=True, gc=False):
    """Processors can be started on a node."""

    node: str


class NodeLeft(msgspec.Struct, frozen=True, gc=False):
    """A node is gone, with all processors that were on it."""

    node: str


class TimePassed(msgspec.Struct, frozen=True, gc=False):
    """Something may be due: reminders, states that are too old, another start."""


OperatorEvent = (
    ProcessorDone
    | ProcessorReady
    | ProcessorEnded
    | PlacementAsked
    | NodeCame
    | NodeLeft
    | TimePassed
)
BatchEvent = RelayEnded | RelaysCounted | RelaysCaughtUp | CutSaved | DrainAsked
Event = OperatorEvent | BatchEvent | RowsCame | RelayCame | RelayLeft
