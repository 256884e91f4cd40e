"""The host's sockets and processes: carries out what the desk decides.

One event loop, which nothing may block: writes are buffered, and bounded by the few records
in hand. When the controller is gone the host ends, and with it template and processors.
"""

import asyncio
import os
import shutil
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import msgspec

from sojourn.app.operator import OnError
from sojourn.errors import EngineError
from sojourn.host.counting import HostState
from sojourn.host.desk import Desk
from sojourn.host.instructions import (
    Fail,
    Finish,
    Grant,
    Instruction,
    Reply,
)
from sojourn.host.messages import (
    Answer,
    Answers,
    Credit,
    End,
    Failed,
    Finished,
    Frames,
    FromFeed,
    Hello,
    Leave,
    PassedBy,
    Records,
    Result,
    Stay,
    framed,
)
from sojourn.host.reports import (
    Ask,
    Broken,
    Bye,
    Drain,
    FromController,
    Here,
    Measure,
    Reached,
    Report,
    ScaleProcessors,
    Stopped,
)
from sojourn.host.station import Station

__all__ = ["TOKEN", "Host", "HostSettings"]

TOKEN = "SOJOURN_HOST_TOKEN"  # noqa: S105 - its name
"""The variable by which a host knows what to say to its controller."""

_CHUNK = 1 << 16
# Java needs a moment to notice that it is not wanted any more, and may write until then.
_REMOVE_FOR_S, _REMOVE_EVERY_S = 3.0, 0.1
_GONE_WITHIN_S = 10.0
# A controller that has not read so much is not going to: reports wait, and nothing else.
_MOST_UNREAD_BYTES = 1 << 20
# How often to look for what is late, and for what can be started again.
_LOOK_S = 0.25

_from_feed = msgspec.msgpack.Decoder(FromFeed).decode
_from_controller = msgspec.msgpack.Decoder(FromController).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSettings:
    """What a host runs, and where it is reached.

    *job* is `package.module:factory`, called with *argument*. Feeds connect to `feed.sock` in
    *folder*, which only the owner may enter; the controller listens at *controller*. The
    folder *temporary* is removed by hosts if the process that started them was killed.

    A record may take *limit_s*; a set-up, which loads models, *set_up_limit_s*.
    """

    name: str
    job: str
    folder: Path
    controller: Path = Path()
    argument: str = ""
    processors: int = 1
    on_error: OnError = field(default_factory=OnError)
    limit_s: float = 300.0
    set_up_limit_s: float = 300.0
    temporary: Path | None = None


