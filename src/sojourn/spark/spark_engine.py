"""Spark as an engine: the loop drives a running application as it drives the simulator."""

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self
from uuid import uuid4

from pyspark.sql.streaming.query import StreamingQuery

from sojourn.app.application import App
from sojourn.decide.place.round_robin import place
from sojourn.engine import (
    Cost,
    Health,
    KafkaAccess,
    NodeHealth,
    PartHealth,
    Progress,
    check_plan,
)
from sojourn.errors import ApplicationStopped, BrokerAway, EngineError
from sojourn.host.log_rotation import LogRotation
from sojourn.host.node.encryption import RunIdentity
from sojourn.host.report.controller import Controller
from sojourn.host.report.counting import PartTally
from sojourn.host.server import HostSettings
from sojourn.last_allocation import keep_allocation
from sojourn.measure.node_costs import NodeCosts
from sojourn.measure.report import Pull
from sojourn.plan import HERE, Node, Plan
from sojourn.spark.batches import Batches, end_early, end_in_time, wake_readers
from sojourn.spark.jvm.jars import resolve_jars
from sojourn.spark.jvm.session import end_session, new_session, remove_with_java, tasks_of
from sojourn.spark.kafka.append_times import AppendTimes
from sojourn.spark.kafka.broker import Broker
from sojourn.spark.kafka.broker_watch import BrokerWatch
from sojourn.spark.kafka.cluster import Cluster
from sojourn.spark.kafka.offsets import Offsets
from sojourn.spark.kafka.ports import HOST
from sojourn.spark.kafka.root_marks import root_marks, state_epoch
from sojourn.spark.kafka.trimming import Trimming
from sojourn.spark.layout import Layout, check_slots, spare_slots
from sojourn.spark.load.offered_load import Load
from sojourn.spark.load.producer import LoadProcess
from sojourn.spark.load.samples import load_sources
from sojourn.spark.nodes.cluster_nodes import ClusterNodes
from sojourn.spark.nodes.executors import executors
from sojourn.spark.nodes.memory_need import executor_warning
from sojourn.spark.nodes.node_health import node_notices
from sojourn.spark.notices import kafka_notices
from sojourn.spark.pulls import Pulls
from sojourn.spark.query.host_address import HostAddress
from sojourn.spark.query.query_builder import STATE_PARTITIONS, QueryBuilder, StartQuery
from sojourn.spark.query.transfer import KnownEnds
from sojourn.spark.settings import SparkSettings
from sojourn.spark.state.checkpoints import Checkpoints
from sojourn.spark.state.shared_folder import shared_folder
from sojourn.spark.state.state_lock import StateLock
from sojourn.spark.supervisor import QuerySupervisor
from sojourn.topology import Topology

__all__ = ["SparkEngine"]

# Hosts answer within a millisecond, unless the machine is very busy.
_LEAD_S = 0.25
_LOOK_S = 0.01
_PATIENCE_S = 120.0
# Beside the names of operators, which have no spaces.
_OWN_BROKER = "own broker"
# Names of sockets must not be long: where that of our folder is, Spark's are beside it.
_MOST_FOLDER = 60
# Names of temporary folders, and one as long as they are.
_TEMPORARY = "sojourn-"
_LIKE_TEMPORARY = f"{_TEMPORARY}xxxxxxxx"


