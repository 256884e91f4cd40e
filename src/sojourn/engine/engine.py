"""The protocol of an engine, which runs a topology and can be changed while it runs.

`Engine` has what every engine can do. Each optional capability is a Protocol of its own; the
functions below use it, and raise `EngineError` if the engine does not have it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self, TypeAlias, runtime_checkable

from sojourn.decide.plan import HERE, Node, Plan
from sojourn.errors import BadAllocation, EngineError
from sojourn.measure.node_costs import NodeCosts
from sojourn.measure.report import Pull
from sojourn.model.network import check_allocation
from sojourn.text import shown
from sojourn.topology import Topology

Progress: TypeAlias = Callable[[str], None]
"""A callback that receives progress messages of a long operation, one line each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of applying a plan."""

    pause_s: float = 0.0
    """How long operators paused."""
    replayed: int = 0
    """Records that were processed again."""
    changed: Mapping[str, tuple[int, int]]
    """Processors before and after, of each operator that changed."""


class Engine(Protocol):
    """An engine that starts, observes, changes and stops an application.

    A context manager: leaving it stops the application. It raises only `EngineError` and errors
    about its arguments. Its clock starts at 0.

    One thread of `sojourn run` observes while another applies changes: `apply`, and the
    optional methods below, must be safe to call at any time.
    """

    @property
    def name(self) -> str:
        """The display name: Spark, the simulator."""

    @property
    def now_s(self) -> float:
        """Seconds on the engine's clock."""

    @property
    def nodes(self) -> Sequence[Node]:
        """The nodes available now, including those that are being given back."""

    @property
    def plan(self) -> Plan:
        """The plan started or applied last; empty before the start."""

    def start(self, topology: Topology, plan: Plan) -> None:
        """Start *topology* with *plan*.

        Raise `EngineError` if the application is already running, and `BadAllocation` if the
        plan does not match its operators and nodes.
        """

    def observe(self, until_s: float) -> Pull:
        """Wait until *until_s* on the engine's clock; return the counters since the last look.

        Late reports are not waited for: they count in the next look.
        """

    def apply(self, plan: Plan) -> Cost:
        """Change the running application to *plan*, and return the cost.

        The plan is carried out exactly: processors run on the nodes it names, or on any node if
        that is `HERE` and there are other nodes. Nodes are requested and given back without
        waiting for them. Processors of a lost node run on any node until the next plan.

        Idempotent. No record may be lost. Raise `BadAllocation`, and change nothing, if *plan*
        does not match operators and nodes.
        """

    def stop(self) -> None:
        """Stop the application; no effect if it is not running."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_exception: object) -> None: ...


def check_plan(plan: Plan, topology: Topology, nodes: Sequence[Node]) -> None:
    """Raise `BadAllocation` unless *plan* matches the operators of *topology* and *nodes*."""
    check_allocation(topology, plan.allocation)
    names = [node.name for node in nodes]
    for operator, on in plan.placement.items():
        for node in on.keys() - {*names, HERE}:
            raise BadAllocation(
                f"{operator}: there is no node {shown(node)}; place it on {' or '.join(names)}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartHealth:
    operators: tuple[str, ...]
    """Its functions, which pass records to each other in one process."""
    open_records: int = 0
    """Records that it has not finished."""
    projections: tuple[str, ...] = ()
    """The projections that run in its query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHealth:
    """The health of a cluster node; None stands for unknown."""

    name: str
    cores: float | None = None
    """Cores its processes may use; its share if nodes share cores."""
    busy_cores: float | None = None
    """Cores busy at the last look of the loop, with any process; its share, as above."""
    processors: Mapping[str, int] = field(default_factory=dict)
    """Processors by operator."""
    memory_bytes: int = 0
    """Memory of its processors."""
    machine: str = ""
    logs: str = ""
    """The folder on *machine* with the output of its processors."""
    reason: str = ""
    """Why the node is unusable; empty if it is usable."""
    memory_used_bytes: int | None = None
    memory_limit_bytes: int | None = None
    """The memory limit of its container, or of its machine."""
    round_trip_s: float | None = None
    """Round-trip time between driver and node."""
    clock_offset_s: float | None = None
    """How far its clock is ahead of the driver's, accurate to half of *round_trip_s*."""
    received_bytes: Mapping[str, int] = field(default_factory=dict)
    """Bytes of records received from the driver since it connected, by stream."""
    sent_bytes: Mapping[str, int] = field(default_factory=dict)
    """Bytes of results sent to the driver since it connected, by stream."""
    received_bytes_per_s: float = 0.0
    """The recent rate, over all streams."""
    sent_bytes_per_s: float = 0.0
    """The recent rate, over all streams."""
    warnings: tuple[str, ...] = ()
    """Conditions that will soon make the node unusable, or that falsify measurements."""
    kafka: str = ""
    """Why clients on the node are slow to reach Kafka, or cannot; empty if they reach it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerTopics:
    """The contents of the topics between operators; None if there are none, or unknown."""

    records: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Failures so far, and the current health."""

    restarts: Mapping[str, int] = field(default_factory=dict)
    """Restarts by operator, and of Sojourn's own broker."""
    replayed: int = 0
    """Records delivered again after a failure, and recognised as duplicates."""
    retried: int = 0
    """Records retried after an error."""
    dead_letters: int = 0
    nulls: int = 0
    """Messages without a value that were skipped."""
    running: Mapping[str, int] = field(default_factory=dict)
    """Processors that can take records now, by operator."""
    trees_open: int = 0
    """Traced roots whose trees are not complete."""
    trees_forgotten: int = 0
    """Open trees that were dropped because there were too many."""
    failure: str = ""
    """Why the application stopped; empty while it runs."""
    no_broker_s: float | None = None
    """How long no broker has answered; None if one answers."""
    notices: tuple[str, ...] = ()
    """Messages for the user, each with the same text while its condition lasts."""
    waits_for: str = ""
    """What the start still waits for; empty once records are read."""
    inner_topics: InnerTopics = InnerTopics()
    parts: tuple[PartHealth, ...] = ()
    nodes: tuple[NodeHealth, ...] = ()
    """The nodes of a cluster; empty on one machine."""
    node_s: float | None = None
    """The uptime of all nodes so far, added up; None if the nodes never change."""
    node_costs: NodeCosts = field(default_factory=NodeCosts)
    """How long adding and removing a node took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaAccess:
    """How to connect to the Kafka of an application."""

    servers: str
    """The bootstrap servers."""
    clients: Mapping[str, str] = field(repr=False)
    """Client settings, which may contain secrets."""
    client_properties: str | None = None
    """The settings file for Kafka's command-line tools, if Sojourn started the broker."""
    client_settings: str | None = None
    """The settings file for confluent-kafka, if Sojourn started the broker."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Topics by source."""
    sinks: Mapping[str, str] = field(default_factory=dict)
    """Topics by sink."""


