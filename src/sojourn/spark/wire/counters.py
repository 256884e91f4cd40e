"""Counters and status of a part, in the reports of its host.

States are as of the report. Tallies count since the report before.
"""

import msgspec

from sojourn.measure.counters import ProcessorReport
from sojourn.spark.wire.node_state import NodeState
from sojourn.spark.wire.tracing import Trace

__all__ = [
    "BIN_S",
    "OperatorState",
    "OperatorTally",
    "PartState",
    "PartTally",
]

BIN_S = 0.2
"""The width of a bin of arrivals."""


class OperatorState(msgspec.Struct, array_like=True, frozen=True):
    """The current state of an operator."""

    wanted: int = 0
    """Requested processors."""
    running: int = 0
    """Ready processors."""
    waiting: int = 0
    """Queued records, in memory and on disk."""
    retried: int = 0
    """Retries of failed records since the host started."""
    dead: int = 0
    """Dead letters since the host started."""
    missing: str = ""
    """Why fewer processors run than requested, if some cannot be started."""
    spilled: int = 0
    """Queued records on disk."""
    memory: dict[str, int] = {}
    """Bytes of its processors, by node."""
    at_work: int | None = None
    """Processors that have records."""
    waits: str = ""
    """Why a processor waits for an external service; empty if none does."""
    nulls: int = 0
    """Records skipped since the host started because their value is null."""


class OperatorTally(msgspec.Struct, array_like=True, frozen=True):
    """Counters of an operator since the last report."""

    since_s: float
    """The beginning of the interval, by the monotonic clock of the machine."""
    at_s: float
    """Its end, by the same clock."""
    state: OperatorState
    processors: list[ProcessorReport]
    arrivals: dict[int, int]
    """Records from operators of the same part, by the number of the bin of `BIN_S`."""
    bytes: dict[str, int]
    """Bytes that went through it, by stream."""
    transfers: tuple[int, float]
    """Number and total transfer time of records that found an idle processor."""
    traces: list[Trace]
    hottest: float = 0.0
    """The share of the most frequent key among records read by key."""
    hottest_name: str = ""
    """That key."""


class PartState(msgspec.Struct, array_like=True, frozen=True):
    """The current state of a part."""

    batch: int = -1
    """The batch of Spark."""
    attempt: int = -1
    relays: int = 0
    """Relays of the batch that have introduced themselves."""
    open: int = 0
    """Open records."""
    repeated: int = 0
    """Roots that Spark has read again since the host started."""
    clean: int | None = None
    """The first batch that ended with no open record, if none has arrived since."""
    positions: dict[str, dict[int, int]] = {}
    """The next offset, by topic and partition."""
    visits: dict[str, dict[str, float]] = {}
    """Mean visits of a root to each operator, by topic of the root and operator."""
    closed_by: tuple[str, ...] = ()
    """Operators with full queues, because of which no records are taken from Kafka."""
    nodes: dict[str, NodeState] = {}
    """Connected nodes."""
    waits: str = ""
    """Why a relay waits for an external service; empty if none does."""
    disk_full: str = ""
    """Why the host waits for disk space, and takes no records; empty if it does not."""


class PartTally(msgspec.Struct, array_like=True, frozen=True):
    """Counters and state of a part."""

    state: PartState
    operators: dict[str, OperatorTally]
