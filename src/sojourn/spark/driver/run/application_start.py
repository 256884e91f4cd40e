"""How an application is started: storage, broker, processes, queries, in this order."""

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from uuid import uuid4

from pyspark.sql.streaming.query import StreamingQuery

from sojourn.decide.plan import Plan
from sojourn.engine import Progress
from sojourn.errors import BadInput, EngineError
from sojourn.files.log_lines import stamp
from sojourn.files.log_rotation import LogRotation
from sojourn.files.private_files import append_to
from sojourn.spark.driver.batches import Batches, end_in_time
from sojourn.spark.driver.counters import Pulls
from sojourn.spark.driver.disk_watch import DiskWatch
from sojourn.spark.driver.hosts.controller import Controller
from sojourn.spark.driver.jvm.session import tasks_of
from sojourn.spark.driver.kafka.append_times import AppendTimes
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.kafka.id_epoch import root_marks, state_epoch
from sojourn.spark.driver.kafka.lost_records import refuse_lost, told_lost
from sojourn.spark.driver.kafka.offsets import Offsets
from sojourn.spark.driver.kafka.trimming import Trimming
from sojourn.spark.driver.layout import Layout, check_slots, spare_slots
from sojourn.spark.driver.load.offered_load import Load
from sojourn.spark.driver.load.producer import LoadProcess
from sojourn.spark.driver.load.samples import load_sources
from sojourn.spark.driver.query.query_builder import STATE_PARTITIONS, QueryBuilder, StartQuery
from sojourn.spark.driver.query.transfer import KnownEnds
from sojourn.spark.driver.run.application_run import ApplicationRun
from sojourn.spark.driver.run.own_broker import OwnBroker
from sojourn.spark.driver.run.processes import Processes, ProcessStart
from sojourn.spark.driver.run.run_end import RunEnd
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.state.checkpoints import Checkpoints
from sojourn.spark.driver.state.leftovers import remove_leftovers
from sojourn.spark.driver.state.shared_folder import written_by_tasks
from sojourn.spark.driver.state.shared_state import SharedState
from sojourn.spark.driver.state.signing_key import signing_key
from sojourn.spark.driver.state.state_lock import StateLock
from sojourn.spark.driver.state.state_transfer import finish_import
from sojourn.spark.driver.supervisor import QuerySupervisor
from sojourn.spark.wire.counters import PartTally
from sojourn.spark.wire.encryption import RunIdentity
from sojourn.spark.wire.host_settings import HostSettings

__all__ = ["ApplicationStart"]

_LOOK_S = 0.05
_PATIENCE_S = 120.0
# Names of temporary folders, and one as long as they are.
_TEMPORARY = "sojourn-"
_LIKE_TEMPORARY = f"{_TEMPORARY}xxxxxxxx"


