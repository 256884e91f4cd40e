"""The host of a part: sockets and processes around the decisions of its desk.

One event loop, which nothing may block: writes to sockets are buffered, bounded by the records
in the part; one thread writes cuts and states, in order. When the controller is gone, the host
ends, and with it templates and processors.
"""

import asyncio
import os
import socket
from collections.abc import Iterable
from functools import partial
from time import monotonic
from traceback import format_exception
from typing import Any

from sojourn.decide.plan import HERE
from sojourn.errors import DiskFull, EngineError, SojournError
from sojourn.files.logs import log
from sojourn.spark.host.agent_connections import AgentConnections
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.host.batch.ledger import Ledger
from sojourn.spark.host.batch.write_queue import HeldEvents, Room, WriteQueue
from sojourn.spark.host.controller_connection import ControllerConnection
from sojourn.spark.host.desk.events import (
    Event,
    PlacementAsked,
    RelaysCaughtUp,
    TimePassed,
)
from sojourn.spark.host.desk.instructions import Instruction
from sojourn.spark.host.desk.part_desk import PartDesk
from sojourn.spark.host.desk.part_graph import PartGraph
from sojourn.spark.host.execution import Execution
from sojourn.spark.host.listener import Door
from sojourn.spark.host.operator_runner import OperatorRunner
from sojourn.spark.host.relay_sessions import RelaySessions
from sojourn.spark.host.relays import Relays
from sojourn.spark.wire.controller import (
    Ask,
    Broken,
    CheckNodes,
    Drain,
    FromController,
    HostHello,
    Measure,
    PlaceProcessors,
    Report,
    TasksAre,
    TopicEnds,
)
from sojourn.spark.wire.counters import PartState, PartTally
from sojourn.spark.wire.event_loop import OURS, Alarm, BackgroundTasks
from sojourn.spark.wire.handshake import host_context
from sojourn.spark.wire.host_settings import SECRET, SOCKET, TOKEN, HostSettings

# Seconds between checks of time limits, and of starts that can be retried.
_LOOK_S = 0.25
_AGENT_SHARE = 0.8


