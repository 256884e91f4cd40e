"""The placement of a run's processors, as it was sent to hosts."""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from sojourn.decide.plan import ANYWHERE, HERE, Node, Plan
from sojourn.engine import Cost, check_plan
from sojourn.errors import EngineError
from sojourn.spark.agent.resources import core_use
from sojourn.spark.driver.hosts.controller import Controller
from sojourn.spark.wire.host_settings import HostSettings
from sojourn.topology import Topology


def this_machine() -> tuple[Node, ...]:
    """Return this machine, with the cores that this process may use."""
    return (Node(HERE, core_use().cores),)


class PlacedProcessors:
    """The processors of the Python operators, *functions*, placed at first as in *plan*.

    On a cluster they start when `use` names its nodes. For processors that a plan places
    `HERE`, hosts choose the node.
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
        return self._plan

    @property
    def nodes(self) -> Sequence[Node]:
        """This machine, or the current nodes of the cluster."""
        there = self._nodes()
        self._seen.update({node.name: node for node in there})
        return there

    @property
    def staying(self) -> Sequence[Node]:
        """The current nodes without those that are given back."""
        plan = self._plan.nodes
        return self.nodes if plan is None else plan.staying(self.nodes)

    def use(self, nodes: Callable[[], Sequence[Node]]) -> None:
        """Start the processors on the current *nodes* of a cluster."""
        with self._lock:
            self._nodes, self._waits = nodes, False
            for name in self._functions:
                self._controller.place(name, self._told(self._plan.placement[name]))

    def apply(self, plan: Plan, topology: Topology) -> Cost:
        """Send the placement of *plan* to hosts; it may name nodes that were just lost."""
        with self._lock:
            there = {node.name: node for node in self.nodes}
            # nodes seen earlier are valid too: a node may be lost after the plan was made
            check_plan(plan, topology, [*(self._seen | there).values()])
            changed = self._plan.changes(plan)
            if fixed := [name for name in changed if name not in self._functions]:
                raise EngineError(
                    f"{fixed[0]} runs inside Spark and cannot be scaled; leave it out"
                )
            before, self._plan = self._plan.placement, plan
            for name in self._functions:
                if plan.placement[name] != before.get(name):
                    # a host that is being restarted gets it when it connects
                    self._controller.place(name, self._told(plan.placement[name]))
        return Cost(changed=changed)

    def running(self) -> dict[str, int]:
        return {name: self._controller.running(name) for name in self._functions}

    def placed(self) -> dict[str, Mapping[str, int]]:
        return {name: self._controller.placed(name) for name in self._functions}

    def wanted_and_running(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Return the planned and the running processors by operator, of the same moment."""
        with self._lock:
            return self._plan.allocation, self.running()

    def of(self, host: HostSettings) -> HostSettings:
        """Return the settings of *host* with the processors of the current plan."""
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

    def _told(self, on: Mapping[str, int]) -> dict[str, int]:
        """Return the placement to send to a host: on a cluster, none is on its own machine.

        Before `use` there is none at all, because no node is known yet.
        """
        if not self._on_cluster:
            return dict(on)
        if self._waits:
            return {}
        return {ANYWHERE if node == HERE else node: k for node, k in on.items()}