@dataclass(frozen=True, slots=True)
class ApplicationStart:
    """Starts an application with the processors of *plan*.

    *end* is asked whether to go on, and told of failures; *progress* what it is at.
    """

    layout: Layout
    settings: SparkSettings
    plan: Plan
    end: RunEnd
    progress: Progress

    def start(self, stack: ExitStack) -> ApplicationRun:
        """Return when every operator can take records. What was started ends with *stack*."""
        layout, settings = self.layout, self.settings
        identity = RunIdentity.new() if settings.encrypt else None
        layout.check_sockets(Path(tempfile.gettempdir()) / _LIKE_TEMPORARY)
        if (kept := settings.state) is None:
            folder = _temporary(stack)
            kept = folder / "state"
        lock = stack.enter_context(StateLock(kept.absolute(), self.progress)).file
        state = self._checkpoints(kept.absolute())
        stack.enter_context(LogRotation(state.logs))
        own = self._own_broker(stack, state, lock)
        cluster = (
            Cluster(settings.servers or "", settings.kafka)
            if own is None
            else own.cluster(settings)
        )
        identified = cluster.identity()
        goes_on = self._resumes(state, identified)
        partitions = self._topics(cluster)
        held = layout.slots(partitions, STATE_PARTITIONS)
        slots = settings.slots or spare_slots(sum(held.values()))
        if settings.runs_on.is_local:
            check_slots(held, slots)
        # before it is noted that there is something to go on from
        epoch = state_epoch(state.folder, goes_on=goes_on)
        key = signing_key(state.folder, resumes=goes_on)
        offsets = AppendTimes(cluster.client(), partitions)
        offsets.settle()
        if settings.state is not None:
            # late: before hosts run nobody removes it if this process is killed
            folder = _temporary(stack)
        processes = ProcessStart(
            layout=layout,
            settings=settings,
            plan=self.plan,
            state=state,
            cluster=cluster,
            lock=lock,
            identity=identity,
            held=held,
            slots=slots,
            progress=self.progress,
            patience_s=_PATIENCE_S,
            signing_key=key,
        ).start(stack, folder, epoch)
        builder = QueryBuilder(
            layout=layout,
            settings=settings,
            cluster=cluster,
            state=state,
            session=processes.session,
            hosts=processes.addresses,
            marks=root_marks(cluster.client(), layout.topics, epoch)
            | layout.reminder_marks(epoch),
            partitions=partitions,
            signing_key=key,
            fences=self._fences(cluster),
            ends=f"sojourn.ends.{uuid4().hex}",
        )
        controller = processes.controller
        self._tell_ends(builder, controller, offsets, cluster)
        for name in layout.functions:
            k = self.plan.allocation[name]
            controller.await_running(name, k, patience_s=_PATIENCE_S)
        controller.tasks = partial(tasks_of, builder.session)
        self._begin(builder, offsets, goes_on=goes_on)
        starting = builder.positions(offsets)
        queries = {
            name: self._beginning(builder, builder.query(name, starting[name]))
            for name in starting
        }
        disk = DiskWatch(filter(None, (state.folder, state.shared)))
        supervisor = QuerySupervisor(
            controller,
            processes.hosts,
            queries | builder.misfits(starting) | builder.sinks(offsets),
            wanted=_wanted(processes),
            batch=state.commits,
            failed=self.end.fail,
            broker=lambda: offsets.standing,
            disk=disk,
            log=partial(_log, state.logs / "queries.log"),
        )
        stack.callback(supervisor.stop)
        state.keep(layout.app, identified)
        supervisor.start()
        self._trim(stack, builder, cluster)
        early = self._await_relays(processes, state, held)
        began_s = time.monotonic()
        offsets.start()
        stack.callback(offsets.stop)
        ends = offsets.partitions()
        written = {
            name: {topic: ends[topic] for topic in layout.writes(name).values()}
            for name in layout.natives
        }
        pulls = Pulls(layout, offsets, starting, written, began_s)
        pulls.begin(early, ends)
        self._send(stack, cluster)
        return ApplicationRun(
            layout=layout,
            state=state,
            cluster=cluster,
            own=own,
            processes=processes,
            supervisor=supervisor,
            pulls=pulls,
            disk=disk,
            batches=Batches(
                layout=layout,
                state=state,
                controller=controller,
                pulls=pulls,
                since_s=time.time(),
                batch_s=settings.batch_s,
            ),
        )

    def _checkpoints(self, folder: Path) -> Checkpoints:
        """Return where queries keep their checkpoints, without what killed runs have left."""
        state = self._divided(folder)
        remove_leftovers(state, self.layout.parts)
        if finish_import(state):
            self.progress("an import of states that was begun is complete now")
        for query, batches in state.drop_torn_batches().items():
            self.progress(
                f"{query}: Spark's files of batch {min(batches)} are not complete, as after a "
                f"power failure; it continues after batch {min(batches) - 1}"
            )
        return state

    def _divided(self, folder: Path) -> Checkpoints:
        """Return where queries keep their checkpoints; claim the shared folder if need be."""
        queries = written_by_tasks(self.layout)
        if not queries:
            return Checkpoints(folder)
        if self.settings.shared_state is not None and self.settings.state is None:
            raise BadInput(
                f"the shared folder {self.settings.shared_state} needs a state folder that is "
                "kept as well; give state too"
            )
        shared = SharedState(folder, self.settings.shared_state)
        before = Checkpoints(folder).form() or {}
        shared.claim(queries, before.get("shared"))
        return Checkpoints(folder, shared.folder, frozenset(queries))

    def _resumes(self, state: Checkpoints, cluster: str) -> bool:
        """Return whether there is a state to continue from; it is checked."""
        if not state.check(self.layout.app, cluster):
            return False
        state.check_queries(self.layout.parts)
        return True

    def _own_broker(self, stack: ExitStack, state: Checkpoints, lock: int) -> OwnBroker | None:
        """Start a broker unless others run one."""
        if self.settings.servers is not None:
            return None
        self.progress("starting a Kafka broker")
        data = None if self.settings.state is None else state.broker
        return OwnBroker.start(stack, self.settings, data=data, lock=lock, failed=self.end.fail)

    def _topics(self, cluster: Cluster) -> dict[str, int]:
        """Make the topics that are missing; return how many partitions each has."""
        layout = self.layout
        partitions = cluster.ensure(
            layout.topics,
            self.settings.partitions,
            # a broker of our own has nothing yet, and nobody else to make it
            required=layout.required_topics if self.settings.servers else None,
        )
        for sink in layout.deduplicated:
            read = partitions[layout.app.topic(sink.stream.name)]
            fenced = not self.settings.runs_on.is_local
            partitions |= cluster.ensure([layout.app.topic(sink.name)], read, fenced=fenced)
        cluster.unbind(layout.inner_topics)
        return partitions

    def _fences(self, cluster: Cluster) -> dict[str, float]:
        """Return which topics of deduplicated sinks refuse what is late, and by how much.

        On one machine nothing comes back once Java is gone.
        """
        if self.settings.runs_on.is_local:
            return {}
        sinks = [self.layout.app.topic(sink.name) for sink in self.layout.deduplicated]
        fences = cluster.fences(sinks)
        for topic in sinks:
            if topic not in fences:
                self.progress(
                    f"warning: {topic} takes records of any age, so a node that is cut off the "
                    "network may write some twice when it comes back; set its "
                    "message.timestamp.before.max.ms to 10000 (Kafka 3.6 or newer)"
                )
        return fences

    def _beginning(
        self, builder: QueryBuilder, start: StartQuery
    ) -> Callable[[], StreamingQuery]:
        """Return what starts a query, or starts it again."""

        def begin() -> StreamingQuery:
            if self.end.draining:
                end_in_time(builder.session)
            return start()

        return begin

    def _tell_ends(
        self,
        builder: QueryBuilder,
        controller: Controller,
        offsets: Offsets,
        cluster: Cluster,
    ) -> None:
        """Let Java know where topics end; not where it reads less than what is there."""
        if cluster.for_spark.get("kafka.isolation.level") == "read_committed":
            return
        if not self.settings.runs_on.is_local:  # the session's Java runs no tasks
            offsets.followers.append(controller.tell_ends)
            return
        known = KnownEnds(builder.session, builder.ends, self.layout.handed_over)
        known.tell(offsets.partitions())
        offsets.followers.append(known.tell)

    def _begin(self, builder: QueryBuilder, offsets: Offsets, *, goes_on: bool) -> None:
        """Settle where queries begin; refuse if Kafka has deleted that, or skip it."""
        lost = builder.lost(offsets) if goes_on else []
        if not self.settings.skip_lost:
            refuse_lost(lost)
        elif lost:
            builder.skip(lost)
            self.progress(f"Kafka has deleted {told_lost(lost)}; they are skipped")
        builder.begin(offsets, goes_on=goes_on)

    def _trim(self, stack: ExitStack, builder: QueryBuilder, cluster: Cluster) -> None:
        """Let what was read be removed from topics that nobody else reads."""
        if topics := cluster.kept(self.layout.passing_topics):
            committed = partial(builder.committed, topics)
            stack.enter_context(Trimming(cluster.client(), committed))

    def _await_relays(
        self, processes: Processes, state: Checkpoints, held: Mapping[str, int]
    ) -> dict[str, list[PartTally]]:
        """Return what was reported, by part, until every host had all its relays.

        That is one for each task that its query *held*.
        """
        self.progress("waiting for Spark to read from Kafka")
        early: dict[str, list[PartTally]] = {}
        left, until_s = set(processes.hosts), time.monotonic() + _PATIENCE_S
        while left:
            self.end.check()
            if time.monotonic() > until_s:
                raise EngineError(
                    f"{', '.join(sorted(left))}: Spark did not read from Kafka within "
                    f"{_PATIENCE_S:g} s; see {state.logs / 'spark.log'}"
                )
            processes.controller.ask()
            time.sleep(_LOOK_S)
            for name, tallies in processes.controller.tallies().items():
                early.setdefault(name, []).extend(tallies)
                if tallies[-1].state.relays >= held[name]:
                    left.discard(name)
        return early

    def _send(self, stack: ExitStack, cluster: Cluster) -> None:
        """Let a process send the load that was chosen, until all is stopped."""
        if not (rates := self.settings.load):
            return
        load = Load(
            servers=cluster.servers,
            sources=load_sources(self.layout.app, self.layout.address, rates),
            lasts_s=max(points[-1][0] for points in rates.values()),
            kafka=dict(cluster.for_clients),
        )
        stack.enter_context(LoadProcess(load))


def _temporary(stack: ExitStack) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=_TEMPORARY))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _log(file: Path, text: str) -> None:
    """Add a line with the time to a log."""
    with suppress(OSError), append_to(file) as log:  # a full disk ends nothing
        log.write(stamp(text, time.time()).encode())


def _wanted(processes: Processes) -> Callable[[str], HostSettings]:
    return lambda part: processes.placed.of(processes.hosts[part])