@runtime_checkable
class HasHealth(Protocol):
    """An engine that reports its health."""

    def health(self) -> Health:
        """Return failures so far, and the current health."""


@runtime_checkable
class Drains(Protocol):
    """An engine that can finish records in progress before it stops."""

    def drain(self, progress: Progress) -> None:
        """Take no more records, finish those in progress, and commit."""

    def uncommitted(self) -> int:
        """Return the number of records that would be replayed if it stopped now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeNeeds:
    """An engine's own requirements for nodes."""

    least: int = 1
    """The minimum number of nodes, however few processors there are."""
    unplaced: frozenset[str] = frozenset()
    """Operators whose processors do not run on nodes."""


@runtime_checkable
class HasNodes(Protocol):
    """An engine whose nodes join and leave while it runs."""

    def node_needs(self) -> NodeNeeds:
        """Return its own requirements for nodes."""

    def on_nodes_changed(self, changed: Callable[[], None]) -> None:
        """Register *changed*, which is called in any thread after each change of `nodes`.

        The callback may call `apply`.
        """


@runtime_checkable
class HasKafka(Protocol):
    """An engine that reads from Kafka."""

    def kafka(self) -> KafkaAccess:
        """Return the addresses, client settings and topics."""


@runtime_checkable
class LeavesProcesses(Protocol):
    """An engine whose processes may still use its state shortly after it is killed."""

    def await_unused(self) -> None:
        """Wait until no process of an earlier run uses the state."""


@runtime_checkable
class KeepsStateElsewhere(Protocol):
    """An engine with state outside of its state folder."""

    def forget(self) -> None:
        """Delete the state outside of the state folder."""


def health(engine: Engine) -> Health:
    """Return the health of *engine*; an engine that does not report it counts as healthy."""
    return engine.health() if isinstance(engine, HasHealth) else Health()


def drain(engine: Engine, progress: Progress) -> None:
    """Drain *engine*. Raise `EngineError` if it cannot finish records in progress."""
    if not isinstance(engine, Drains):
        raise EngineError(
            f"{engine.name} cannot finish records in progress; it is stopped at once"
        )
    engine.drain(progress)


def uncommitted(engine: Engine) -> int:
    """Return the records that would be replayed if *engine* stopped now; 0 if unknown."""
    return engine.uncommitted() if isinstance(engine, Drains) else 0


def node_needs(engine: Engine) -> NodeNeeds:
    """Return the engine's own node requirements; the defaults if its nodes never change."""
    return engine.node_needs() if isinstance(engine, HasNodes) else NodeNeeds()


def kafka(engine: Engine) -> KafkaAccess:
    """Return access to the Kafka of *engine*. Raise `EngineError` if it has none."""
    if not isinstance(engine, HasKafka):
        raise EngineError(f"{engine.name} does not use Kafka, so there are no dead letters")
    return engine.kafka()
