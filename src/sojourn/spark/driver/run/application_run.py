"""What runs while an application does."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sojourn.engine import Health, InnerTopics, NodeHealth, PartHealth
from sojourn.measure.node_costs import NodeCosts
from sojourn.measure.report import Pull
from sojourn.spark.driver.batches import Batches
from sojourn.spark.driver.counters import Pulls
from sojourn.spark.driver.disk_watch import DiskWatch
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.nodes.node_cpu import NodeCpu
from sojourn.spark.driver.nodes.node_health import node_notices
from sojourn.spark.driver.notices import kafka_notices
from sojourn.spark.driver.query.query_builder import STATE_PARTITIONS
from sojourn.spark.driver.run.own_broker import OwnBroker
from sojourn.spark.driver.run.processes import Processes
from sojourn.spark.driver.state.checkpoints import Checkpoints
from sojourn.spark.driver.supervisor import QuerySupervisor

__all__ = ["ApplicationRun"]

# Beside the names of operators, which have no spaces.
_OWN_BROKER = "own broker"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationRun:
    """The processes and queries of an application, and what is known of them.

    It has a broker of its *own*, or uses those of a *cluster* that others run.
    """

    layout: Layout
    state: Checkpoints
    cluster: Cluster
    own: OwnBroker | None
    processes: Processes
    supervisor: QuerySupervisor
    pulls: Pulls
    batches: Batches
    disk: DiskWatch
    node_cpu: NodeCpu = field(default_factory=NodeCpu)

    def with_nodes(self, pull: Pull) -> Pull:
        """Return *pull* with the cores of nodes, on a cluster.

        What hosts and the driver compute is on the machine of the driver, whose cores
        processors do not use then.
        """
        if (cluster := self.processes.nodes) is None:
            return pull
        hosts = [part.nodes for part in self.pulls.parts.values()]
        bounds = cluster.bounds
        return replace(
            pull,
            cores=None,
            busy_cores=None,
            nodes=self.node_cpu.looked(hosts, self.processes.placed.nodes),
            per_node=bounds.processors if bounds.most is not None else 0,
            most_nodes=bounds.most or 0,
        )

    def health(self) -> Health:
        """Return what went wrong so far, and how it is now."""
        states, parts = dict(self.pulls.states), dict(self.pulls.parts)
        inner, own, offsets = self.layout.inner_topics, self.own, self.pulls.offsets
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
        watch = {} if self.own is None else {_OWN_BROKER: self.own.watch.restarts}
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
        told = kafka_notices(
            self.cluster.servers,
            away=offsets.away_s is not None,
            silent=offsets.silent,
            grown=offsets.grown,
            slots=self.processes.slots,
            needed=sum(self.layout.slots(offsets.numbers, STATE_PARTITIONS).values()),
        )
        pulls, queries = self.pulls, self.supervisor.notices
        return (
            *pulls.clocks.texts(),
            *pulls.held_up(),
            *self.disk.notices,
            *pulls.reading.notices,
            *queries,
            *told,
        )
