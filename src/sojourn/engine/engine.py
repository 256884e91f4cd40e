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

__all__ = [
    "Cost",
    "Drains",
    "Engine",
    "HasHealth",
    "HasKafka",
    "HasNodes",
    "Health",
    "InnerTopics",
    "KafkaAccess",
    "KeepsStateElsewhere",
    "LeavesProcesses",
    "NodeHealth",
    "NodeNeeds",
    "PartHealth",
    "Progress",
    "check_plan",
    "drain",
    "health",
    "kafka",
    "node_needs",
    "uncommitted",
]

Progress: TypeAlias = Callable[[str], None]
"""Called with a line of text on the progress of a long operation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of a change: how long operators paused, and how many records were repeated."""

    pause_s: float = 0.0
    replayed: int = 0
    changed: Mapping[str, tuple[int, int]]
    """The processors before and after, for the operators that changed."""


class Engine(Protocol):
    """An engine that starts, observes, changes and stops an application.

    A context manager: leaving it stops the application. It raises only `EngineError` and errors
    about its arguments. Its clock starts at 0.

    `sojourn run` changes it in one thread while another observes: `apply`, and the optional
    methods below, may be called at any time.
    """

    @property
    def name(self) -> str:
        """The name in messages: Spark, the simulator."""

    @property
    def now_s(self) -> float:
        """The engine's clock."""

    @property
    def nodes(self) -> Sequence[Node]:
        """The machines for processors that are there now, also those that are given back."""

    @property
    def plan(self) -> Plan:
        """The plan that was started or applied last; empty before the start."""

    def start(self, topology: Topology, plan: Plan) -> None:
        """Start *topology* with *plan*.

        Raise `EngineError` if it is already running, and `BadAllocation` if the plan does not
        match its operators and nodes.
        """

    def observe(self, until_s: float) -> Pull:
        """Wait until *until_s* on the engine's clock; return the counters since the last look.

        It does not wait for late reports: they are part of the next look.
        """

    def apply(self, plan: Plan) -> Cost:
        """Change the running application, and return the cost.

        It is carried out as decided: processors run where *plan* places them, or anywhere if
        that is `HERE` and there are other nodes; nodes are asked for and given back as it says.
        Nodes come and go later. Processors of a node that is lost run anywhere until the next
        plan.
        Applying a plan twice has no further effect. No record may be lost. Raise
        `BadAllocation`, and change nothing, if *plan* does not match operators and nodes.
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
    """The functions and projections of a part, and how many records it has not finished."""

    operators: tuple[str, ...]
    open_records: int = 0
    projections: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHealth:
    """A node of a cluster: its cores, processors by operator, and the memory of these.

    What they print is in the folder *logs* of the machine *machine*. *reason* is why the node
    cannot be used, if so; *cores* is None of one that has never been connected. What is None
    is not known.

    Its processes may use *cores*, of which *busy_cores* were busy at the last look of the loop,
    with whatever runs on them; nodes that share cores have equal parts of both. Of its memory
    *memory_used_bytes* are in use, of at most *memory_limit_bytes*. Its clock is
    *clock_offset_s* ahead of the driver's, known to half of *round_trip_s*, which a question
    and its answer take on the way. Records in *received_bytes* came from the driver since it
    has connected, and results in *sent_bytes* went there, by stream; lately so many per second.
    *warnings* are what will be a reason before long, or makes measurements wrong. *kafka* is
    why clients on the node do not reach Kafka soon, if so.
    """

    name: str
    cores: float | None = None
    busy_cores: float | None = None
    processors: Mapping[str, int] = field(default_factory=dict)
    memory_bytes: int = 0
    machine: str = ""
    logs: str = ""
    reason: str = ""
    memory_used_bytes: int | None = None
    memory_limit_bytes: int | None = None
    round_trip_s: float | None = None
    clock_offset_s: float | None = None
    received_bytes: Mapping[str, int] = field(default_factory=dict)
    sent_bytes: Mapping[str, int] = field(default_factory=dict)
    received_bytes_per_s: float = 0.0
    sent_bytes_per_s: float = 0.0
    warnings: tuple[str, ...] = ()
    kafka: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerTopics:
    """What the topics between operators hold; None if there are none, or it is not known."""

    records: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Failures so far, and the current health.

    *restarts* by operator; records *replayed* (brought again and not taken twice), *retried*
    after an error, stored as *dead_letters*, or skipped because they are *nulls*; *running* are
    the processors that can take records now. Of the traced roots some *trees* are *open*, and
    some were *forgotten* because there were too many.
    *failure* is why the application stopped, if it did.
    *no_broker_s* is how long no broker has answered; *notices* are messages for the user, whose
    text stays the same while the condition lasts. *waits_for* says what the start still waits
    for, empty once records are read. *parts* are the operators that pass records to each other
    in one process. *nodes* are those of a cluster; on one machine there
    are none. *node_s* is the time that nodes were there, added up; None if there are always the
    same. *node_costs* is how long nodes took to come and to go.
    """

    restarts: Mapping[str, int] = field(default_factory=dict)
    replayed: int = 0
    retried: int = 0
    dead_letters: int = 0
    nulls: int = 0
    running: Mapping[str, int] = field(default_factory=dict)
    trees_open: int = 0
    trees_forgotten: int = 0
    failure: str = ""
    no_broker_s: float | None = None
    notices: tuple[str, ...] = ()
    waits_for: str = ""
    inner_topics: InnerTopics = InnerTopics()
    parts: tuple[PartHealth, ...] = ()
    nodes: tuple[NodeHealth, ...] = ()
    node_s: float | None = None
    node_costs: NodeCosts = field(default_factory=NodeCosts)


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaAccess:
    """How to connect to the Kafka of an application.

    *clients* are client settings, which may contain secrets. If sojourn started the broker,
    *client_properties* is the path of a file with the settings for Kafka's command-line tools,
    and *client_settings* of one for confluent-kafka. *sources* and *sinks* are topics by name.
    """

    servers: str
    clients: Mapping[str, str] = field(repr=False)
    client_properties: str | None = None
    client_settings: str | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    sinks: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class HasHealth(Protocol):
    """An engine that reports its health."""

    def health(self) -> Health:
        """Return its health."""


