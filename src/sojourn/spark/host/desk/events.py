"""Events of a part, which its desk handles one after the other.

Events are structs, which are cheap to make: there is one for each message of a processor.
"""

from collections.abc import Mapping, Sequence

import msgspec

from sojourn.spark.host.batch.cut import CutId
from sojourn.spark.wire.processor import Result
from sojourn.spark.wire.relay import Row

# -- relays and batches -----------------------------------------------------------------------


class RelayCame(msgspec.Struct, frozen=True, gc=False):
    """A relay has connected; the first of a batch begins the batch."""

    relay: int
    cut: CutId
    """The cut that its batch will make."""
    task: int = 0
    """Index of the relay's task in the batch."""


class RelaysCounted(msgspec.Struct, frozen=True, gc=False):
    """Spark has reported the number of relays of a batch."""

    cut: CutId
    """The cut that the batch will make."""
    relays: int


class RowsCame(msgspec.Struct, frozen=True, gc=False):
    """A relay hands over rows."""

    relay: int
    rows: Sequence[Row]


class RelayEnded(msgspec.Struct, frozen=True, gc=False):
    """A relay has handed over all rows of its task."""

    relay: int


class RelayLeft(msgspec.Struct, frozen=True, gc=False):
    """A relay has closed its connection, finished or not."""

    relay: int


class RelaysCaughtUp(msgspec.Struct, frozen=True, gc=False):
    """Relays can take more of the results that are replayed from the log."""


class CutSaved(msgspec.Struct, frozen=True, gc=False):
    """A cut is on disk."""

    cut: CutId


class DrainAsked(msgspec.Struct, frozen=True, gc=False):
    """The application must finish all open records and end."""


# -- processors -------------------------------------------------------------------------------


class ProcessorReady(msgspec.Struct, frozen=True, gc=False):
    """A processor can take its first record."""

    operator: str
    processor: int


class ProcessorDone(msgspec.Struct, frozen=True, gc=False):
    """A processor is done with the first of its records, one for each result."""

    operator: str
    processor: int
    results: Sequence[Result]


class ProcessorEnded(msgspec.Struct, frozen=True, gc=False):
    """A processor is gone, or could not be started."""

    operator: str
    processor: int
    reason: str
    late: bool = False
    """It was killed because a record took longer than the time limit."""
    starved: bool = False
    """It could not be started because its machine lacked memory or the like."""


class PlacementAsked(msgspec.Struct, frozen=True, gc=False):
    """An operator must have these processors."""

    operator: str
    on: Mapping[str, int]
    """Number of processors by node."""


# -- all operators ----------------------------------------------------------------------------


class NodeCame(msgspec.Struct, frozen=True, gc=False):
    """Processors can be started on a node."""

    node: str


class NodeLeft(msgspec.Struct, frozen=True, gc=False):
    """A node is gone, with all processors that were on it."""

    node: str


class TimePassed(msgspec.Struct, frozen=True, gc=False):
    """Something may be due: reminders, expired states, a retry of a failed start."""


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
