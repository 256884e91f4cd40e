"""What the loop drives: something that runs a topology and can be changed while it runs.

`Engine` is what every one can do. What only some can do is a Protocol of its own, which an
engine has by having its methods; the functions below ask for it, and say what is missing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self, TypeAlias, runtime_checkable

from sojourn.errors import BadAllocation, EngineError
from sojourn.measure.report import Pull
from sojourn.model.network import check_allocation
from sojourn.plan import Node, Plan
from sojourn.topology import Topology
from sojourn.topology.check import shown

__all__ = [
    "Cost",
    "Drains",
    "Engine",
    "HasHealth",
    "HasKafka",
    "Health",
    "KafkaAccess",
    "LeavesProcesses",
    "Progress",
    "check_plan",
    "drain",
    "health",
    "kafka",
    "uncommitted",
]

Progress: TypeAlias = Callable[[str], None]
"""Is told, a line at a time, how far something that takes long has come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a change of the plan cost: how long operators paused, what came again."""

    pause_s: float = 0.0
    replayed: int = 0
    changed: Mapping[str, tuple[int, int]]
    """Processors before and after, of the operators that changed."""


class Engine(Protocol):
    """A running application: started, looked at, changed, stopped.

    A context manager: leaving it stops the application, whatever happened. Only `EngineError`
    and errors about what was asked get out of it. Its clock starts at 0.

    `sojourn run` changes it in one thread while another looks: there `apply`, and what is
    asked below, may be called at any time.
    """

    @property
    def name(self) -> str:
        """What messages call it: Spark, the simulator."""
        ...

    @property
    def now_s(self) -> float:
        """The engine's clock."""
        ...

    @property
    def nodes(self) -> Sequence[Node]:
        """The machines that processors can be on."""
        ...

    @property
    def plan(self) -> Plan:
        """What should run: what was started with, or applied last; empty before the start."""
        ...

    def start(self, topology: Topology, plan: Plan) -> None:
        """Begin to run *topology* as *plan* has it.

        Raise `EngineError` if it runs already, and `BadAllocation` if the plan is not for
        these operators and nodes.
        """
        ...

    def observe(self, until_s: float) -> Pull:
        """Return what was counted since the last look, at *until_s* on the engine's clock.

        It waits until then, and not longer: what is late is left for the next look.
        """
        ...

    def apply(self, plan: Plan) -> Cost:
        """Change the running application, and return what it cost.

        Applying the same twice is applying it once. No record may be lost. Raise
        `BadAllocation`, and change nothing, if *plan* is not for these operators and nodes.
        """
        ...

    def stop(self) -> None:
        """End the application. Stopping what does not run does nothing."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


def check_plan(plan: Plan, topology: Topology, nodes: Sequence[Node]) -> None:
    """Raise `BadAllocation` unless *plan* is for the operators of *topology* on *nodes*."""
    check_allocation(topology, plan.allocation)
    names = [node.name for node in nodes]
    for operator, on in plan.placement.items():
        for node in on:
            if node not in names:
                raise BadAllocation(
                    f"{operator}: there is no node {shown(node)}; place it on "
                    f"{' or '.join(names)}"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What went wrong so far, and what became of it.

    *restarts* by operator, records *replayed* from memory, *retried* after an error, kept as
    *dead_letters*; *running* are the processors that can take records now. Of the roots that
    are followed some *trees* are *open*, and some were *forgotten* because too many were.
    *unkept* is why the state does not have the processors of now, if it has not: the next
    start begins with others. *failure* is why the application stopped, if it did. Brokers have
    not answered for *no_broker_s*, if they do not; *notices* are what somebody should know,
    each in a sentence that stays the same while it lasts. The topics between operators, if
    there are any, hold *held_records*, and where that is known so many *held_bytes*.
    """

    restarts: Mapping[str, int] = field(default_factory=dict)
    replayed: int = 0
    retried: int = 0
    dead_letters: int = 0
    running: Mapping[str, int] = field(default_factory=dict)
    trees_open: int = 0
    trees_forgotten: int = 0
    unkept: str = ""
    failure: str = ""
    no_broker_s: float | None = None
    notices: tuple[str, ...] = ()
    held_records: int | None = None
    held_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaAccess:
    """How the Kafka of an application is reached.

    *clients* are settings of clients, which may be secrets; *client_properties* the path of
    a file with what Kafka's own tools need for a broker of the application's own.
    """

    servers: str
    clients: Mapping[str, str] = field(repr=False)
    client_properties: str | None = None


@runtime_checkable
class HasHealth(Protocol):
    """An engine that tells what went wrong."""

    def health(self) -> Health:
        """Return how it is."""
        ...


@runtime_checkable
class Drains(Protocol):
    """An engine that can end what was begun before it stops."""

    def drain(self, progress: Progress) -> None:
        """Take nothing more in, end what was begun and commit it."""
        ...

    def uncommitted(self) -> int:
        """Return how many records that were begun would come again if it stopped now."""
        ...


@runtime_checkable
class HasKafka(Protocol):
    """An engine that reads from Kafka."""

    def kafka(self) -> KafkaAccess:
        """Return how that is reached."""
        ...


@runtime_checkable
class LeavesProcesses(Protocol):
    """An engine whose processes may use its state for a moment after it was killed."""

    def await_unused(self) -> None:
        """Return when nothing uses the state that a run before has left."""
        ...


def health(engine: Engine) -> Health:
    """Return how *engine* is; nothing is known to be wrong with one that does not tell."""
    return engine.health() if isinstance(engine, HasHealth) else Health()


def drain(engine: Engine, progress: Progress) -> None:
    """Let *engine* end what was begun. Raise `EngineError` if it cannot."""
    if not isinstance(engine, Drains):
        raise EngineError(f"{engine.name} cannot end what was begun; it is stopped as it is")
    engine.drain(progress)


def uncommitted(engine: Engine) -> int:
    """Return how many records come again if *engine* stops now, as far as it knows."""
    return engine.uncommitted() if isinstance(engine, Drains) else 0


def kafka(engine: Engine) -> KafkaAccess:
    """Return how the Kafka of *engine* is reached. Raise `EngineError` if it has none."""
    if not isinstance(engine, HasKafka):
        raise EngineError(f"{engine.name} has no Kafka, and so no dead letters")
    return engine.kafka()
