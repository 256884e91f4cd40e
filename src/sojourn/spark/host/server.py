"""The host of a part: its sockets and processes carry out what the desk decides.

One event loop, which nothing may block: writes are buffered, and bounded by the records
inside; one thread writes cuts and states, in order. When the controller is gone the host ends,
and with it templates and processors.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from time import monotonic, time
from traceback import format_exception
from typing import Any

from sojourn.decide.plan import HERE
from sojourn.errors import DiskFull, EngineError, SojournError
from sojourn.files.log_lines import stamp
from sojourn.spark.host.alarm import Alarm
from sojourn.spark.host.batch.checkpoint_id import CheckpointId
from sojourn.spark.host.batch.cut import Cut
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.host.batch.ledger import Ledger
from sojourn.spark.host.batch.room import Room
from sojourn.spark.host.batch.stage_tasks import StageTasks
from sojourn.spark.host.batch.write_queue import WriteQueue
from sojourn.spark.host.controller_connection import ControllerConnection
from sojourn.spark.host.desk.events import (
    Arrival,
    CutSaved,
    DrainAsked,
    Event,
    NodeCame,
    NodeLeft,
    PlacementAsked,
    RelayCame,
    RelayEnded,
    RelayLeft,
    RelaysCaughtUp,
    RelaysCounted,
    RowsCame,
    TimePassed,
)
from sojourn.spark.host.desk.instructions import (
    Arrived,
    AtOperator,
    FinishRelay,
    GrantRelay,
    HandOver,
    Instruction,
    RefuseRelay,
    Restore,
    SaveCut,
    Sent,
    StopPart,
)
from sojourn.spark.host.desk.operator_desk import OperatorDesk
from sojourn.spark.host.desk.part_desk import PartDesk
from sojourn.spark.host.desk.part_graph import PartGraph
from sojourn.spark.host.garbage import collect_if_few
from sojourn.spark.host.heartbeats import Heartbeats
from sojourn.spark.host.held_events import HeldEvents
from sojourn.spark.host.nodes.agent_connections import Nodes
from sojourn.spark.host.nodes.listener import Door
from sojourn.spark.host.operator_runner import Station
from sojourn.spark.host.relay_connections import RelayConnections
from sojourn.spark.host.relays import Relays
from sojourn.spark.host.state.keyed_state import Delta, MergeState
from sojourn.spark.host.temporary_folder import remove_after
from sojourn.spark.wire.agent import AgentHello
from sojourn.spark.wire.background import OURS, BackgroundTasks
from sojourn.spark.wire.controller import (
    Ask,
    AskTasks,
    Broken,
    CheckNodes,
    Drain,
    FromController,
    Here,
    Measure,
    NodeIs,
    PlaceProcessors,
    Reached,
    Report,
    Stopped,
    TasksAre,
    TopicEnds,
)
from sojourn.spark.wire.counters import PartState, PartTally
from sojourn.spark.wire.encryption import host_context
from sojourn.spark.wire.host_settings import SECRET, SOCKET, TOKEN, HostSettings
from sojourn.spark.wire.processor import Waits
from sojourn.spark.wire.relay import (
    AllRead,
    Failed,
    Finished,
    FromRelay,
    Grant,
    Heartbeat,
    RelayHello,
    Rows,
)

__all__ = ["Host"]

# How often to look for what is late, and for what can be started again.
_LOOK_S = 0.25
# Credit of relays while the application ends in order: whatever Spark has read is taken.
_ALL = 1 << 30
_AGENT_SHARE = 0.8


class Host:
    """The operators of one part on one machine."""

    def __init__(self, settings: HostSettings) -> None:
        self._settings = settings
        logs = settings.logs
        self._stations = {
            name: Station(
                name, self, operator, log=None if logs is None else logs / f"{name}.log"
            )
            for name, operator in settings.operators.items()
        }
        self._files = CutFiles(settings.cuts, settings.layout)
        self._checkpoint = CheckpointId(settings.cuts)
        self._ledger = Ledger(
            self._files,
            reminded=settings.reminded,
            id_window=settings.id_window,
            kept=settings.kept_batches,
        )
        self._desk = PartDesk(
            PartGraph(
                readers=settings.readers,
                emits=settings.emits,
                leaving=frozenset(settings.leaving),
                everyone=frozenset(settings.everyone),
                inner=frozenset(settings.inner),
                behind=settings.behind,
                stateful=frozenset(settings.stateful),
                nulls=frozenset(settings.nulls),
            ),
            {name: station.desk for name, station in self._stations.items()},
            self._ledger,
            ttl_s=settings.ttl_s,
        )
        self._alarm = Alarm(self._time_passed, self._ledger.clock.now_s)
        # of what comes from Kafka, offsets tell how much there is
        self._inner = frozenset(settings.inner) - frozenset(settings.projected)
        self._relays = Relays()
        self._heartbeats = Heartbeats[int](settings.relay_timeout_s)
        self._connections = RelayConnections(self._relays, self, self._heartbeats)
        # an agent is lost a little before the tasks on its node: who starts the batch again
        # should know that the node is not there
        agent_timeout_s = _AGENT_SHARE * settings.relay_timeout_s
        self._nodes = Nodes(settings.name, self._stations, self, timeout_s=agent_timeout_s)
        self._tasks = StageTasks()
        self._waiting: dict[int, str] = {}
        self._draining = False
        self._changes = dict.fromkeys(self._stations, 0)
        self._reached: dict[str, tuple[Mapping[str, int], str]] = {}
        self._forsaken = False
        self._ending = asyncio.Event()
        self._controller = ControllerConnection()
        self._work = BackgroundTasks()
        # a write in the background may find room where the log does not, or not find it
        log_room, write_room = (Room(settings.disk_patience_s, monotonic, _log) for _ in "12")
        self._rooms = log_room, write_room
        self._held = HeldEvents(self._files.flush, log_room)
        self._writes = WriteQueue(self.broken, write_room)

    async def run(self) -> None:
        """Serve until the controller is gone."""
        started_by = os.getppid()
        asyncio.get_running_loop().set_exception_handler(self._unhandled)
        try:
            await self._serve()
        finally:
            temporary = self._settings.temporary
            if temporary is not None and self._forsaken:
                await remove_after(started_by, temporary)

    async def _serve(self) -> None:
        path = self._settings.folder / SOCKET
        await self._controller.open(self._settings.controller)
        try:
            await asyncio.gather(*(station.open() for station in self._stations.values()))
            loop = asyncio.get_running_loop()
            server = await loop.create_unix_server(self._connections.near, path)
            if self._settings.listens is not None:
                self._work.spawn(self._door(self._settings.listens).run())
            self._controller.tell(
                Here(self._settings.name, os.getpid(), str(path), os.environ.get(TOKEN, ""))
            )
            for name, operator in self._settings.operators.items():
                on = {HERE: operator.processors} if operator.on is None else operator.on
                self.decide(PlacementAsked(name, on))
            self._work.spawn(self._obey())
            self._work.spawn(self._watch())
            await self._ending.wait()
            server.close()
        except (EngineError, OSError) as error:
            self.broken(str(error))
            raise EngineError(f"{self._settings.name}: {error}") from error
        except Exception as error:
            self._failed(error)
            raise
        finally:
            await self._end()
            path.unlink(missing_ok=True)

    # -- controller -----------------------------------------------------------------------

    async def _obey(self) -> None:
        self._forsaken = not await self._controller.obeyed(self._told)
        self._ending.set()

    def _told(self, message: FromController) -> None:
        match message:
            case PlaceProcessors(operator, on):
                self.decide(PlacementAsked(operator, on))
            case TasksAre(stage, number):
                if (arrival := self._tasks.of(stage)) is not None:
                    self.decide(RelaysCounted(arrival.attempt, arrival.batch, number))
            case TopicEnds(ends):
                self._relays.tell_ends(ends, self._ledger.taken)
            case CheckNodes():
                self._nodes.check_kafka()
            case Ask():
                self._report()
            case Drain():
                self._held.put(self._drain)
            case Measure(on):
                for station in self._stations.values():
                    station.measures = on

    def _drain(self) -> None:
        self._draining = True
        self._relays.say_to_all(Grant(_ALL))
        self.decide(DrainAsked())

    def _report(self) -> None:
        if self._controller.is_behind:
            return  # nothing is lost: it is all in the next one
        ledger = self._ledger
        positions: dict[str, dict[int, int]] = {}
        for (topic, partition), offset in ledger.taken.items():
            positions.setdefault(topic, {})[partition] = offset
        state = PartState(
            batch=ledger.batch,
            attempt=ledger.attempt,
            relays=ledger.relays,
            open=self._desk.inside,
            closed_by=self._desk.admission.closed_by,
            repeated=ledger.repeated,
            clean=ledger.clean,
            positions=positions,
            visits=self._desk.visits.of_all(),
            nodes=self._nodes.states,
            waits=min(self._waiting.values(), default=""),
            disk_full=next((room.lack for room in self._rooms if room.lack), ""),
        )
        tallies = {
            name: station.tally(
                spilled=ledger.spill.waiting(name), nulls=self._desk.nulls[name]
            )
            for name, station in self._stations.items()
        }
        self._controller.tell(Report(self._settings.name, PartTally(state, tallies)))

    async def _watch(self) -> None:
        """Look after what nobody tells: time limits, starts that failed, tasks that miss."""
        limits_s = [operator.limit_s for operator in self._settings.operators.values()]
        while True:
            await asyncio.sleep(min(_LOOK_S, min(limits_s) / 4))
            now_s = monotonic()
            self._nodes.watch(now_s)
            for relay in self._heartbeats.silent(now_s):
                self._lose(relay)
            if self._held.waiting:
                self._held.retry()
                continue  # who seems to be late, or missing, may be among what waits
            for station in self._stations.values():
                station.watch(now_s)
            self._time_passed()
            if self._ledger.leaves_again and not self._relays.are_behind:
                self.decide(RelaysCaughtUp())
            ledger, listened_s = self._ledger, self._heartbeats.listened_s
            if reason := self._tasks.watch(listened_s, ledger.missing, ledger.not_begun):
                self._relays.say_to_all(Failed(reason))

    # -- other machines -----------------------------------------------------------------------

    def _door(self, listens: int) -> Door:
        identity = self._settings.identity
        return Door(
            socket.socket(fileno=listens),
            secret=bytes.fromhex(os.environ[SECRET]),
            serve={"relay": self._connections.far, "agent": self._nodes.serve},
            context=None if identity is None else host_context(identity),
        )

    def node_came(self, hello: AgentHello) -> None:
        """Start processors on a node, if they are wanted there."""
        told = NodeIs(self._settings.name, hello.node, hello.cores, hello.machine, hello.logs)
        self._controller.tell(told)
        self.decide(NodeCame(hello.node))

    def node_left(self, node: str, *, silent: bool) -> None:
        """Let others do what was under way on a node."""
        self._controller.tell(NodeIs(self._settings.name, node, None, silent=silent))
        self.decide(NodeLeft(node))

    # -- relays -----------------------------------------------------------------------------

    def relay_said(self, relay: int, message: FromRelay) -> None:
        """Decide what becomes of what a relay brings, or of its end."""
        match message:
            case RelayHello():
                self._held.put(partial(self._begin, relay, message))
            case Waits(reason):
                self._waiting[relay] = reason
            case Rows(rows):
                self._waiting.pop(relay, None)
                self.decide(RowsCame(relay, rows))
            case AllRead():
                self.decide(RelayEnded(relay))
            case Heartbeat():
                pass  # it was heard

    def relay_left(self, relay: int) -> None:
        """Do without a relay."""
        self._waiting.pop(relay, None)
        self.decide(RelayLeft(relay))

    def _lose(self, relay: int) -> None:
        """Do without a relay that is silent."""
        timeout_s = self._settings.relay_timeout_s
        batch = self._ledger.batch
        _log(f"no heartbeat from a task of batch {batch} for {timeout_s:g} s: it runs again")
        self._heartbeats.end(relay)
        self._relays.drop(relay, f"its host had no heartbeat for {timeout_s:g} s")
        self.relay_left(relay)

    def _begin(self, relay: int, hello: RelayHello) -> None:
        """Let a relay begin. Raise `DiskFull` if files need room before that."""
        if reason := self._checkpoint.refusal(hello.query):
            self._relays.say(relay, Failed(reason))
            return
        if self._tasks.is_outdated(hello.stage):
            self._relays.say(relay, Failed("a later run or batch of its query has begun"))
            return
        attempt = self._files.attempt(hello.run)
        if self._settings.stateful:
            self._files.prepare()
        arrival = Arrival(attempt=attempt, batch=hello.batch, task=hello.partition)
        self.decide(RelayCame(relay, arrival))
        self._held.put_next(partial(self._greeted, relay, arrival, hello.stage))

    def _greeted(self, relay: int, arrival: Arrival, stage: int) -> None:
        if not self._ledger.knows(relay):
            return
        self._heartbeats.begin(relay)
        if self._tasks.begins(arrival, stage):
            self._controller.tell(AskTasks(self._settings.name, stage))
        if self._draining:
            self._relays.say(relay, Grant(_ALL))

    # -- errors -----------------------------------------------------------------------------

    def broken(self, reason: str) -> None:
        """Tell the controller why the host cannot continue, and end it."""
        if not self._ending.is_set():
            token = os.environ.get(TOKEN, "")
            self._controller.tell(Broken(self._settings.name, reason, token))
        self._ending.set()

    def _failed(self, error: Exception) -> None:
        """End the host: nothing may be decided with a memory that is half changed."""
        if isinstance(error, SojournError):
            self.broken(str(error))
            return
        _log("".join(format_exception(error)).rstrip())
        self.broken(
            f"the host of {self._settings.name} failed: {type(error).__name__}: {error}; "
            "hosts.log has the traceback"
        )

    def _unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """End the host on what callbacks and tasks raise.

        Where asyncio itself reports an `OSError`, a peer has broken its connection, or nobody
        can connect for a moment because too many files are open.
        """
        error = context.get("exception")
        ours = not context.keys().isdisjoint((OURS, "handle", "future", "task"))
        if not isinstance(error, Exception) or (isinstance(error, OSError) and not ours):
            loop.default_exception_handler(context)
        else:
            self._failed(error)

    # -- what the desk decided ----------------------------------------------------------------

    def decide(self, event: Event) -> None:
        """Decide on an event, log that and carry it out; end the host on any error.

        A decision that was broken off leaves a memory with which nothing may be decided. One
        for whose log there is no room is carried out later.
        """
        self._decide(event, monotonic())

    def _decide(self, event: Event, now_s: float) -> None:
        if self._ending.is_set():
            return
        if self._held.waiting:
            self._held.put(partial(self._decide, event, now_s))
            return
        try:
            instructions = self._desk.handle(event, now_s)
            try:
                self._files.append(self._ledger.unlogged())
            except DiskFull as error:
                self._held.hold(error, partial(self._do, instructions))
            else:
                self._do(instructions)
        except Exception as error:  # noqa: BLE001 - whatever it is
            self._failed(error)

    def _time_passed(self) -> None:
        """Decide what is due; not while decisions wait, after which it is asked again."""
        if not self._held.waiting:
            self.decide(TimePassed())

    def _do(self, instructions: Iterable[Instruction]) -> None:
        for instruction in instructions:
            match instruction:
                case AtOperator(operator, then):
                    self._stations[operator].do(then)
                case Arrived(operator, record):
                    inner = record.stream in self._inner
                    self._stations[operator].arrived(record, inner=inner)
                case Sent(operator, record, children):
                    self._stations[operator].sent(record, children)
                case HandOver():
                    self._relays.hand_over(instruction)
                case GrantRelay(relay, number):
                    self._relays.grant(relay, number)
                case StopPart():
                    self._stop(instruction)
                case _:
                    self._do_batch(instruction)
        self._relays.send()
        self._alarm.set(self._desk.due_s)
        for name, station in self._stations.items():
            if station.desk.changes != self._changes[name]:
                self._changes[name] = station.desk.changes
                self._tell_reached(name, station.desk)

    def _tell_reached(self, name: str, desk: OperatorDesk) -> None:
        reached = desk.running_by_node, desk.missing
        if reached != self._reached.get(name, ({}, "")):
            self._reached[name] = reached
            self._controller.tell(
                Reached(self._settings.name, name, desk.running, desk.missing, reached[0])
            )

    def _do_batch(
        self, instruction: SaveCut | FinishRelay | RefuseRelay | Restore | MergeState
    ) -> None:
        """Do what concerns a batch."""
        match instruction:
            case SaveCut(cut, changed):
                self._save(cut, changed)
            case MergeState():
                self._merge(instruction)
            case FinishRelay(relay):
                self._relays.say(relay, Finished())
            case RefuseRelay(relay, reason):
                self._relays.say(relay, Failed(reason))

    def _stop(self, stop: StopPart) -> None:
        place, told = stop.record.place, _why_it_stops(stop)
        self._controller.tell(Stopped(self._settings.name, stop.operator, place, told))
        self._relays.say_to_all(Failed(f"{stop.operator}: record {place}: {told}"))

    def _save(self, cut: Cut, changed: Delta) -> None:
        def write() -> None:
            self._files.save(cut, changed)
            self._files.drop_before(cut.id.batch - 1 - self._settings.kept_batches)

        def then() -> None:
            self.decide(CutSaved(cut.id))
            collect_if_few(self._desk.inside)

        self._writes.put(f"the open records of {self._settings.name}", write, then)

    def _merge(self, merge: MergeState) -> None:
        self._writes.put(
            f"the state of {self._settings.name}",
            lambda: self._files.merge(merge),
            lambda: self._ledger.state.merged(merge.upto),
        )

    # -- the end ------------------------------------------------------------------------------

    async def _end(self) -> None:
        self._work.cancel()
        self._alarm.set(None)
        self._relays.close()
        self._nodes.close()
        for station in self._stations.values():
            await station.close()
        await self._writes.close()
        self._controller.close()
        self._files.close()


def _log(text: str) -> None:
    """Write to the log of hosts, which is standard error."""
    with suppress(OSError):  # a full disk does not keep the host from ending
        sys.stderr.write(stamp(text, time()))
        sys.stderr.flush()


def _why_it_stops(stop: StopPart) -> str:
    """Return the reason, first in short, with where it was raised and the way out."""
    way_out = (
        f"correct {stop.operator} and start the application again: it continues with "
        'this record; or set on_error="dead_letter" to put such records aside'
    )
    return "\n".join(part for part in (stop.reason, stop.traceback, way_out) if part)
