"""The processors of a run: how many, and on which nodes, as hosts were told."""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from sojourn.decide.plan import ANYWHERE, HERE, Node, Plan
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

    On a cluster they are on its nodes, once `use` says which: of those that a plan places
    `HERE` there, hosts choose the node.
    """

    def __init__(
        self,
        plan: Plan,
        functions: Collection[str],
        controller: Controller,
        *,
        on_cluster: bool,
    ) -> None:
        self._plan, self._functions, self._controller = plan, functions, controller
        self._on_cluster = self._waits = on_cluster
        self._nodes: Callable[[], Sequence[Node]] = this_machine
        self._seen = {HERE: Node(HERE)}
        self._lock = threading.Lock()

    @property
    def plan(self) -> Plan:
        """What was started with, or applied last."""
        return self._plan

    @property
    def nodes(self) -> Sequence[Node]:
        """This machine, or the nodes of a cluster that are there now."""
        there = self._nodes()
        self._seen.update({node.name: node for node in there})
        return there

    @property
    def staying(self) -> Sequence[Node]:
        """The nodes that are there and are not given back."""
        plan = self._plan.nodes
        return self.nodes if plan is None else plan.staying(self.nodes)

    @property
    def functions(self) -> Collection[str]:
        """The operators whose processors run on nodes."""
        return self._functions

    def use(self, nodes: Callable[[], Sequence[Node]]) -> None:
        """Start them, on the *nodes* of a cluster: on all of those that are there by now."""
        with self._lock:
            self._nodes, self._waits = nodes, False
            for name in self._functions:
                self._controller.place(name, self._told(self._plan.placement[name]))

    def apply(self, plan: Plan, topology: Topology) -> Cost:
        """Tell hosts how many processors they should have, and where.

        A plan may name nodes that have just gone.
        """
        with self._lock:
            there = {node.name: node for node in self.nodes}
            check_plan(plan, topology, [*(self._seen | there).values()])
            changed = self._plan.changes(plan)
            if fixed := [name for name in changed if name not in self._functions]:
                raise EngineError(
                    f"{fixed[0]} runs inside Spark and cannot be scaled; leave it out"
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
                on=self._told(plan.placement[name]) if self._on_cluster else None,
            )
            for name, operator in host.operators.items()
        }
        return replace(host, operators=operators)

    def _place(self, plan: Plan) -> None:
        """Tell hosts where processors should be, of operators of which that changes."""
        before, self._plan = self._plan.placement, plan
        for name in self._functions:
            if plan.placement[name] != before.get(name):
                self._controller.place(name, self._told(plan.placement[name]))

    def _told(self, on: Mapping[str, int]) -> dict[str, int]:
        """Return what a host is told: beside it there are no processors on a cluster."""
        if not self._on_cluster:
            return dict(on)
        if self._waits:
            return {}
        return {ANYWHERE if node == HERE else node: k for node, k in on.items()}
