"""The host of a part: its sockets and processes carry out what the desk decides.

One event loop, which nothing may block: writes are buffered, and bounded by the records
inside; cuts are written by a thread. When the controller is gone the host ends, and with it
templates and processors.
"""

import asyncio
import os
import shutil
import socket
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, time
from typing import ParamSpec

import msgspec

from sojourn.errors import EngineError, SojournError
from sojourn.host.batch.cut import Cut
from sojourn.host.batch.cut_store import CutFiles
from sojourn.host.batch.instructions import (
    Arrival,
    FinishRelay,
    HandOver,
    RefuseRelay,
    Restore,
    SaveCut,
)
from sojourn.host.batch.ledger import Ledger
from sojourn.host.batch.relay_messages import (
    AllRead,
    Failed,
    Finished,
    FromRelay,
    Grant,
    RelayHello,
    Rows,
)
from sojourn.host.desk.admission import GrantRelay
from sojourn.host.desk.part_desk import (
    Arrived,
    AtOperator,
    PartDesk,
    PartInstruction,
    Sent,
    StopPart,
)
from sojourn.host.desk.part_graph import PartGraph
from sojourn.host.node.door import Door
from sojourn.host.node.encryption import host_context
from sojourn.host.node.messages import AgentHello
from sojourn.host.node.nodes import Nodes
from sojourn.host.process.messages import Frames, Result, framed
from sojourn.host.relays import Relays
from sojourn.host.report.counting import PartState, PartTally
from sojourn.host.report.reports import (
    Ask,
    AskTasks,
    Broken,
    Bye,
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
)
from sojourn.host.state.keyed_state import Delta, MergeState
from sojourn.host.station import OperatorSettings, Station
from sojourn.plan import HERE

__all__ = ["SECRET", "SOCKET", "TOKEN", "Host", "HostSettings"]

TOKEN = "SOJOURN_HOST_TOKEN"  # noqa: S105 - its name
"""The variable by which a host knows what to say to its controller."""
SECRET = "SOJOURN_RUN_SECRET"  # noqa: S105 - its name
"""The variable by which a host knows who may connect from other machines."""
SOCKET = "relay.sock"
"""Where relays reach a host, in its folder."""

_CHUNK = 1 << 16
# Java needs a moment to notice that it is not wanted any more, and may write until then.
_REMOVE_FOR_S, _REMOVE_EVERY_S = 3.0, 0.1
_GONE_WITHIN_S = 10.0
# A controller that has not read so much is not going to: reports wait, and nothing else.
_MOST_UNREAD_BYTES = 1 << 20
# How often to look for what is late, and for what can be started again.
_LOOK_S = 0.25
# For so long a batch whose first tasks have ended waits for those that have not begun.
_MISSING_S = 10.0
# Credit of relays while the application ends in order: whatever Spark has read is taken.
_ALL = 1 << 30

P = ParamSpec("P")

_from_relay = msgspec.msgpack.Decoder(FromRelay).decode
_from_controller = msgspec.msgpack.Decoder(FromController).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSettings:
    """What the host of a part runs, and where it is reached.

    *readers*, *emits*, *leaving*, *everyone*, *inner*, *behind* and *stateful* are its graph's;
    *projected* are inner streams that projections make of what is read from Kafka. Roots of
    reminders are called as *reminded* says, and states expire after *ttl_s*, by operator.
    Relays connect to a socket in *folder*, which only the owner may enter; the controller
    listens at *controller*. Cuts are kept in the folder *cuts*, with what is spilled, and what
    operators print in *logs*. The folder *temporary* is removed by hosts if the process that
    started them was killed. The file descriptor *listens* is a socket for other machines; what
    is said there is encrypted if there is a file *identity*, with a key and its certificate.
    """

    name: str
    operators: Mapping[str, OperatorSettings]
    readers: Mapping[str, tuple[str, ...]]
    emits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    leaving: tuple[str, ...] = ()
    everyone: tuple[tuple[str, str], ...] = ()
    inner: tuple[str, ...] = ()
    projected: tuple[str, ...] = ()
    behind: Mapping[str, str] = field(default_factory=dict)
    stateful: tuple[str, ...] = ()
    reminded: Mapping[str, str] = field(default_factory=dict)
    ttl_s: Mapping[str, float] = field(default_factory=dict)
    folder: Path
    cuts: Path
    logs: Path | None = None
    controller: Path = Path()
    temporary: Path | None = None
    listens: int | None = None
    identity: Path | None = None

    @property
    def layout(self) -> str:
        """What a log of open records depends on: who reads what, and who keeps a state."""
        return repr((sorted(self.operators), dict(self.readers), self.leaving, self.stateful))


