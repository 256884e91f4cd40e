"""A running application: its start (state, Kafka, processes, queries), and its health."""

import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from sojourn.engine import Health, InnerTopics, NodeHealth, PartHealth
from sojourn.errors import EngineError
from sojourn.measure.node_costs import NodeCosts
from sojourn.measure.report import Pull
from sojourn.spark.driver.batches import Batches
from sojourn.spark.driver.busy_cores import NodeCpu
from sojourn.spark.driver.counters import Pulls
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.load.offered_load import Load, load_sources
from sojourn.spark.driver.load.producer import LoadProcess
from sojourn.spark.driver.nodes.node_health import node_notices
from sojourn.spark.driver.run.processes import RunProcesses, start_processes
from sojourn.spark.driver.run.queries import start_queries
from sojourn.spark.driver.run.run_kafka import RunKafka, open_kafka
from sojourn.spark.driver.run.run_state import RunState, open_state
from sojourn.spark.driver.run.start_request import StartRequest
from sojourn.spark.driver.state.checkpoints import Checkpoints
from sojourn.spark.driver.supervisor import QuerySupervisor
from sojourn.spark.wire.counters import PartTally

_LOOK_S = 0.05

# Cannot collide with the name of an operator, which has no spaces.
_OWN_BROKER = "own broker"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationRun:
    layout: Layout
    state: Checkpoints
    kafka: RunKafka
    processes: RunProcesses
    supervisor: QuerySupervisor
    """Restarts queries that fail."""
    pulls: Pulls
    batches: Batches
    node_cpu: NodeCpu = field(default_factory=NodeCpu)

    def with_nodes(self, pull: Pull) -> Pull:
        """Return *pull* with the cores of nodes, if it runs on a cluster.

        The driver's machine is left out: hosts and the driver compute there, processors do not.
        """
        if (cluster := self.processes.nodes) is None:
            return pull
        hosts = [part.nodes for part in self.pulls.parts.values()]
        return replace(
            pull,
            cores=None,
            busy_cores=None,
            nodes=self.node_cpu.looked(hosts, self.processes.placed.staying),
            node_costs=cluster.costs,
        )

    def health(self) -> Health:
        states, parts = dict(self.pulls.states), dict(self.pulls.parts)
        inner, own, offsets = self.layout.inner_topics, self.kafka.own, self.pulls.offsets
        cluster, nodes = self.processes.nodes, self._nodes()
        refused = "" if cluster is None else cluster.refused
        return Health(
            restarts=self._restarts(),
            replayed=sum(state.repeated for state in parts.values()),
            retried=sum(state.retried for state in states.values()),
            dead_letters=sum(state.dead for state in states.values()),
            nulls=sum(state.nulls for state in states.values()),
            running=self.processes.placed.running(),
            trees_open=len(self.pulls.trees),
            trees_forgotten=self.pulls.trees.forgotten,
            no_broker_s=offsets.away_s,
            notices=(*self._notices(), *node_notices(nodes, refused)),
            waits_for=self.pulls.reading.waits_for,
            inner_topics=InnerTopics(
                records=offsets.held(inner) if inner else None,
                bytes=None if own is None or not inner else own.broker.size_bytes(inner),
            ),
            parts=tuple(
                PartHealth(
                    operators=part.operators,
                    open_records=parts[name].open if name in parts else 0,
                    projections=part.projections,
                )
                for name, part in self.layout.parts.items()
            ),
            nodes=nodes,
            node_s=None if cluster is None else cluster.node_s,
            node_costs=NodeCosts() if cluster is None else cluster.costs,
        )

    def _restarts(self) -> Mapping[str, int]:
        own = self.kafka.own
        watch = {} if own is None else {_OWN_BROKER: own.restarts}
        return self.supervisor.restarts | watch

    def _nodes(self) -> tuple[NodeHealth, ...]:
        if (nodes := self.processes.nodes) is None:
            return ()
        states, parts = dict(self.pulls.states), dict(self.pulls.parts)
        return nodes.health(
            self.processes.placed.placed(),
            {name: each.memory for name, each in states.items()},
            [part.nodes for part in parts.values()],
            self.node_cpu.last,
        )

    def _notices(self) -> tuple[str, ...]:
        offsets = self.pulls.offsets
        told = _kafka_notices(
            self.kafka.cluster.servers,
            away=offsets.away_s is not None,
            silent=offsets.silent,
            grown=offsets.grown,
            slots=self.processes.slots,
            needed=sum(self.layout.slots(offsets.numbers).values()),
        )
        pulls, supervisor = self.pulls, self.supervisor
        return (
            *pulls.clocks.texts(),
            *pulls.held_up(),
            *supervisor.disk.notices,
            *pulls.reading.notices,
            *supervisor.notices,
            *told,
        )


