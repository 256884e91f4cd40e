"""Counters of a part, and its status, as a host reports them."""

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
"""In which arrivals are counted."""


class OperatorState(msgspec.Struct, array_like=True, frozen=True):
    """How an operator is at the moment.

    What is retried, dead, and passed by because it is null counts from the host's start.

    *missing* says why fewer processors run than are wanted, if some cannot be started. Of those
    that wait, so many are *spilled* to disk. *memory* is that of its processors in bytes, by
    node. *at_work* processors have records; one of them *waits*, for that reason.
    """

    wanted: int = 0
    running: int = 0
    waiting: int = 0
    retried: int = 0
    dead: int = 0
    missing: str = ""
    spilled: int = 0
    memory: dict[str, int] = {}
    at_work: int | None = None
    waits: str = ""
    nulls: int = 0


class OperatorTally(msgspec.Struct, array_like=True, frozen=True):
    """What happened at an operator until *at_s* of the machine's clock.

    *arrivals* from other operators of the part are counted in bins of `BIN_S`, by the number
    of the bin on that clock. *bytes* went through it, by stream. *transfers* are the number
    and the sum of the times on the way here of records that found a processor waiting for
    them. *hottest* is the part of the records read by key that have the most frequent key,
    which is *hottest_name*.
    """

    since_s: float
    at_s: float
    state: OperatorState
    processors: list[ProcessorReport]
    arrivals: dict[int, int]
    bytes: dict[str, int]
    transfers: tuple[int, float]
    traces: list[Trace]
    hottest: float = 0.0
    hottest_name: str = ""


class PartState(msgspec.Struct, array_like=True, frozen=True):
    """How a part is at the moment; what is *repeated* counts from the host's start.

    *batch* is Spark's, of which there are so many *relays*; *clean* the first that ended with
    nothing open, if nothing has come since. *positions* are the offsets that come next, by
    topic and partition, and *visits* the records of a root that come to each operator, by the
    topic of the root. Nothing is taken while operators that it is *closed_by* have too much, or
    while there is no room on the disk: *disk_full* says for what.
    *nodes* are those that its host is connected with. Some relay *waits*, for that reason.
    """

    batch: int = -1
    attempt: int = -1
    relays: int = 0
    open: int = 0
    repeated: int = 0
    clean: int | None = None
    positions: dict[str, dict[int, int]] = {}
    visits: dict[str, dict[str, float]] = {}
    closed_by: tuple[str, ...] = ()
    nodes: dict[str, NodeState] = {}
    waits: str = ""
    disk_full: str = ""


class PartTally(msgspec.Struct, array_like=True, frozen=True):
    """What happened in a part, by operator."""

    state: PartState
    operators: dict[str, OperatorTally]
