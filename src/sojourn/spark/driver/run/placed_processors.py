"""The processors of a run: how many, and on which nodes, as hosts were told."""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from sojourn.decide.place.base import PlacementRequest
from sojourn.decide.place.round_robin import place
from sojourn.decide.plan import HERE, Node, Plan
from sojourn.engine import Cost, check_plan
from sojourn.errors import EngineError
from sojourn.spark.agent.cores import core_use
from sojourn.spark.driver.hosts.controller import Controller
from sojourn.spark.wire.host_settings import HostSettings
from sojourn.topology import Topology

__all__ = ["PlacedProcessors", "this_machine"]


def this_machine() -> tuple[Node, ...]:
    """Return this machine, with the cores that this process may use."""
    return (Node(HERE, core_use().cores),)


class PlacedProcessors:
    """The processors of operators in Python, *functions*, which begin as *plan* says.

    On a cluster they are *everywhere*: on its nodes, once it is told which there are.
    """

    def __init__(
        self,
        plan: Plan,
        functions: Collection[str],
        controller: Controller,
        *,
        everywhere: bool,
    ) -> None:
        self._plan, self._functions, self._controller = plan, functions, controller
        self._everywhere = everywhere
        self._nodes: Callable[[], Sequence[Node]] = this_machine
        self._seen = {HERE}
        self._lock = threading.Lock()

    @property
    def plan(self) -> Plan:
        """What was started with, or applied last."""
        return self._plan

    @property
    def nodes(self) -> Sequence[Node]:
        """This machine, or the nodes of a cluster that are there now."""
        there = self._nodes()
        self._seen.update(node.name for node in there)
        return there

    @property
    def wanted(self) -> int:
        """How many processors there should be in all."""
        return sum(self._plan.allocation[name] for name in self._functions)

    def use(self, nodes: Callable[[], Sequence[Node]]) -> None:
        """Have them on the *nodes* of a cluster from now on."""
        self._nodes = nodes
        self.spread()

    def spread(self) -> None:
        """Have the same processors on the nodes that there are now."""
        with self._lock:
            if there := self.nodes:
                self._place(self._in_turn(self._plan, there))

    def apply(self, plan: Plan, topology: Topology) -> Cost:
        """Tell hosts how many they should have.

        They are on nodes in turn if *plan* names this machine, or nodes that are gone.
        """
        with self._lock:
            nodes = self.nodes
            elsewhere = {node for on in plan.placement.values() for node in on}
            elsewhere -= {node.name for node in nodes}
            if self._everywhere and nodes and elsewhere and elsewhere <= self._seen:
                plan = self._in_turn(plan, nodes)
            check_plan(plan, topology, nodes)
            changed = self._plan.changes(plan)
            if fixed := [name for name in changed if name not in self._functions]:
                raise EngineError(
                    f"{fixed[0]} runs inside Spark, and its processors are fixed; leave it"
                )
            # of a host that is being started again the new number is kept for its start
            self._place(plan)
        return Cost(changed=changed)

    def running(self) -> dict[str, int]:
        """Return how many there are of each operator."""
        return {name: self._controller.running(name) for name in self._functions}

    def placed(self) -> dict[str, Mapping[str, int]]:
        """Return how many there are of each operator, by node."""
        return {name: self._controller.placed(name) for name in self._functions}

    def wanted_and_running(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Return how many there should be of each operator, and are, at one moment."""
        with self._lock:
            return self._plan.allocation, self.running()

    def of(self, host: HostSettings) -> HostSettings:
        """Return the settings of a *host* with the processors that it should have now."""
        plan = self._plan
        operators = {
            name: replace(
                operator,
                processors=plan.allocation[name],
                on=_on_nodes(plan.placement[name]) if self._everywhere else None,
            )
            for name, operator in host.operators.items()
        }
        return replace(host, operators=operators)

    def _in_turn(self, plan: Plan, nodes: Sequence[Node]) -> Plan:
        """Return *plan* on *nodes*; what runs inside Spark comes last, as it is not placed."""
        first = sorted(plan.allocation, key=lambda name: name not in self._functions)
        ordered = {name: plan.allocation[name] for name in first}
        return replace(plan, placement=place(PlacementRequest(allocation=ordered, nodes=nodes)))

    def _place(self, plan: Plan) -> None:
        """Tell hosts where processors should be, of operators of which that changes."""
        before, self._plan = self._plan.placement, plan
        for name in self._functions:
            if plan.placement[name] != before.get(name):
                self._controller.place(name, plan.placement[name])


def _on_nodes(on: Mapping[str, int]) -> dict[str, int]:
    """Return where processors are, without those that have no node yet."""
    return {node: k for node, k in on.items() if node != HERE}
