"""The nodes of an application on a cluster: executors with an agent on each."""

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Self

import msgspec
from pyspark.sql import SparkSession

from sojourn.app.loading import import_path
from sojourn.decide.plan import Node, NodePlan, Placement
from sojourn.engine import NodeHealth, Progress
from sojourn.errors import EngineError
from sojourn.measure.node_costs import NodeCosts, NodeTime
from sojourn.measure.report import NodeReport
from sojourn.spark.agent.agent import node_name
from sojourn.spark.agent.kafka_reach import KafkaBrokers
from sojourn.spark.driver.hosts.controller import Controller
from sojourn.spark.driver.nodes.agent_start import AgentCommand, agent_starts
from sojourn.spark.driver.nodes.agents import Agents
from sojourn.spark.driver.nodes.executors import executors
from sojourn.spark.driver.nodes.negotiator import (
    RequestedNodes,
    SparkNegotiator,
    remove_executor,
)
from sojourn.spark.driver.nodes.node_health import (
    NodeWarnings,
    node_health,
    node_order,
)
from sojourn.spark.driver.state.shared_folder import SharedFolder
from sojourn.spark.wire.counters import NodeState

_LOOK_S, _REQUEST_S = 0.05, 0.25
# An agent that has lost its connection reconnects in less; after that it must have ended.
_AWAY_S = 3.0
# How often nodes check whether they reach Kafka, while nothing is read.
_CHECK_S = 5.0