@dataclass(slots=True)
class _Batch:
    """The tasks of a batch: of which stage of Spark, and since when some have ended."""

    arrival: Arrival
    stage: int
    ended_s: float | None = None


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
        self._ledger = Ledger(self._files, reminded=settings.reminded)
        self._desk = PartDesk(
            PartGraph(
                readers=settings.readers,
                emits=settings.emits,
                leaving=frozenset(settings.leaving),
                everyone=frozenset(settings.everyone),
                inner=frozenset(settings.inner),
                behind=settings.behind,
                stateful=frozenset(settings.stateful),
            ),
            {name: station.desk for name, station in self._stations.items()},
            self._ledger,
            ttl_s=settings.ttl_s,
        )
        self._alarm: tuple[float, asyncio.TimerHandle] | None = None
        # of what comes from Kafka, offsets tell how much there is
        self._inner = frozenset(settings.inner) - frozenset(settings.projected)
        self._relays = Relays()
        self._nodes = Nodes(settings.name, self._stations, self)
        self._batch: _Batch | None = None
        self._draining = False
        self._reached: dict[str, tuple[Mapping[str, int], str]] = {}
        self._forsaken = False
        self._ending = asyncio.Event()
        self._controller: asyncio.StreamWriter | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Serve until the controller is gone."""
        started_by = os.getppid()
        try:
            await self._serve()
        finally:
            temporary = self._settings.temporary
            if temporary is not None and self._forsaken and await _gone(started_by):
                await _removed(temporary)

    async def _serve(self) -> None:
        path = self._settings.folder / SOCKET
        reader, self._controller = await asyncio.open_unix_connection(self._settings.controller)
        try:
            await asyncio.gather(*(station.open() for station in self._stations.values()))
            server = await asyncio.start_unix_server(self._relay, path)
            if self._settings.listens is not None:
                self._spawn(self._door(self._settings.listens).run())
            self._tell(Here(self._settings.name, os.getpid(), str(path), _token()))
            for name, operator in self._settings.operators.items():
                on = {HERE: operator.processors} if operator.on is None else operator.on
                self._decide(self._desk.placed, name, on, monotonic())
            self._spawn(self._obey(reader))
            self._spawn(self._watch())
            await self._ending.wait()
            server.close()
        except (EngineError, OSError) as error:
            self.broken(str(error))
            raise EngineError(f"{self._settings.name}: {error}") from error
        finally:
            await self._end()
            path.unlink(missing_ok=True)

    # -- controller -----------------------------------------------------------------------

    async def _obey(self, reader: asyncio.StreamReader) -> None:
        in_order = False
        try:
            with suppress(ConnectionError):  # it was killed, and had not read all of it
                in_order = await self._obeyed(reader)
            self._forsaken = not in_order
        finally:
            self._ending.set()

    async def _obeyed(self, reader: asyncio.StreamReader) -> bool:
        """Return whether the controller took its leave."""
        frames = Frames()
        while some := await reader.read(_CHUNK):
            for body in frames.fed(some):
                match _from_controller(body):
                    case PlaceProcessors(operator, on):
                        self._decide(self._desk.placed, operator, on, monotonic())
                    case TasksAre(stage, number):
                        self._tasks_are(stage, number)
                    case Ask():
                        self._report()
                    case Drain():
                        self._drain()
                    case Measure(on):
                        for station in self._stations.values():
                            station.measures = on
                    case Bye():
                        return True
        return False

    def _drain(self) -> None:
        self._draining = True
        self._relays.say_to_all(Grant(_ALL))
        self._decide(self._desk.drain)

    def _report(self) -> None:
        if self._controller is None or self._unread() > _MOST_UNREAD_BYTES:
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
        )
        tallies = {
            name: station.tally(spilled=ledger.spill.waiting(name))
            for name, station in self._stations.items()
        }
        self._tell(Report(self._settings.name, PartTally(state, tallies)))

    def _unread(self) -> int:
        return self._controller.transport.get_write_buffer_size() if self._controller else 0

    def _tell(self, message: msgspec.Struct) -> None:
        if self._controller is not None and not self._controller.is_closing():
            self._controller.write(framed(message))

    async def _watch(self) -> None:
        """Look after what nobody tells: time limits, starts that failed, tasks that miss."""
        limits_s = [operator.limit_s for operator in self._settings.operators.values()]
        while True:
            await asyncio.sleep(min(_LOOK_S, min(limits_s) / 4))
            now_s = monotonic()
            for station in self._stations.values():
                station.watch(now_s)
            self._decide(self._desk.time_passed, now_s)
            self._watch_tasks(now_s)

    # -- other machines -----------------------------------------------------------------------

    def _door(self, listens: int) -> Door:
        identity = self._settings.identity
        return Door(
            socket.socket(fileno=listens),
            secret=bytes.fromhex(os.environ[SECRET]),
            serve={"relay": self._relay, "agent": self._nodes.serve},
            context=None if identity is None else host_context(identity),
        )

    def node_came(self, hello: AgentHello) -> None:
        """Start processors on a node, if they are wanted there."""
        told = NodeIs(self._settings.name, hello.node, hello.cores, hello.machine, hello.logs)
        self._tell(told)
        self._decide(self._desk.node_came, hello.node, monotonic())

    def node_left(self, node: str) -> None:
        """Let others do what was under way on a node."""
        self._tell(NodeIs(self._settings.name, node, None))
        self._decide(self._desk.node_left, node, monotonic())

    # -- relays -----------------------------------------------------------------------------

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        relay, frames = self._relays.came(writer), Frames()
        try:
            while some := await _said(reader):
                for body in frames.fed(some):
                    self._heard(relay, _from_relay(body))
        except asyncio.CancelledError:
            pass
        except (SojournError, OSError) as error:  # its files cannot be read, or written
            self.broken(str(error))
        finally:  # else it would wait for ever
            self._relays.left(relay)
            self._decide(self._desk.relay_left, relay)

    def _heard(self, relay: int, message: FromRelay) -> None:
        match message:
            case RelayHello(run, batch, stage):
                self._greeted(
                    relay, Arrival(attempt=self._files.attempt(run), batch=batch), stage
                )
            case Rows(rows):
                self._decide(self._desk.rows_came, relay, rows, monotonic())
            case AllRead():
                self._decide(self._desk.relay_ended, relay)

    def _greeted(self, relay: int, arrival: Arrival, stage: int) -> None:
        self._decide(self._desk.relay_came, relay, arrival, monotonic())
        if not self._ledger.knows(relay):
            return
        if self._batch is None or self._batch.arrival != arrival:
            self._batch = _Batch(arrival, stage)
            self._tell(AskTasks(self._settings.name, stage))
        if self._draining:
            self._relays.say(relay, Grant(_ALL))

    def _tasks_are(self, stage: int, number: int) -> None:
        if self._batch is not None and self._batch.stage == stage:
            arrival = self._batch.arrival
            self._decide(self._desk.relays_are, arrival.attempt, arrival.batch, number)

    def _watch_tasks(self, now_s: float) -> None:
        """Fail a batch some of whose tasks do not begin: it would never end."""
        missing, batch = self._ledger.missing, self._batch
        if batch is None or not missing:
            if batch is not None:
                batch.ended_s = None
            return
        if batch.ended_s is None:
            batch.ended_s = now_s
        elif now_s - batch.ended_s > _MISSING_S:
            reason = f"{missing} after {_MISSING_S:g} s; Spark may have too few slots"
            self._relays.say_to_all(Failed(reason))

    # -- processors -------------------------------------------------------------------------

    def processor_ready(self, operator: str, number: int) -> None:
        """Decide what a processor does first."""
        self._decide(self._desk.processor_ready, operator, number, monotonic())

    def processor_done(self, operator: str, number: int, results: list[Result]) -> None:
        """Decide what becomes of what a processor has done."""
        self._decide(self._desk.processor_done, operator, number, results, monotonic())

    def processor_died(self, operator: str, number: int, reason: str, *, late: bool) -> None:
        """Decide what becomes of the records of a processor that is gone."""
        died = self._desk.processor_died
        self._decide(died, operator, number, reason, monotonic(), late=late)

    def broken(self, reason: str) -> None:
        """Say that the host cannot go on, and end it."""
        self._tell(Broken(self._settings.name, reason, _token()))
        self._ending.set()

    # -- what the desk decided ----------------------------------------------------------------

    def _decide(
        self, decide: Callable[P, Iterable[PartInstruction]], *event: P.args, **more: P.kwargs
    ) -> None:
        """Let an event be decided, and do it; end the host if files cannot be read or written.

        A decision that was broken off leaves a memory with which nothing may be decided.
        """
        if self._ending.is_set():
            return
        try:
            instructions = decide(*event, **more)
            self._files.log.append(self._ledger.unlogged())
        except SojournError as error:
            self.broken(str(error))
        else:
            self._do(instructions)

    def _do(self, instructions: Iterable[PartInstruction]) -> None:
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
        self._set_alarm()
        for name, station in self._stations.items():
            desk = station.desk
            reached = desk.running_by_node, desk.missing
            if reached != self._reached.get(name, ({}, "")):
                self._reached[name] = reached
                self._tell(
                    Reached(self._settings.name, name, desk.running, desk.missing, reached[0])
                )

    def _set_alarm(self) -> None:
        """Let time pass when the next reminder is due, not only now and then."""
        due_s = self._desk.due_s
        if self._alarm is not None:
            if self._alarm[0] == due_s:
                return
            self._alarm[1].cancel()
            self._alarm = None
        if due_s is not None:
            waits_s = max(0.0, due_s - time())
            self._alarm = due_s, asyncio.get_running_loop().call_later(waits_s, self._alarmed)

    def _alarmed(self) -> None:
        self._alarm = None
        self._decide(self._desk.time_passed, monotonic())

    def _do_batch(
        self, instruction: SaveCut | FinishRelay | RefuseRelay | Restore | MergeState
    ) -> None:
        """Do what concerns a batch."""
        match instruction:
            case SaveCut(cut, changed):
                self._spawn(self._save(cut, changed))
            case MergeState():
                self._spawn(self._merge(instruction))
            case FinishRelay(relay):
                self._relays.say(relay, Finished())
            case RefuseRelay(relay, reason):
                self._relays.say(relay, Failed(reason))

    def _stop(self, stop: StopPart) -> None:
        place, told = stop.record.place, _why_it_stops(stop)
        self._tell(Stopped(self._settings.name, stop.operator, place, told))
        self._relays.say_to_all(Failed(f"{stop.operator}: record {place}: {told}"))

    async def _save(self, cut: Cut, changed: Delta) -> None:
        try:
            await asyncio.to_thread(self._files.save, cut, changed)
        except EngineError as error:
            self.broken(f"the open records of {self._settings.name}: {error}")
            return
        self._decide(self._ledger.saved, cut.id)
        self._files.drop_before(cut.id.batch - 1)

    async def _merge(self, merge: MergeState) -> None:
        try:
            await asyncio.to_thread(self._files.merge, merge)
        except EngineError as error:
            self.broken(f"the state of {self._settings.name}: {error}")
        else:
            self._ledger.state.merged(merge.upto)

    # -- the end ------------------------------------------------------------------------------

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _end(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        if self._alarm is not None:
            self._alarm[1].cancel()
        self._relays.close()
        self._nodes.close()
        for station in self._stations.values():
            await station.close()
        if self._controller is not None:
            self._controller.close()
        self._files.close()


async def _said(reader: asyncio.StreamReader) -> bytes:
    """Return what a relay says; nothing if its connection is over, however it broke."""
    try:
        return await reader.read(_CHUNK)
    except OSError:
        return b""


def _why_it_stops(stop: StopPart) -> str:
    """Return the reason, first in short, with where it was raised and the way out."""
    way_out = (
        f"correct {stop.operator} and start the application again: it continues with "
        'this record; or set on_error="dead_letter" to put such records aside'
    )
    return "\n".join(part for part in (stop.reason, stop.traceback, way_out) if part)


async def _gone(parent: int) -> bool:
    """Return whether the process that started this one is gone.

    The connections of one that is killed break a moment before.
    """
    until_s = monotonic() + _GONE_WITHIN_S
    while monotonic() < until_s:
        if os.getppid() != parent:
            return True
        await asyncio.sleep(_REMOVE_EVERY_S)
    return False


async def _removed(folder: Path) -> None:
    """Return when nobody writes to the folder any more, and it is gone."""
    until_s = monotonic() + _REMOVE_FOR_S
    while monotonic() < until_s:
        shutil.rmtree(folder, ignore_errors=True)
        await asyncio.sleep(_REMOVE_EVERY_S)


def _token() -> str:
    return os.environ.get(TOKEN, "")
