"""Counters and status of a part, in the reports of its host.

States are as of the report. Tallies count since the report before.
"""

import msgspec

from sojourn.measure.counters import ProcessorReport

BIN_S = 0.2
"""The width of a bin of arrivals."""


class OperatorState(msgspec.Struct, array_like=True, frozen=True):
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


class Trace(msgspec.Struct, array_like=True, frozen=True):
    """A processed record of a traced root."""

    root: str
    identity: str
    birth_s: float
    """The birth of the root."""
    done_s: float
    """When the record was done."""
    sojourn_s: float
    """The time since it was written to its stream."""
    weight: int
    """The number of roots that this one stands for."""
    children: list[tuple[str, str]]
    """Stream and id of each record that it sent."""


class OperatorTally(msgspec.Struct, array_like=True, frozen=True):
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


class NodeState(msgspec.Struct, array_like=True, frozen=True):
    """The current state of a node; None is not known yet."""

    round_trip_s: float | None = None
    """The shortest recent round-trip time between host and node."""
    offset_s: float | None = None
    """How far the node's clock is ahead of the host's, known to half of the round-trip time."""
    used_bytes: int | None = None
    """Memory in use on the node."""
    limit_bytes: int | None = None
    """The memory limit of the node."""
    to: dict[str, int] = {}
    """Bytes sent to the node since it connected, by stream."""
    back: dict[str, int] = {}
    """Bytes received from it since it connected, by stream."""
    to_per_s: float = 0.0
    """Bytes recently sent per second."""
    back_per_s: float = 0.0
    """Bytes recently received per second."""
    kafka: str = ""
    """Why Kafka clients on the node do not reach the brokers quickly; empty if they do."""
    cores: float | None = None
    """Cores that processes on the node may use."""
    pool: str = ""
    """Identifies these cores: nodes with the same pool share them."""
    cpu_s: float | None = None
    """CPU seconds that all processes in the pool have used."""
    told_s: float = 0.0
    """When *cpu_s* was read, by the monotonic clock of the node."""


class PartState(msgspec.Struct, array_like=True, frozen=True):
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
    state: PartState
    operators: dict[str, OperatorTally]
