"""The nodes of an application on a cluster: an agent on each executor, and who is on it."""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Self

from pyspark.sql import SparkSession

from sojourn.app.loading import import_path
from sojourn.decide.place.round_robin import place
from sojourn.engine import NodeHealth, Progress
from sojourn.errors import EngineError
from sojourn.host.node.agent import node_name
from sojourn.host.report.controller import Controller
from sojourn.negotiator import Negotiator
from sojourn.plan import Node, Placement, Plan
from sojourn.spark.nodes.agent_start import AgentCommand, agent_starts
from sojourn.spark.nodes.agents import Agents, NodeEvents
from sojourn.spark.nodes.executors import Executor, executors
from sojourn.spark.nodes.negotiator import SparkNegotiator
from sojourn.spark.nodes.node_health import node_health, node_order
from sojourn.spark.nodes.node_scaling import AskFor, NodeBounds, NodeScaling, Release

__all__ = ["ClusterNodes"]

_LOOK_S, _SCALE_S = 0.05, 0.5
# An agent whose executor lives connects again by itself, unless it has ended.
_AWAY_S = 3.0


class ClusterNodes:
    """The nodes on which the hosts of *controller* can have processors.

    There is a host for each of *parts*, which have operators. Other machines reach hosts at
    *machine*. When nodes have come or gone, *changed* is called.
    There are as many, within *bounds*, as the *processors* that are wanted need.
    """

    def __init__(  # noqa: PLR0913 - most by name
        self,
        session: SparkSession,
        controller: Controller,
        *,
        parts: Mapping[str, Collection[str]],
        machine: str,
        changed: Callable[[], None],
        processors: Callable[[], int],
        bounds: NodeBounds,
    ) -> None:
        self._session, self._controller, self._changed = session, controller, changed
        hosts = {part: (machine, controller.port(part)) for part in parts}
        told = {
            "hosts": hosts,
            "secret": controller.secret.hex(),
            "certificate": controller.certificate,
            "logs": "logs",
            "path": import_path(),
        }
        self._agents = Agents(
            lambda: executors(session),
            agent_starts(session, AgentCommand(settings=told)),
            NodeEvents(come=self._came, gone=self._gone, failed=self._not_started),
        )
        self._operators = [name for names in parts.values() for name in names]
        self._processors, self._bounds = processors, bounds
        self._scaling, self._scaled_s = NodeScaling(bounds), 0.0
        self._negotiator = None if bounds.most is None else SparkNegotiator(session)
        self._leaving: set[str] = set()
        self._refused = ""
        self._failures: dict[str, str] = {}
        self._away_s: dict[str, float] = {}
        self._known: Mapping[str, float] = {}
        self._seen = controller.told_nodes()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="nodes", daemon=True)

    def __enter__(self) -> Self:
        self._agents.__enter__()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        self._agents.close()

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes that are there now, and stay, in the order of their executors."""
        there = self._controller.nodes()
        staying = sorted(there.keys() - self._leaving, key=node_order)
        return tuple(Node(name, there[name]) for name in staying)

    @property
    def slots(self) -> int:
        """Tasks that executors can run at once, beside one each that starts agents."""
        return sum(each.cores - 1 for each in executors(self._session))

    @property
    def failures(self) -> dict[str, str]:
        """Why agents did not start, by the name of the node of each executor there is."""
        there = [node_name(each.id) for each in self._agents.registered]
        return {name: self._failures[name] for name in there if name in self._failures}

    def health(
        self, placed: Placement, memory: Mapping[str, Mapping[str, int]]
    ) -> tuple[NodeHealth, ...]:
        """Return how nodes are, where processors are *placed* and use so much *memory*."""
        there = self._controller.told_nodes()
        names = {node_name(each.id) for each in self._agents.registered} | there.keys()
        seen = self._seen | there
        self._seen = {name: node for name, node in seen.items() if name in names}
        return node_health(there, self._seen, self.failures, placed, memory)

    @property
    def refused(self) -> str:
        """Why the cluster did not give, or take back, a node; empty if it did."""
        return self._refused

    def begin(self, progress: Progress, patience_s: float) -> None:
        """Return when enough nodes are there, and all executors that have registered.

        Raise `EngineError` if they do not come within *patience_s*.
        """
        progress("waiting for executors of Spark")
        until_s, number = time.monotonic() + patience_s, self._bounds.least
        while True:
            there, registered = self.nodes, executors(self._session)
            if len(there) >= max(number, len(registered) - len(self.failures), 1):
                break
            if time.monotonic() > until_s:
                why = "".join(f"; {name}: {said}" for name, said in self.failures.items())
                raise EngineError(
                    f"{len(there)} of {number} nodes are there after {patience_s:g} s, of "
                    f"{len(registered)} executors{why}"
                )
            time.sleep(_LOOK_S)
        self._known = self._controller.nodes()
        self._thread.start()

    def placed(self, plan: Plan) -> Plan:
        """Return *plan* on nodes that are there, in turn where it names others."""
        there = self.nodes
        names = {node.name for node in there}
        if {node for on in plan.placement.values() for node in on} <= names or not there:
            return plan
        return replace(plan, placement=place(plan.allocation, there))

    # -- inside ---------------------------------------------------------------------------

    def _came(self, executor: Executor) -> None:
        self._failures.pop(node_name(executor.id), None)

    def _gone(self, executor: Executor) -> None:
        self._failures.pop(node_name(executor.id), None)

    def _not_started(self, executor: Executor, reason: str) -> None:
        self._failures[node_name(executor.id)] = reason

    def _watch(self) -> None:
        while not self._stopping.wait(_LOOK_S):
            there = self._controller.nodes()
            if there.keys() != self._known.keys():
                self._known = there
                self._leaving &= there.keys()
                self._changed()
            self._start_again(there)
            if self._negotiator is not None and time.monotonic() > self._scaled_s + _SCALE_S:
                self._scale(self._negotiator)
                self._scaled_s = time.monotonic()

    def _start_again(self, there: Mapping[str, float]) -> None:
        """Have agents started again that have ended while their executor lives."""
        now_s = time.monotonic()
        ready = {node_name(each.id): each.id for each in self._agents.ready}
        away = ready.keys() - there.keys()
        self._away_s = {name: self._away_s.get(name, now_s) for name in away}
        for name, since_s in list(self._away_s.items()):
            if now_s - since_s > _AWAY_S:
                del self._away_s[name]
                self._agents.lost(ready[name])

    def _scale(self, negotiator: Negotiator) -> None:
        """Ask for nodes, and give back those on which nothing is any more."""
        try:
            reads = {node_name(each.id) for each in executors(self._session) if each.tasks}
            # the last one goes first; one that reads from Kafka could not before its batch ends
            names = sorted((n.name for n in self.nodes), key=lambda name: name not in reads)
            step = self._scaling.step(
                time.monotonic(), self._processors(), names, wanted=negotiator.wanted
            )
            match step:
                case AskFor(number):
                    negotiator.ask(number)
                case Release(node):
                    self._leaving.add(node)
                    self._changed()
            empty = [node for node in self._leaving if not self._is_used(node)]
            ids = {node_name(each.id): each.id for each in self._agents.registered}
            negotiator.give_back([ids[node] for node in empty if node in ids])
        except EngineError as error:
            self._refused = str(error)  # the next look tries again
        else:
            self._refused = ""

    def _is_used(self, node: str) -> bool:
        return any(node in self._controller.placed(name) for name in self._operators)