class SparkEngine:
    """Runs *app*, which hosts find at *address*, on Spark in real-time mode.

    *progress* is told what a start is at, and what it waits for.
    """

    name = "Spark"

    def __init__(
        self,
        app: App,
        address: str,
        settings: SparkSettings | None = None,
        progress: Progress = lambda _line: None,
    ) -> None:
        self._layout, self._progress = Layout(app, address), progress
        self._settings = settings or SparkSettings()
        self._lock = threading.Lock()
        self._stack: ExitStack | None = None
        self._topology: Topology | None = None
        self._plan = Plan(placement={})
        self._began_s = 0.0
        self._looked_s = 0.0
        self._failure = self._unkept = ""
        self._draining = False
        self._own: Broker | None = None
        self._watch: BrokerWatch | None = None
        self._nodes: ClusterNodes | None = None
        self._stopping = threading.Event()

    # -- the engine -----------------------------------------------------------------------

    @property
    def now_s(self) -> float:
        """The time since the application was started."""
        return 0.0 if self._stack is None else time.monotonic() - self._began_s

    @property
    def nodes(self) -> Sequence[Node]:
        """This machine, with the cores that this process may use; or those of a cluster."""
        if self._nodes is not None:
            return self._nodes.nodes
        return (Node(HERE, float(len(os.sched_getaffinity(0)))),)

    @property
    def plan(self) -> Plan:
        """What was started with, or applied last."""
        return self._plan

    @property
    def servers(self) -> str:
        """The brokers that it uses."""
        self._running()
        return self._cluster.servers

    @property
    def clients(self) -> Mapping[str, str]:
        """Settings of clients to its Kafka, which may be secrets."""
        self._running()
        return self._cluster.for_clients

    @property
    def client_properties(self) -> Path | None:
        """A file with what Kafka's own tools need for a broker of ours."""
        return None if self._own is None else self._own.client_properties

    @property
    def logs(self) -> Path:
        """The folder with what user code printed."""
        self._running()
        return self._state.logs

    def start(self, topology: Topology, plan: Plan) -> None:
        """Start all that it takes, and return when every operator can take records."""
        if self._stack is not None:
            raise EngineError(f"{topology.name} is already running; stop it first")
        check_plan(plan, topology, self.nodes)
        self._layout.app.check()
        self._topology, self._plan = topology, plan
        self._failure, self._draining = "", False
        self._stopping.clear()
        with ExitStack() as stack:
            self._start(stack)
            self._send(stack)
            self._stack = stack.pop_all()
        # with the first look at offsets: what comes after it is counted, and nothing else
        self._began_s = self._pulls.since_s
        self._looked_s = 0.0
        self._keep_allocation()

    def observe(self, until_s: float) -> Pull:
        """Wait until then, and return what was counted.

        Raise `ApplicationStopped` if a record, or too many failures, have ended it, and
        `BrokerAway` if no broker answers, for as long as that is waited for.
        """
        self._running()
        if not until_s > self.now_s:
            raise EngineError(f"{until_s} s is not after {self.now_s:.3f} s, the current time")
        self._sleep(until_s - min(_LEAD_S, 0.1 * (until_s - self._looked_s)))
        asked = set(self._controller.ask())
        while self.now_s < until_s and not asked <= self._controller.reported():
            time.sleep(_LOOK_S / 10)
        self._check_broker(until_s)
        ends = self._pulls.offsets.look()  # first: what hosts told is kept if this fails
        with self._lock:
            pull = self._pulls.taken(
                self._controller.tallies(),
                ends,
                wanted=self._plan.allocation,
                running=self._running_processors(),
                clock_s=(self._looked_s, until_s),
                until_s=time.monotonic(),
            )
        self._sleep(until_s)
        self._looked_s = until_s
        return pull

    def apply(self, plan: Plan) -> Cost:
        """Tell hosts how many processors they should have; nothing pauses."""
        _, topology = self._running()
        with self._lock:
            if self._nodes is not None:
                plan = self._nodes.placed(plan)
            check_plan(plan, topology, self.nodes)
            changed = self._plan.changes(plan)
            fixed = [name for name in changed if name not in self._layout.functions]
            if fixed:
                raise EngineError(
                    f"{fixed[0]} runs inside Spark, and its processors are fixed; leave it"
                )
            # of a host that is being started again the new number is kept for its start
            self._place(plan)
        if changed:
            self._keep_allocation()
        return Cost(changed=changed)

    def stop(self) -> None:
        """End queries, hosts, session and broker. What was not committed comes again."""
        stack, self._stack = self._stack, None
        self._stopping.set()
        if stack is not None:
            stack.close()
        self._own = self._watch = self._nodes = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    # -- beside it ------------------------------------------------------------------------

    def drain(self, progress: Progress = lambda _line: None) -> None:
        """Let every batch that has begun end and be committed: nothing of it comes again.

        A batch ends at the next record that reaches it, or in its time. What lies between
        operators waits there for the next start. *progress* is told how far it is.
        """
        self._running()
        self._draining = True
        end_early(self._spark)
        if self._layout.retries in self._layout.topics:  # where nobody else writes
            wake_readers(self._cluster.for_clients, self._layout.retries)
        self._batches.drain(progress, self._check)
        self._supervisor.stop()
        self._batches.locate()
        if late := self._batches.uncommitted():
            progress(f"{late} records are not committed; the next start processes them again")
        progress("drained")

    def uncommitted(self) -> int:
        """Return how many records were begun that Spark has not committed: they come again."""
        self._running()
        return self._batches.uncommitted()

    def kafka(self) -> KafkaAccess:
        """Return how its Kafka is reached."""
        properties = self.client_properties
        return KafkaAccess(
            servers=self.servers,
            clients=self.clients,
            client_properties=None if properties is None else str(properties),
        )

    def await_unused(self) -> None:
        """Return when nothing uses the state that a run before has left: Java, a broker."""
        if self._settings.state is not None:
            with StateLock(self._settings.state, self._progress):
                pass

    def health(self) -> Health:
        """Return what went wrong so far."""
        states = {} if self._stack is None else dict(self._pulls.states)
        parts = {} if self._stack is None else dict(self._pulls.parts)
        nodes = () if self._stack is None else self._node_health()
        inner, own = self._layout.inner_topics, self._own
        return Health(
            restarts={} if self._stack is None else self._restarts(),
            replayed=sum(state.repeated for state in parts.values()),
            retried=sum(state.retried for state in states.values()),
            dead_letters=sum(state.dead for state in states.values()),
            running={} if self._stack is None else self._running_processors(),
            trees_open=0 if self._stack is None else len(self._pulls.trees),
            trees_forgotten=0 if self._stack is None else self._pulls.trees.forgotten,
            unkept=self._unkept,
            failure=self._failure,
            no_broker_s=None if self._stack is None else self._pulls.offsets.away_s,
            notices=() if self._stack is None else (*self._notices(), *node_notices(nodes)),
            held_records=None
            if self._stack is None or not inner
            else self._pulls.offsets.held(inner),
            held_bytes=None if own is None or not inner else own.size_bytes(inner),
            parts=tuple(
                PartHealth(
                    operators=part.operators,
                    open_records=parts[name].open if name in parts else 0,
                    projections=part.projections,
                )
                for name, part in self._layout.parts.items()
            ),
            nodes=nodes,
            node_s=None if self._nodes is None else self._nodes.node_s,
            node_costs=NodeCosts() if self._nodes is None else self._nodes.costs,
        )

    def measure(self, *, on: bool) -> None:
        """Let hosts measure, or not: to see what measuring costs."""
        self._running()
        self._controller.measure(on=on)

    def host_pid(self, operator: str) -> int:
        """Return the process that is the host of an operator."""
        self._running()
        return self._controller.pid(operator)

    def _place(self, plan: Plan) -> None:
        """Tell hosts where processors should be, of operators of which that changes."""
        before, self._plan = self._plan.placement, plan
        for name in self._layout.functions:
            if plan.placement[name] != before.get(name):
                self._controller.place(name, plan.placement[name])

    def _processors(self) -> int:
        """Return how many processors are wanted on nodes."""
        return sum(self._plan.allocation[name] for name in self._layout.functions)

    def _nodes_changed(self) -> None:
        """Have the same processors on the nodes that there are now."""
        with self._lock:
            if self._nodes is not None and (there := self._nodes.nodes):
                self._place(replace(self._plan, placement=place(self._plan.allocation, there)))

    def _running_processors(self) -> dict[str, int]:
        return {name: self._controller.running(name) for name in self._layout.functions}

    def _node_health(self) -> tuple[NodeHealth, ...]:
        if (nodes := self._nodes) is None:
            return ()
        placed = {name: self._controller.placed(name) for name in self._layout.functions}
        states = dict(self._pulls.states)
        return nodes.health(placed, {name: each.memory for name, each in states.items()})

    # -- inside ---------------------------------------------------------------------------

    def _start(self, stack: ExitStack) -> None:
        layout = self._layout
        self._identity = RunIdentity.new() if self._settings.encrypt else None
        layout.check_sockets(Path(tempfile.gettempdir()) / _LIKE_TEMPORARY)
        if (state := self._settings.state) is None:
            folder = self._temporary(stack)
            state = folder / "state"
        self._state = Checkpoints(state.absolute())
        self._state_lock = stack.enter_context(StateLock(self._state.folder, self._progress))
        stack.enter_context(LogRotation(self._state.logs))
        self._cluster = (
            self._broker(stack)
            if self._settings.servers is None
            else Cluster(self._settings.servers, self._settings.kafka)
        )
        cluster = self._cluster.identity()
        goes_on = self._state.check(layout.app, cluster)
        partitions = self._cluster.ensure(
            layout.topics,
            self._settings.partitions,
            # a broker of our own has nothing yet, and nobody else to make it
            required=layout.required_topics if self._settings.servers else None,
        )
        for sink in layout.deduplicated:
            read = partitions[layout.app.topic(sink.stream.name)]
            partitions |= self._cluster.ensure([layout.app.topic(sink.name)], read)
        self._cluster.unbind(layout.inner_topics)
        held = layout.slots(partitions, STATE_PARTITIONS)
        self._slots = self._settings.slots or spare_slots(sum(held.values()))
        if self._settings.runs_on.is_local:
            check_slots(held, self._slots)
        # before it is noted that there is something to go on from
        epoch = state_epoch(self._state.folder, goes_on=goes_on)
        offsets = AppendTimes(self._cluster.client(), partitions)
        offsets.settle()
        if self._settings.state is not None:
            # late: before hosts run nobody removes it if this process is killed
            folder = self._temporary(stack)
        addresses = self._launch(stack, folder, epoch, held)
        builder = QueryBuilder(
            layout=layout,
            settings=self._settings,
            cluster=self._cluster,
            state=self._state,
            session=self._spark,
            hosts=addresses,
            marks=root_marks(self._cluster.client(), layout.topics, epoch)
            | layout.reminder_marks(epoch),
            partitions=partitions,
            ends=f"sojourn.ends.{uuid4().hex}",
        )
        self._tell_ends(builder, offsets)
        for name in layout.functions:
            processors = self._plan.allocation[name]
            self._controller.await_running(name, processors, patience_s=_PATIENCE_S)
        self._controller.tasks = partial(tasks_of, builder.session)
        builder.begin(offsets, goes_on=goes_on)
        starting = builder.positions(offsets)
        starts = {
            name: partial(self._begin, builder.query(name, starting[name])) for name in starting
        }
        self._supervisor = QuerySupervisor(
            self._controller,
            self._hosts,
            starts | builder.misfits(starting) | builder.sinks(offsets),
            wanted=self._wanted,
            batch=self._state.commits,
            failed=self._failed,
            broker=lambda: offsets.standing,
        )
        stack.callback(self._supervisor.stop)
        self._state.keep(layout.app, cluster)
        self._supervisor.start()
        self._trim(stack, builder)
        early = self._await_relays(held)
        began_s = time.monotonic()
        offsets.start()
        stack.callback(offsets.stop)
        ends = offsets.partitions()
        written = {
            name: {topic: ends[topic] for topic in layout.writes(name).values()}
            for name in layout.natives
        }
        self._pulls = Pulls(layout, offsets, starting, written, began_s)
        self._pulls.follow(early)
        self._batches = Batches(
            layout=layout,
            state=self._state,
            controller=self._controller,
            pulls=self._pulls,
            since_s=time.time(),
            batch_s=self._settings.batch_s,
        )

    def _trim(self, stack: ExitStack, builder: QueryBuilder) -> None:
        """Let what was read be removed from topics that nobody else reads."""
        if topics := self._cluster.kept(self._layout.passing_topics):
            committed = partial(builder.committed, topics)
            stack.enter_context(Trimming(self._cluster.client(), committed))

    def _tell_ends(self, builder: QueryBuilder, offsets: Offsets) -> None:
        """Let Java know where topics end; not where it reads less than what is there."""
        if self._cluster.for_spark.get("kafka.isolation.level") == "read_committed":
            return
        known = KnownEnds(builder.session, builder.ends, self._layout.handed_over)
        known.tell(offsets.partitions())
        offsets.followers.append(known.tell)

    def _send(self, stack: ExitStack) -> None:
        """Let a process send the load that was chosen, until all is stopped."""
        if not (rates := self._settings.load):
            return
        load = Load(
            servers=self._cluster.servers,
            sources=load_sources(self._layout.app, self._layout.address, rates),
            lasts_s=max(points[-1][0] for points in rates.values()),
            kafka=dict(self._cluster.for_clients),
        )
        stack.enter_context(LoadProcess(load))

    def _temporary(self, stack: ExitStack) -> Path:
        folder = Path(tempfile.mkdtemp(prefix=_TEMPORARY))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        return folder

    def _launch(
        self, stack: ExitStack, folder: Path, epoch: str, held: Mapping[str, int]
    ) -> dict[str, HostAddress]:
        """Start hosts and Spark, and processors on nodes; return where relays reach hosts."""
        if self._settings.runs_on.is_local:
            self._launch_hosts(stack, folder, epoch)
            self._session(stack, folder)
            return self._layout.addresses(folder)
        self._session(stack, folder)
        return self._launch_nodes(stack, folder, epoch, held)

    def _launch_nodes(
        self, stack: ExitStack, folder: Path, epoch: str, held: Mapping[str, int]
    ) -> dict[str, HostAddress]:
        """Start hosts, agents on executors, and processors there."""
        told = self._spark.conf
        machine = told.get("spark.driver.host") or ""
        binds = told.get("spark.driver.bindAddress", machine) or machine
        self._launch_hosts(stack, folder, epoch, binds)
        controller = self._controller
        bounds = self._settings.bounds(sum(held.values()))
        conf = dict(self._spark.sparkContext.getConf().getAll())
        if warning := executor_warning(self._layout, bounds, sum(held.values()), conf):
            self._progress(f"warning: {warning}")
        shared = shared_folder(self._spark, self._state.folder, self._layout)
        self._nodes = stack.enter_context(
            ClusterNodes(
                self._spark,
                controller,
                parts={part: host.operators for part, host in self._hosts.items()},
                machine=machine,
                changed=self._nodes_changed,
                processors=self._processors,
                bounds=bounds,
                shared=shared,
            )
        )
        self._nodes.begin(self._progress, _PATIENCE_S)
        if shared is not None:
            shared.check(executors(self._spark))
        self._slots = self._nodes.slots
        check_slots(held, self._slots)
        with self._lock:
            self._place(replace(self._plan, placement=place(self._plan.allocation, self.nodes)))
        return {
            part: HostAddress(
                machine=machine,
                port=controller.port(part),
                secret=controller.secret,
                certificate=controller.certificate,
            )
            for part in self._hosts
        }

    def _launch_hosts(
        self, stack: ExitStack, folder: Path, epoch: str, binds: str | None = None
    ) -> None:
        self._controller = stack.enter_context(
            Controller(
                folder / "hosts", logs=self._state.logs, binds=binds, identity=self._identity
            )
        )
        allocation = self._plan.allocation
        self._hosts = {
            part: self._layout.host(part, folder, self._state, allocation, epoch)
            for part in self._layout.parts
        }
        several = "" if len(self._hosts) == 1 else "s"
        self._progress(f"starting {len(self._hosts)} host{several} and Spark")
        for part in self._hosts:
            self._controller.launch(self._wanted(part))

    def _session(self, stack: ExitStack, folder: Path) -> None:
        session = new_session(
            self._layout.app.name,
            jars=resolve_jars(),
            slots=self._slots,
            master=self._settings.runs_on,
            options={
                "spark.local.dir": str(folder / "spark"),  # others could read it elsewhere
                **(
                    {"spark.python.unix.domain.socket.dir": str(folder)}
                    if len(str(folder)) < _MOST_FOLDER
                    else {}
                ),
            },
            log=self._state.logs / "spark.log",
            inherits=[self._state_lock.file],
        )
        stack.callback(end_session, session)
        self._spark = session
        # hosts do it as well, but there may be none, or they may be killed together with this
        remove_with_java(session, folder)

    def _begin(self, start: StartQuery) -> StreamingQuery:
        """Start a query, or start it again."""
        if self._draining:
            end_in_time(self._spark)
        return start()

    def _await_relays(self, held: Mapping[str, int]) -> list[PartTally]:
        """Return what was reported until every host had all its relays.

        That is one for each task that its query *held*.
        """
        self._progress("waiting for Spark to read from Kafka")
        early: list[PartTally] = []
        left, until_s = set(self._hosts), time.monotonic() + _PATIENCE_S
        while left:
            self._check()
            if time.monotonic() > until_s:
                raise EngineError(
                    f"{', '.join(sorted(left))}: Spark did not read from Kafka within "
                    f"{_PATIENCE_S:g} s; see {self._state.logs / 'spark.log'}"
                )
            self._controller.ask()
            time.sleep(5 * _LOOK_S)
            for name, tallies in self._controller.tallies().items():
                early += tallies
                if tallies[-1].state.relays >= held[name]:
                    left.discard(name)
        return early

    def _broker(self, stack: ExitStack) -> Cluster:
        """Start a broker of our own, which is started again if it ends."""
        self._progress("starting a Kafka broker")
        told = self._settings
        data = None if told.state is None else self._state.broker
        self._own = Broker(
            data=data,
            port=told.broker_port,
            # where executors reach the driver, they reach it as well
            host=told.spark.get("spark.driver.host", HOST),
            secured=told.broker_secured,
            inherits=[self._state_lock.file],
        )
        stack.enter_context(self._own)
        self._watch = stack.enter_context(BrokerWatch(self._own, self._failed))
        found = self._own.cluster
        return Cluster(found.servers, {**told.kafka, **found.options})

    def _check_broker(self, until_s: float) -> None:
        """Wait until then and raise `BrokerAway` while no broker answers, if not for long."""
        away_s = self._pulls.offsets.away_s
        if away_s is None:
            return
        if away_s > self._settings.patience_s:
            self._failed(
                f"no broker has answered at {self._cluster.servers} for {away_s:.0f} s; start "
                "the application again when one does: it continues from its last commit"
            )
        self._sleep(until_s)
        raise BrokerAway(away_s)

    def _restarts(self) -> dict[str, int]:
        watch = {} if self._watch is None else {_OWN_BROKER: self._watch.restarts}
        return self._supervisor.restarts | watch

    def _notices(self) -> tuple[str, ...]:
        offsets = self._pulls.offsets
        told = kafka_notices(
            self._cluster.servers,
            away=offsets.away_s is not None,
            silent=offsets.silent,
            grown=offsets.grown,
            slots=self._slots,
            needed=sum(self._layout.slots(offsets.numbers, STATE_PARTITIONS).values()),
        )
        return (*self._pulls.clocks.texts(), *self._pulls.held_up(), *told)

    def _keep_allocation(self) -> None:
        if self._settings.state is None:
            return
        try:
            keep_allocation(self._state.folder, self._plan.allocation)
        except EngineError as error:
            self._unkept = str(error)  # a full disk is no reason to end what runs
        else:
            self._unkept = ""

    def _wanted(self, part: str) -> HostSettings:
        settings, plan = self._hosts[part], self._plan
        everywhere = not self._settings.runs_on.is_local
        operators = {
            name: replace(
                operator,
                processors=plan.allocation[name],
                on=_on_nodes(plan.placement[name]) if everywhere else None,
            )
            for name, operator in settings.operators.items()
        }
        return replace(settings, operators=operators)

    def _failed(self, reason: str) -> None:
        self._failure = reason
        self._stopping.set()

    def _sleep(self, until_s: float) -> None:
        """Wait until then, unless the application stops before."""
        self._stopping.wait(max(0.0, until_s - self.now_s))
        self._check()

    def _check(self) -> None:
        if self._failure:
            raise ApplicationStopped(self._failure)

    def _running(self) -> tuple[ExitStack, Topology]:
        if self._stack is None or self._topology is None:
            raise EngineError("nothing is running; call start() first")
        return self._stack, self._topology


def _on_nodes(on: Mapping[str, int]) -> dict[str, int]:
    """Return where processors are, without those that have no node yet."""
    return {node: k for node, k in on.items() if node != HERE}