@runtime_checkable
class Drains(Protocol):
    """An engine that can finish records in progress before it stops."""

    def drain(self, progress: Progress) -> None:
        """Take no more records, finish those in progress, and commit."""

    def uncommitted(self) -> int:
        """Return how many records in progress would be repeated if it stopped now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeNeeds:
    """What an engine needs of nodes itself."""

    least: int = 1
    """The fewest nodes, however few processors there are."""
    unplaced: frozenset[str] = frozenset()
    """Operators whose processors do not run on nodes."""


@runtime_checkable
class HasNodes(Protocol):
    """An engine whose nodes come and go while it runs."""

    def node_needs(self) -> NodeNeeds:
        """Return what it needs of nodes itself."""

    def on_nodes_changed(self, changed: Callable[[], None]) -> None:
        """Call *changed* after each change of `nodes` from now on, in any thread.

        It may call `apply`.
        """


@runtime_checkable
class HasKafka(Protocol):
    """An engine that reads from Kafka."""

    def kafka(self) -> KafkaAccess:
        """Return how to connect to it."""


@runtime_checkable
class LeavesProcesses(Protocol):
    """An engine whose processes may use its state for a moment after it is killed."""

    def await_unused(self) -> None:
        """Wait until no process of an earlier run uses the state."""


@runtime_checkable
class KeepsStateElsewhere(Protocol):
    """An engine with state outside of its state folder."""

    def forget(self) -> None:
        """Delete it."""


def health(engine: Engine) -> Health:
    """Return the health of *engine*; that of one which does not report it is good."""
    return engine.health() if isinstance(engine, HasHealth) else Health()


def drain(engine: Engine, progress: Progress) -> None:
    """Let *engine* finish records in progress. Raise `EngineError` if it cannot."""
    if not isinstance(engine, Drains):
        raise EngineError(
            f"{engine.name} cannot finish records in progress; it is stopped at once"
        )
    engine.drain(progress)


def uncommitted(engine: Engine) -> int:
    """Return how many records would be repeated if *engine* stopped now, if it is known."""
    return engine.uncommitted() if isinstance(engine, Drains) else 0


def node_needs(engine: Engine) -> NodeNeeds:
    """Return what *engine* needs of nodes itself; nothing if its nodes are always the same."""
    return engine.node_needs() if isinstance(engine, HasNodes) else NodeNeeds()


def kafka(engine: Engine) -> KafkaAccess:
    """Return how to connect to the Kafka of *engine*. Raise `EngineError` if it has none."""
    if not isinstance(engine, HasKafka):
        raise EngineError(f"{engine.name} does not use Kafka, so there are no dead letters")
    return engine.kafka()