class Host:
    """One operator on one machine."""

    def __init__(self, settings: HostSettings) -> None:
        self._settings = settings
        self._station = Station(
            settings.name,
            self,
            job=settings.job,
            argument=settings.argument,
            folder=settings.folder,
            on_error=settings.on_error,
            limit_s=settings.limit_s,
            set_up_limit_s=settings.set_up_limit_s,
        )
        self._desk = Desk(self._station.desk)
        self._feeds: dict[int, asyncio.StreamWriter] = {}
        self._reached, self._forsaken = (0, ""), False
        self._number = 0
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
        feeds = self._settings.folder / "feed.sock"
        reader, self._controller = await asyncio.open_unix_connection(self._settings.controller)
        try:
            await self._station.open()
            server = await asyncio.start_unix_server(self._feed, feeds)
            self._tell(Here(self._settings.name, os.getpid(), str(feeds), _token()))
            self._do(self._desk.scaled(self._settings.processors, monotonic()))
            self._spawn(self._obey(reader))
            self._spawn(self._watch())
            await self._ending.wait()
            server.close()
        except (EngineError, OSError) as error:
            self.broken(str(error))
            raise EngineError(f"{self._settings.name}: {error}") from error
        finally:
            await self._end()
            feeds.unlink(missing_ok=True)

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
                    case ScaleProcessors(processors):
                        self._do(self._desk.scaled(processors, monotonic()))
                    case Ask():
                        self._report()
                    case Drain():
                        self._drain()
                    case Measure(on):
                        self._station.measures = on
                    case Bye():
                        return True
        return False

    def _drain(self) -> None:
        self._desk.drain()
        for feed in self._feeds:
            self._say(feed, Stay())

    def _report(self) -> None:
        if self._controller is None or self._unread() > _MOST_UNREAD_BYTES:
            return  # nothing is lost: it is all in the next one
        desk, operator = self._desk, self._station.desk
        state = HostState(
            wanted=operator.wanted,
            running=operator.running,
            waiting=operator.waiting,
            replayed=desk.replayed,
            retried=operator.retried,
            dead=operator.dead,
            feeds=desk.feeds,
            drained=desk.drained,
            batches=desk.batches,
            missing=operator.missing,
        )
        self._tell(Report(self._settings.name, self._station.tally(state)))

    def _unread(self) -> int:
        return self._controller.transport.get_write_buffer_size() if self._controller else 0

    def _tell(self, message: msgspec.Struct) -> None:
        if self._controller is not None and not self._controller.is_closing():
            self._controller.write(framed(message))

    async def _watch(self) -> None:
        """Look after what nobody tells: time limits, and starts that failed."""
        while True:
            await asyncio.sleep(min(_LOOK_S, self._settings.limit_s / 4))
            now_s = monotonic()
            self._station.watch(now_s)
            self._do(self._desk.time_passed(now_s))

    # -- feeds ----------------------------------------------------------------------------

    async def _feed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._number += 1
        feed, frames = self._number, Frames()
        self._feeds[feed] = writer
        try:
            while some := await reader.read(_CHUNK):
                for body in frames.fed(some):
                    self._heard(feed, _from_feed(body))
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:  # else it would wait for ever
            self._feeds.pop(feed, None)
            writer.close()
            self._desk.feed_left(feed)

    def _heard(self, feed: int, message: FromFeed) -> None:
        now_s = monotonic()
        match message:
            case Hello():
                self._do(self._desk.feed_came(feed, message))
                if self._desk.draining:
                    self._say(feed, Stay())
            case Records(records):
                idle = not self._station.desk.waiting
                new = [record for record in records if not self._desk.knows(record)]
                instructions = self._desk.records_came(feed, records, now_s)
                self._station.arrived(new, instructions if idle else ())
                self._do(instructions)
            case PassedBy(stream, partition, offset):
                self._station.counters.passed_by(stream, partition, offset)
            case End():
                self._do(self._desk.feed_ended(feed))
            case Leave():
                self._do(self._desk.feed_leaves(feed))

    # -- processors -------------------------------------------------------------------------

    def processor_ready(self, number: int) -> None:
        """Decide what a processor does first."""
        self._do(self._desk.processor_ready(number, monotonic()))

    def processor_done(self, number: int, results: list[Result]) -> None:
        """Decide what becomes of what a processor has done."""
        self._do(self._desk.processor_done(number, results, monotonic()))

    def processor_died(self, number: int, reason: str, *, late: bool) -> None:
        """Decide what becomes of the records of a processor that is gone."""
        self._do(self._desk.processor_died(number, reason, monotonic(), late=late))

    def broken(self, reason: str) -> None:
        """Say that the host cannot go on, and end it."""
        self._tell(Broken(self._settings.name, reason, _token()))
        self._ending.set()

    # -- what the desk decided ----------------------------------------------------------------

    def _do(self, instructions: Iterable[Instruction]) -> None:
        answers: dict[int, list[Answer]] = {}
        for instruction in instructions:
            match instruction:
                case Reply(feed, answer, record):
                    answers.setdefault(feed, []).append(answer)
                    if record is not None:
                        self._station.answered(record, answer)
                case Finish(feed):
                    self._say(feed, Answers(answers.pop(feed, [])))
                    self._say(feed, Finished())
                case Grant(feed, number):
                    self._say(feed, Credit(number))
                case Fail(feed, record, reason, traceback):
                    told = self._why_it_stops(reason, traceback)
                    self._say(feed, Failed(record.number, told))
                    self._tell(Stopped(self._settings.name, record.place, told))
                case _:
                    self._station.do(instruction)
        for feed, some in answers.items():
            self._say(feed, Answers(some))
        reached = self._station.desk.running, self._station.desk.missing
        if reached != self._reached:
            self._reached = reached
            self._tell(Reached(self._settings.name, *reached))

    def _say(self, feed: int, message: msgspec.Struct) -> None:
        if (writer := self._feeds.get(feed)) is not None and not writer.is_closing():
            writer.write(framed(message))

    def _why_it_stops(self, reason: str, traceback: str) -> str:
        """Return the reason, first in short, with where it was raised and the way out."""
        way_out = (
            f"correct {self._settings.name} and start the application again: it continues with "
            'this record; or set on_error="dead_letter" to put such records aside'
        )
        return "\n".join(part for part in (reason, traceback, way_out) if part)

    # -- the end ------------------------------------------------------------------------------

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _end(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        for writer in self._feeds.values():
            writer.close()
        await self._station.close()
        if self._controller is not None:
            self._controller.close()


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