class Host:
    """The operators of one part on one machine."""

    def __init__(self, settings: HostSettings) -> None:
        self._settings = settings
        logs = settings.logs
        self._stations = {
            name: OperatorRunner(
                name, self, operator, log=None if logs is None else logs / f"{name}.log"
            )
            for name, operator in settings.operators.items()
        }
        self._files = CutFiles(settings.cuts, settings.layout)
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
        self._relays = Relays()
        self._controller = ControllerConnection()
        # An agent times out a little before the tasks on its node, so that the batch is run
        # again when it is already known that the node is gone.
        agent_timeout_s = _AGENT_SHARE * settings.relay_timeout_s
        self._nodes = AgentConnections(
            settings.name,
            self._stations,
            self.decide,
            self._controller,
            timeout_s=agent_timeout_s,
        )
        self.forsaken = False
        """Whether the controller is gone without a goodbye."""
        self._ending = asyncio.Event()
        self._work = BackgroundTasks()
        # Separate, because a write in the background may find room where the log does not.
        log_room, write_room = (Room(settings.disk_patience_s, monotonic, log) for _ in "12")
        self._rooms = log_room, write_room
        self._held = HeldEvents(self._files.flush, log_room)
        self._writes = WriteQueue(self.broken, write_room)
        self._sessions = RelaySessions(
            settings,
            self.decide,
            self._ledger,
            relays=self._relays,
            files=self._files,
            held=self._held,
            controller=self._controller,
        )
        self._execution = Execution(
            settings,
            self.decide,
            self._desk,
            self._ledger,
            stations=self._stations,
            relays=self._relays,
            files=self._files,
            writes=self._writes,
            controller=self._controller,
        )

    async def run(self) -> None:
        """Serve until the controller is gone."""
        asyncio.get_running_loop().set_exception_handler(self._unhandled)
        path = self._settings.folder / SOCKET
        await self._controller.open(self._settings.controller)
        try:
            await asyncio.gather(*(station.open() for station in self._stations.values()))
            loop = asyncio.get_running_loop()
            server = await loop.create_unix_server(self._sessions.near, path)
            if self._settings.listens is not None:
                self._work.spawn(self._door(self._settings.listens).run())
            # Announced only now that templates have imported the job and relays can connect.
            self._controller.tell(
                HostHello(
                    self._settings.name, os.getpid(), str(path), os.environ.get(TOKEN, "")
                )
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
        self.forsaken = not await self._controller.obeyed(self._told)
        self._ending.set()

    def _told(self, message: FromController) -> None:
        match message:
            case PlaceProcessors(operator, on):
                self.decide(PlacementAsked(operator, on))
            case TasksAre(stage, number):
                self._sessions.counted(stage, number)
            case TopicEnds(ends):
                self._relays.tell_ends(ends, self._ledger.taken)
            case CheckNodes():
                self._nodes.check_kafka()
            case Ask():
                self._report()
            case Drain():
                self._held.put(self._sessions.drain)
            case Measure(on):
                for station in self._stations.values():
                    station.measures = on

    def _report(self) -> None:
        if self._controller.is_behind:
            return  # nothing is lost: the next report includes these counts
        ledger = self._ledger
        positions: dict[str, dict[int, int]] = {}
        for (topic, partition), offset in ledger.taken.items():
            positions.setdefault(topic, {})[partition] = offset
        state = PartState(
            batch=ledger.batch,
            attempt=ledger.attempt,
            relays=len(ledger.relays),
            open=self._desk.inside,
            closed_by=self._desk.admission.closed_by,
            repeated=ledger.repeated,
            clean=ledger.clean,
            positions=positions,
            visits=self._desk.visits.of_all(),
            nodes=self._nodes.states,
            waits=self._sessions.waits,
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
        """Check for conditions without an event: time limits, failed starts, missing tasks."""
        limits_s = [operator.limit_s for operator in self._settings.operators.values()]
        while True:
            await asyncio.sleep(min(_LOOK_S, min(limits_s) / 4))
            now_s = monotonic()
            self._nodes.watch(now_s)
            self._sessions.drop_silent(now_s)
            if self._held.waiting:
                self._held.retry()
                continue  # what seems late or missing may be among the held events
            for station in self._stations.values():
                station.watch(now_s)
            self._time_passed()
            if self._ledger.leaving.in_log and not self._relays.are_behind:
                self.decide(RelaysCaughtUp())
            self._sessions.fail_incomplete()

    # -- other machines -----------------------------------------------------------------------

    def _door(self, listens: int) -> Door:
        identity = self._settings.identity
        return Door(
            socket.socket(fileno=listens),
            secret=bytes.fromhex(os.environ[SECRET]),
            serve={"relay": self._sessions.far, "agent": self._nodes.serve},
            context=None if identity is None else host_context(identity),
        )

    # -- errors -----------------------------------------------------------------------------

    def broken(self, reason: str) -> None:
        """Report to the controller why the host cannot continue, and end it."""
        if not self._ending.is_set():
            token = os.environ.get(TOKEN, "")
            self._controller.tell(Broken(self._settings.name, reason, token))
        self._ending.set()

    def _failed(self, error: Exception) -> None:
        """End the host: after an error its state may be half changed."""
        if isinstance(error, SojournError):
            self.broken(str(error))
            return
        log("".join(format_exception(error)).rstrip())
        self.broken(
            f"the host of {self._settings.name} failed: {type(error).__name__}: {error}; "
            "hosts.log has the traceback"
        )

    def _unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """End the host on any error of a callback or a task.

        An `OSError` that asyncio itself reports is only logged: a peer has broken its
        connection, or too many open files prevent connections for a moment.
        """
        error = context.get("exception")
        ours = not context.keys().isdisjoint((OURS, "handle", "future", "task"))
        if not isinstance(error, Exception) or (isinstance(error, OSError) and not ours):
            loop.default_exception_handler(context)
        else:
            self._failed(error)

    # -- decisions ----------------------------------------------------------------------------

    def decide(self, event: Event) -> None:
        """Decide on an event, log the decision, and carry it out; end the host on any error.

        An interrupted decision leaves a state from which no other may follow. If the disk has
        no room for the log, the decision is carried out later.
        """
        self._decide(event, monotonic())

    def _decide(self, event: Event, now_s: float) -> None:
        if self._ending.is_set():
            return
        if self._held.waiting:  # behind a decision for whose log there was no room
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
        except Exception as error:  # noqa: BLE001 - any error ends the host
            self._failed(error)

    def _time_passed(self) -> None:
        """Decide on what is due; while decisions are held, `_watch` calls this later."""
        if not self._held.waiting:
            self.decide(TimePassed())

    def _do(self, instructions: Iterable[Instruction]) -> None:
        self._execution.do(instructions)
        self._alarm.set(self._desk.due_s)

    # -- the end ------------------------------------------------------------------------------

    async def _end(self) -> None:
        self._work.cancel()
        await asyncio.sleep(0)  # until it has left the connections that it reads
        self._alarm.set(None)
        self._relays.close()
        self._nodes.close()
        for station in self._stations.values():
            await station.close()
        await self._writes.close()
        self._files.close()
        await self._controller.close()
