"""What the loop drives: something that runs a topology and can be changed while it runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from sojourn.errors import BadAllocation
from sojourn.measure.report import Pull
from sojourn.model.network import check_allocation
from sojourn.plan import Node, Plan
from sojourn.topology import Topology
from sojourn.topology.check import shown

__all__ = ["Cost", "Engine", "check_plan"]


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
    """

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