def start_application(request: StartRequest, stack: ExitStack) -> ApplicationRun:
    """Start an application, and return when every operator can take records.

    Everything that was started ends with *stack*.
    """
    state = open_state(request, stack)
    kafka = open_kafka(request, state, stack)
    processes = start_processes(request, state, kafka, stack)
    supervisor, starting = start_queries(request, state, kafka, processes, stack)
    early = _await_relays(request, state, kafka, processes)
    pulls = _begin_counting(request, kafka, starting, early, stack)
    _send_load(request, kafka, stack)
    return ApplicationRun(
        layout=request.layout,
        state=state.checkpoints,
        kafka=kafka,
        processes=processes,
        supervisor=supervisor,
        pulls=pulls,
        batches=Batches(
            layout=request.layout,
            state=state.checkpoints,
            controller=processes.controller,
            pulls=pulls,
            since_s=time.time(),
            batch_s=request.settings.batch_s,
        ),
    )


def _await_relays(
    request: StartRequest, state: RunState, kafka: RunKafka, processes: RunProcesses
) -> dict[str, list[PartTally]]:
    """Wait until every host has a relay for each task of its query; return reports by part."""
    request.progress("waiting for Spark to read from Kafka")
    early: dict[str, list[PartTally]] = {}
    left, until_s = set(processes.hosts), time.monotonic() + request.patience_s
    while left:
        request.end.check()
        if time.monotonic() > until_s:
            raise EngineError(
                f"{', '.join(sorted(left))}: Spark did not read from Kafka within "
                f"{request.patience_s:g} s; see {state.checkpoints.logs / 'spark.log'}"
            )
        processes.controller.ask()
        time.sleep(_LOOK_S)
        for name, tallies in processes.controller.tallies().items():
            early.setdefault(name, []).extend(tallies)
            # each task of the query has a relay, and reads one partition
            if tallies[-1].state.relays >= kafka.held[name]:
                left.discard(name)
    return early


def _begin_counting(
    request: StartRequest,
    kafka: RunKafka,
    starting: dict[str, dict[str, dict[int, int]]],
    early: dict[str, list[PartTally]],
    stack: ExitStack,
) -> Pulls:
    """Return the counters, which begin now; *early* are reports from before."""
    layout, offsets, began_s = request.layout, kafka.offsets, time.monotonic()
    offsets.start()
    stack.callback(offsets.stop)
    ends = offsets.partitions()
    written = {
        name: {topic: ends[topic] for topic in layout.writes(name).values()}
        for name in layout.natives
    }
    pulls = Pulls(layout, offsets, starting, written, began_s)
    pulls.begin(early, ends)
    return pulls


def _send_load(request: StartRequest, kafka: RunKafka, stack: ExitStack) -> None:
    """Start a process that sends the load of the settings, if any, until *stack* ends."""
    if not (rates := request.settings.load):
        return
    load = Load(
        servers=kafka.cluster.servers,
        sources=load_sources(request.layout.app, request.layout.address, rates),
        lasts_s=max(points[-1][0] for points in rates.values()),
        kafka=dict(kafka.cluster.for_clients),
    )
    stack.enter_context(LoadProcess(load))


def _kafka_notices(
    servers: str,
    *,
    away: bool,
    silent: Iterable[tuple[str, int]] = (),
    grown: Mapping[str, tuple[int, int]] | None = None,
    slots: int = 0,
    needed: int = 0,
) -> tuple[str, ...]:
    """Return a notice for each problem or change of topics; texts stay the same while it lasts.

    New partitions are read from the next batch on, if *slots* suffice for all *needed* tasks.

    >>> _kafka_notices("k:9092", away=False, silent=[("orders", 2)])
    ('orders[2] has no leader; its records wait, other partitions are read',)
    >>> _kafka_notices("k:9092", away=False, grown={"orders": (2, 3)}, slots=8, needed=4)
    ('orders has 3 partitions, 2 at the start; new ones are read from the next batch on',)
    """
    if away:
        return (f"no broker answers at {servers}; the application waits until one does",)
    then = (
        "new ones are read from the next batch on"
        if needed <= slots
        else f"Spark has {slots} slots, and {needed} are needed: restart to read all of them"
    )
    return (
        *(
            f"{topic}[{partition}] has no leader; its records wait, other partitions are read"
            for topic, partition in sorted(silent)
        ),
        *(
            f"{topic} has {now} partitions, {before} at the start; {then}"
            for topic, (before, now) in sorted((grown or {}).items())
        ),
    )