class ClusterNodes:
    """The nodes on which the hosts of *controller* can have processors.

    *parts* are the operators of each host. Other machines reach hosts at the address
    *machine*. A start waits for *least* nodes; if nodes are *elastic*, plans may request and
    give back nodes. Each node must reach the brokers of *kafka*, and the *shared* folder if
    there is one.
    """

    def __init__(  # noqa: PLR0913 - most by name
        self,
        session: SparkSession,
        controller: Controller,
        *,
        parts: Mapping[str, Collection[str]],
        machine: str,
        least: int,
        elastic: bool,
        kafka: KafkaBrokers,
        shared: SharedFolder | None = None,
    ) -> None:
        self._session, self._controller, self.least = session, controller, least
        self._changed: Callable[[], None] = lambda: None
        hosts = {part: (machine, controller.launcher.port(part)) for part in parts}
        told = {
            "hosts": hosts,
            "secret": controller.launcher.secret.hex(),
            "certificate": controller.launcher.certificate,
            "logs": "logs",
            "path": import_path(),
            "kafka": msgspec.to_builtins(kafka),
        }
        start = agent_starts(session, AgentCommand(settings=told))
        self._agents = Agents(
            lambda: executors(session),
            start if shared is None else shared.before(start),
        )
        operators = [name for names in parts.values() for name in names]
        self._requested = (
            RequestedNodes(SparkNegotiator(session), operators, controller) if elastic else None
        )
        self._requested_s, self._time = 0.0, NodeTime()
        self._checked_s = 0.0
        self._silent_s: dict[str, float] = {}
        self._away_s: dict[str, float] = {}
        self._known: Mapping[str, float] = {}
        self._seen, self._warnings = controller.told_nodes(), NodeWarnings()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="nodes", daemon=True)

    def __enter__(self) -> Self:
        self._agents.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        self._agents.__exit__(*exception)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes that all hosts are connected to, in the order of their executors."""
        there = self._controller.nodes()
        reads = {node_name(each.id) for each in self._agents.registered if each.tasks}
        return tuple(
            Node(name, there[name], reads=name in reads)
            for name in sorted(there, key=node_order)
        )

    def request(self, plan: NodePlan | None) -> None:
        """Request and give back nodes as in *plan*.

        Raise `EngineError` if their number is fixed.
        """
        if self._requested is not None:
            self._requested.plan = plan
        elif plan is not None:
            raise EngineError("the number of nodes is fixed; start with --max-nodes")

    def on_changed(self, changed: Callable[[], None]) -> None:
        """Register *changed*, to be called when nodes have come or gone."""
        self._changed = changed

    @property
    def slots(self) -> int:
        """The slots of all executors, without the one on each that starts its agent."""
        return sum(each.cores - 1 for each in executors(self._session))

    @property
    def failures(self) -> dict[str, str]:
        """The reasons why agents did not start, by node, for registered executors."""
        return {node_name(each): why for each, why in self._agents.problems.items()}

    def health(
        self,
        placed: Placement,
        memory: Mapping[str, Mapping[str, int]],
        hosts: Sequence[Mapping[str, NodeState]],
        cores: Mapping[str, NodeReport],
    ) -> tuple[NodeHealth, ...]:
        """Return the health of nodes (`node_health`, with these arguments), with warnings."""
        there = self._controller.told_nodes()
        names = {node_name(each.id) for each in self._agents.registered} | there.keys()
        seen = self._seen | there
        self._seen = {name: node for name, node in seen.items() if name in names}
        nodes = node_health(
            there, self._seen, self.failures, placed, memory, hosts=hosts, cores=cores
        )
        return self._warnings.added(nodes)

    def check_kafka(self) -> None:
        """Make nodes check their connection to Kafka, at most once in five seconds."""
        now_s = time.monotonic()
        if now_s >= self._checked_s + _CHECK_S:
            self._checked_s = now_s
            self._controller.check_nodes()

    @property
    def node_s(self) -> float:
        """The time that all executors were registered so far, added up."""
        return self._time.until(time.monotonic())

    @property
    def costs(self) -> NodeCosts:
        return NodeCosts() if self._requested is None else self._requested.moves.costs

    @property
    def refused(self) -> str:
        return "" if self._requested is None else self._requested.refused

    def begin(self, progress: Progress, patience_s: float) -> None:
        """Wait for the minimum of nodes, and for the agents of all registered executors.

        Agents that have failed to start are not waited for. Raise `EngineError` if the others
        are not ready within *patience_s*.
        """
        progress("waiting for executors of Spark")
        until_s, number = time.monotonic() + patience_s, self.least
        while True:
            there, registered = self.nodes, executors(self._session)
            self._time = self._time.saw(time.monotonic(), [each.id for each in registered])
            if len(there) >= max(number, len(registered) - len(self.failures), 1):
                break
            if time.monotonic() > until_s:
                why = "".join(f"; {name}: {said}" for name, said in self.failures.items())
                raise EngineError(
                    f"only {len(there)} of {number} nodes became ready within "
                    f"{patience_s:g} s ({len(registered)} executors registered){why}"
                )
            time.sleep(_LOOK_S)
        self._known = self._controller.nodes()
        self._thread.start()

    def _watch(self) -> None:
        while not self._stopping.wait(_LOOK_S):
            there = self._controller.nodes()
            registered = [each.id for each in self._agents.registered]
            self._time = self._time.saw(time.monotonic(), registered)
            # compared by name: cores may change without a node having come or gone
            if there.keys() != self._known.keys():
                self._known = there
                self._changed()
            executor_of = {node_name(each.id): each.id for each in self._agents.registered}
            self._remove_silent(executor_of)
            self._start_again(there)
            if (
                self._requested is not None
                and time.monotonic() > self._requested_s + _REQUEST_S
            ):
                self._requested_s = time.monotonic()
                self._requested.look(time.monotonic(), list(there), executor_of)

    def _remove_silent(self, executor_of: Mapping[str, str]) -> None:
        """Remove the executors of nodes that fell silent since the last look."""
        for name, at_s in self._controller.silent_nodes().items():
            if self._silent_s.get(name) != at_s and name in executor_of:
                threading.Thread(
                    target=remove_executor, args=(self._session, executor_of[name]), daemon=True
                ).start()
            self._silent_s[name] = at_s

    def _start_again(self, there: Mapping[str, float]) -> None:
        """Restart agents that have ended while their executor is still registered."""
        now_s = time.monotonic()
        ready = {node_name(each.id): each.id for each in self._agents.ready}
        away = ready.keys() - there.keys()
        self._away_s = {name: self._away_s.get(name, now_s) for name in away}
        for name, since_s in list(self._away_s.items()):
            if now_s - since_s > _AWAY_S:
                del self._away_s[name]
                self._agents.lost(ready[name])
