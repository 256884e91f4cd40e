"""A running application, and its health."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from sojourn.engine import Health, InnerTopics, NodeHealth, PartHealth
from sojourn.measure.node_costs import NodeCosts
from sojourn.measure.report import Pull
from sojourn.spark.driver.batches import Batches
from sojourn.spark.driver.counters import Pulls
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.nodes.node_cpu import NodeCpu
from sojourn.spark.driver.nodes.node_health import node_notices
from sojourn.spark.driver.query.query_builder import STATE_PARTITIONS
from sojourn.spark.driver.run.processes import RunProcesses
from sojourn.spark.driver.run.queries import Queries
from sojourn.spark.driver.run.run_kafka import RunKafka
from sojourn.spark.driver.state.checkpoints import Checkpoints

__all__ = ["ApplicationRun"]

# Cannot collide with the name of an operator, which has no spaces.
_OWN_BROKER = "own broker"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationRun:
    """The processes and queries of a running application, with its counters."""

    layout: Layout
    state: Checkpoints
    kafka: RunKafka
    processes: RunProcesses
    queries: Queries
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
        """Return the failures so far, and the current status of parts and nodes."""
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
        return self.queries.supervisor.restarts | watch

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
            needed=sum(self.layout.slots(offsets.numbers, STATE_PARTITIONS).values()),
        )
        pulls, queries = self.pulls, self.queries
        return (
            *pulls.clocks.texts(),
            *pulls.held_up(),
            *queries.disk.notices,
            *pulls.reading.notices,
            *queries.supervisor.notices,
            *told,
        )


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
