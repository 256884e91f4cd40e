"""Spark as an engine: the loop drives a running application as it drives the simulator."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Self

from sojourn.app.application import App
from sojourn.decide.plan import Node, Plan
from sojourn.engine import Cost, Health, KafkaAccess, NodeNeeds, Progress, check_plan
from sojourn.errors import BrokerAway, DiskFull, EngineError
from sojourn.measure.report import Pull
from sojourn.spark.driver.batches import WakeUp, end_early, wake_readers
from sojourn.spark.driver.jvm.java import find_java
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.run.application_run import ApplicationRun, start_application
from sojourn.spark.driver.run.placed_processors import this_machine
from sojourn.spark.driver.run.start_request import RunEnd, StartRequest
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.state.shared_folder import SharedState
from sojourn.spark.driver.state.state_lock import StateLock
from sojourn.spark.wire.handshake import RunIdentity
from sojourn.topology import Topology

# How long before the end of an interval hosts are asked for reports. They answer within a
# millisecond, unless the machine is very busy.
_LEAD_S = 0.25
_LOOK_S = 0.001


class SparkEngine:
    """Runs *app*, which hosts load from *address*, on Spark in real-time mode.

    *progress* receives the steps of a start, and what it waits for.
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
        self._stack = ExitStack()
        self._run: ApplicationRun | None = None
        self._end = RunEnd()
        self._topology: Topology | None = None
        self._plan = Plan(placement={})
        self._began_s = 0.0
        self._looked_s = 0.0
        self._wake_up: WakeUp | None = None

    # -- the engine -----------------------------------------------------------------------

    @property
    def now_s(self) -> float:
        """The time since the application was started."""
        return 0.0 if self._run is None else time.monotonic() - self._began_s

    @property
    def nodes(self) -> Sequence[Node]:
        """The nodes of the cluster, or this machine with the cores this process may use."""
        return this_machine() if self._run is None else self._run.processes.placed.nodes

    @property
    def plan(self) -> Plan:
        return self._plan if self._run is None else self._run.processes.placed.plan

    @property
    def servers(self) -> str:
        return self._running().kafka.cluster.servers

    @property
    def clients(self) -> Mapping[str, str]:
        """Settings for clients of its Kafka; they may contain secrets."""
        return self._running().kafka.cluster.for_clients

    @property
    def logs(self) -> Path:
        """The folder with the output of user code."""
        return self._running().state.logs

    def start(self, topology: Topology, plan: Plan) -> None:
        if self._run is not None:
            raise EngineError(f"{topology.name} is already running; stop it first")
        check_plan(plan, topology, self.nodes)
        self._layout.app.check()
        self._topology, self._plan, self._end = topology, plan, RunEnd()
        self._wake_up = None
        request = StartRequest(
            layout=self._layout,
            settings=self._settings,
            plan=plan,
            identity=RunIdentity.new() if self._settings.encrypt else None,
            end=self._end,
            progress=self._progress,
        )
        with ExitStack() as stack:
            self._run = start_application(request, stack)
            # only now: if the start fails, the local stack ends all that was started
            self._stack = stack.pop_all()
        # time begins with the first look at offsets: only later records are counted
        self._began_s = self._run.pulls.since_s
        self._looked_s = 0.0

    def observe(self, until_s: float) -> Pull:
        """Wait until *until_s*, and return the counters since the last look.

        Raise `ApplicationStopped` if a record or too many failures have ended the application.
        Raise `BrokerAway` while no broker answers, and `DiskFull` while a disk is full: the
        application waits for either and resumes by itself.
        """
        run = self._running()
        if not until_s > self.now_s:
            raise EngineError(f"{until_s} s is not after {self.now_s:.3f} s, the current time")
        self._sleep(until_s - min(_LEAD_S, 0.1 * (until_s - self._looked_s)))
        controller = run.processes.controller
        asked = set(controller.ask())
        while self.now_s < until_s and not asked <= controller.reported():
            time.sleep(_LOOK_S)
        self._check_broker(run, until_s)
        ends = run.pulls.offsets.look()  # first: if it fails, reports of hosts are not lost
        wanted, running = run.processes.placed.wanted_and_running()
        pull = run.pulls.taken(
            controller.tallies(),
            ends,
            wanted=wanted,
            running=running,
            clock_s=(self._looked_s, until_s),
            until_s=time.monotonic(),
            wall_s=time.time(),
        )
        self._check_disk(run, until_s)
        # records wait unread: perhaps nodes do not reach Kafka
        if run.pulls.reading.stands_still and run.processes.nodes is not None:
            run.processes.nodes.check_kafka()
        self._sleep(until_s)
        self._looked_s = until_s
        return run.with_nodes(pull)

    def apply(self, plan: Plan) -> Cost:
        """Send the placement of *plan* to hosts, and request its nodes from the cluster.

        Records are processed without a pause.
        """
        run = self._running()
        if self._topology is None:
            raise EngineError("nothing is running; call start() first")
        cost = run.processes.placed.apply(plan, self._topology)
        if run.processes.nodes is not None:
            run.processes.nodes.request(plan.nodes)
        return cost

    def stop(self) -> None:
        """End queries, hosts, session and broker. The next start replays open records."""
        self._plan, self._run = self.plan, None
        self._end.stop()
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    # -- further operations ---------------------------------------------------------------

    def drain(self, progress: Progress = lambda _line: None) -> None:
        """Wait until every open batch has ended and is committed: nothing is replayed.

        A batch ends at the next record that reaches it, or when its time is over. Records in
        topics between operators stay there for the next start. *progress* receives the steps.
        """
        run = self._running()
        self._end.draining = True
        end_early(run.processes.session)
        run.batches.drain(progress, self._end.check, self._wake_readers)
        run.supervisor.stop()
        run.batches.locate()
        if late := self.uncommitted():
            progress(f"{late} records are not committed; the next start processes them again")
        progress("drained")

    def uncommitted(self) -> int:
        """Return how many records were taken and not committed: the next start replays them."""
        return self._running().batches.uncommitted(self._wake_up)

    def node_needs(self) -> NodeNeeds:
        """Return the minimum of nodes for its queries, and the operators inside Spark."""
        if self._run is None or self._run.processes.nodes is None:
            return NodeNeeds()
        return NodeNeeds(
            least=self._run.processes.nodes.least,
            unplaced=frozenset(self.plan.allocation.keys() - self._layout.functions.keys()),
        )

    def on_nodes_changed(self, changed: Callable[[], None]) -> None:
        """Register *changed*, to be called in the thread that watches nodes of a cluster."""
        if self._run is not None and self._run.processes.nodes is not None:
            self._run.processes.nodes.on_changed(changed)

    def kafka(self) -> KafkaAccess:
        own, app = self._running().kafka.own, self._layout.app
        return KafkaAccess(
            servers=self.servers,
            clients=self.clients,
            client_properties=None if own is None else str(own.broker.client_properties),
            client_settings=None if own is None else str(own.broker.client_settings),
            sources={name: app.topic(name) for name in app.sources},
            sinks={name: app.topic(name) for name in app.sinks},
        )

    def await_unused(self) -> None:
        """Wait until no process of a previous run uses the state: neither Java nor a broker."""
        if self._settings.state is not None:
            with StateLock(self._settings.state, self._progress):
                pass

    def forget(self) -> None:
        """Delete the content of the shared folder of the state."""
        if self._settings.state is not None:
            SharedState(self._settings.state, self._settings.shared_state).forget()

    def health(self) -> Health:
        health = Health() if self._run is None else self._run.health()
        return replace(health, failure=self._end.failure)

    def measure(self, *, on: bool) -> None:
        """Turn the measurements of hosts on or off, to see their cost."""
        self._running().processes.controller.measure(on=on)

    def host_pid(self, operator: str) -> int:
        return self._running().processes.controller.pid(operator)

    # -- private --------------------------------------------------------------------------

    def _wake_readers(self) -> None:
        if self._layout.retries in self._layout.topics:  # only retries are written there
            clients = self._running().kafka.cluster.for_clients
            self._wake_up = wake_readers(clients, self._layout.retries)

    def _check_broker(self, run: ApplicationRun, until_s: float) -> None:
        """Wait until *until_s* and raise `BrokerAway` while no broker answers.

        After the patience of the settings, fail the run instead.
        """
        away_s = run.pulls.offsets.away_s
        if away_s is None:
            return
        run.pulls.reading.pause()
        if away_s > self._settings.patience_s:
            self._end.fail(
                f"no broker has answered at {self.servers} for {away_s:.0f} s; start "
                "the application again when one answers: it continues from its last commit"
            )
        self._sleep(until_s)
        raise BrokerAway(away_s)

    def _check_disk(self, run: ApplicationRun, until_s: float) -> None:
        """Wait until *until_s* and raise `DiskFull` while a disk has no room.

        After the patience of the settings, fail the run instead.
        """
        disk = run.supervisor.disk
        disk.hosts_lack(
            next((part.disk_full for part in run.pulls.parts.values() if part.disk_full), "")
        )
        full_s, folder = disk.full_s, run.state.folder
        if full_s is None:
            return
        if full_s > self._settings.disk_patience_s:
            self._end.fail(
                f"no room on the disk of {folder} for {full_s:.0f} s: {disk.lack}; make "
                "room and start the application again: it continues from its last commit"
            )
        self._sleep(until_s)
        self._looked_s = until_s
        raise DiskFull("the state of the application", str(folder))

    def _sleep(self, until_s: float) -> None:
        """Wait until *until_s*; raise `ApplicationStopped` if the run fails before."""
        self._end.wait(until_s - self.now_s)

    def _running(self) -> ApplicationRun:
        if self._run is None:
            raise EngineError("nothing is running; call start() first")
        return self._run


def launch(
    app: App,
    address: str,
    settings: SparkSettings | None = None,
    state: Path | None = None,
    progress: Progress = lambda _line: None,
) -> SparkEngine:
    """Return an engine that is not started yet. Raise `EngineError` if there is no Java."""
    find_java()
    settings = replace(settings or SparkSettings(), state=state)
    return SparkEngine(app, address, settings, progress)
