"""The host's sockets and processes: carries out what the desk decides.

One event loop, which nothing may block: writes are buffered, and bounded by the few records
in hand. When the controller is gone the host ends, and with it template and processors.
"""

import asyncio
import os
import shutil
import sys
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, time

import msgspec

from sojourn.app.operator import OnError
from sojourn.errors import EngineError
from sojourn.host.counting import Counters, HostState
from sojourn.host.desk import Desk
from sojourn.host.error_log import ErrorLog
from sojourn.host.instructions import (
    Fail,
    Finish,
    Give,
    Grant,
    Instruction,
    Keep,
    KillProcessor,
    NotKept,
    Reply,
    StartProcessor,
)
from sojourn.host.latest_file import LatestFile
from sojourn.host.log_lines import stamp
from sojourn.host.messages import (
    Answer,
    Answers,
    Credit,
    Done,
    End,
    Failed,
    Finished,
    Frames,
    FromFeed,
    FromProcessor,
    Hello,
    Leave,
    NotReady,
    PassedBy,
    Ready,
    Record,
    Records,
    Result,
    Stay,
    framed,
)
from sojourn.host.processes import Processes
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
from sojourn.host.tracing import Trace, child_identity

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
        self._latest_file = LatestFile(settings.folder / "latest")
        self._latest = self._latest_file.read()
        self._desk = Desk(on_error=settings.on_error, latest=self._latest)
        self._counters = Counters(since_s=monotonic())
        self._errors = ErrorLog()
        self._processes = Processes(settings.job, settings.argument, self)
        self._feeds: dict[int, asyncio.StreamWriter] = {}
        self._given: dict[int, list[tuple[Record, float | None]]] = {}
        self._reached, self._measures, self._forsaken = (0, ""), True, False
        self._late: set[int] = set()
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
            await self._processes.open()
            server = await asyncio.start_unix_server(self._feed, feeds)
            self._tell(Here(self._settings.name, os.getpid(), str(feeds), _token()))
            self._do(self._desk.scaled(self._settings.processors, monotonic()))
            self._spawn(self._obey(reader))
            self._spawn(self._watch())
            await self._ending.wait()
            server.close()
        except (EngineError, OSError) as error:
            self._break(str(error))
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
                        self._measures = on
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
        desk = self._desk
        state = HostState(
            wanted=desk.operator.wanted,
            running=desk.operator.running,
            waiting=desk.operator.waiting,
            replayed=desk.replayed,
            retried=desk.operator.retried,
            dead=desk.operator.dead,
            feeds=desk.feeds,
            drained=desk.drained,
            batches=desk.batches,
            missing=desk.operator.missing,
        )
        tally = self._counters.taken(monotonic(), state, memory=self._memory())
        self._tell(Report(self._settings.name, tally))
        if self._counters.untold:
            _log(f"{self._counters.untold} traces dropped: the driver did not ask in time")
            self._counters.untold = 0

    def _unread(self) -> int:
        return self._controller.transport.get_write_buffer_size() if self._controller else 0

    def _memory(self) -> dict[str, int]:
        memory = self._processes.memory()
        return {self._called(number): used for number, used in memory.items()}

    def _called(self, number: int) -> str:
        return f"{self._settings.name}-{number}"

    def _tell(self, message: msgspec.Struct) -> None:
        if self._controller is not None and not self._controller.is_closing():
            self._controller.write(framed(message))

    def _break(self, reason: str) -> None:
        """Say that the host cannot go on, and end it."""
        self._tell(Broken(self._settings.name, reason, _token()))
        self._ending.set()

    async def _watch(self) -> None:
        """Look after what nobody tells: time limits, and starts that failed."""
        settings = self._settings
        while True:
            await asyncio.sleep(min(_LOOK_S, settings.limit_s / 4))
            now_s = monotonic()
            for number in self._desk.operator.late(now_s, settings.limit_s):
                self._late.add(number)
                limit = f"took longer than {settings.limit_s:g} s for one record"
                self._processes.kill(number, limit)
            for number in self._desk.operator.unready(now_s, settings.set_up_limit_s):
                limit = f"took longer than {settings.set_up_limit_s:g} s for its set_up"
                self._processes.kill(number, limit)
            self._do(self._desk.time_passed(now_s))
            for line in self._errors.repeated(now_s):
                _log(line)

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
            case Records():
                idle = not self._desk.operator.waiting
                new = [r for r in message.records if not self._desk.knows(r)]
                instructions = self._desk.records_came(feed, message.records, now_s)
                if self._measures:
                    self._arrived(new, instructions if idle else ())
                self._do(instructions)
            case PassedBy(stream, partition, offset):
                self._counters.passed_by(stream, partition, offset)
            case End():
                self._do(self._desk.feed_ended(feed))
            case Leave():
                self._do(self._desk.feed_leaves(feed))

    def _arrived(self, records: Iterable[Record], at_once: Iterable[Instruction]) -> None:
        """Count records that came, and of those given to a processor *at_once* their way."""
        now_s = time()
        for record in records:
            self._counters.arrived(record)
        for instruction in at_once:
            if isinstance(instruction, Give) and instruction.new:
                for record in instruction.records:
                    self._counters.transferred(max(0.0, now_s - record.written_s))

    # -- processors -------------------------------------------------------------------------

    def said(self, number: int, message: FromProcessor) -> None:
        """Hear what a processor says."""
        now_s = monotonic()
        match message:
            case Ready():
                self._do(self._desk.processor_ready(number, now_s))
            case NotReady(error, traceback):
                _log(self._errors.seen(f"set_up raised {error}", traceback, ""))
            case Done(results):
                self._count(number, results)
                self._do(self._desk.processor_done(number, results, now_s))

    def lost(self, number: int) -> None:
        """Give a processor that is gone nothing more."""
        self._desk.operator.processor_lost(number)

    def died(self, number: int, reason: str) -> None:
        """Let the desk decide what to do about a processor that is gone."""
        late = number in self._late
        self._late.discard(number)
        given = self._given.pop(number, [])
        _log(self._errors.seen(f"a processor {reason}", "", given[0][0].place if given else ""))
        self._do(
            self._desk.processor_died(number, f"its processor {reason}", monotonic(), late=late)
        )
        if self._desk.operator.hopeless:
            failures = self._desk.operator.failures
            self._break(f"{failures} processors in a row did not start; the last {reason}")

    def template_ended(self) -> None:
        """End: no processor could be started any more."""
        self._break("the template process, which starts processors, ended")

    def _count(self, number: int, results: list[Result]) -> None:
        given = self._given[number]
        self._given[number] = given[len(results) :]
        for (record, waited_s), result in zip(given, results, strict=False):
            if result.error:
                _log(self._errors.seen(result.error, result.traceback, record.place))
            if self._measures and waited_s is not None and not result.skipped:
                self._counters.served(
                    self._called(number),
                    service_s=result.took_s,
                    wait_s=waited_s,
                    cpu_s=result.cpu_s,
                )

    # -- what the desk decided ----------------------------------------------------------------

    def _do(self, instructions: Iterable[Instruction]) -> None:
        answers: dict[int, list[Answer]] = {}
        for instruction in instructions:
            match instruction:
                case Reply(feed, answer, record):
                    answers.setdefault(feed, []).append(answer)
                    if record is not None and self._measures:
                        self._answered(record, answer)
                case Finish(feed):
                    self._say(feed, Answers(answers.pop(feed, [])))
                    self._say(feed, Finished())
                case _:
                    self._carry_out(instruction)
        for feed, some in answers.items():
            self._say(feed, Answers(some))
        reached = self._desk.operator.running, self._desk.operator.missing
        if reached != self._reached:
            self._reached = reached
            self._tell(Reached(self._settings.name, *reached))

    def _carry_out(
        self, instruction: Give | StartProcessor | KillProcessor | Grant | Fail | Keep | NotKept
    ) -> None:
        match instruction:
            case Give():
                self._give(instruction)
            case Keep(record):
                self._keep(record)
            case NotKept(record, reason):
                told = f"processors that start later will not get this record: {reason}"
                _log(self._errors.seen(told, "", record.place))
            case StartProcessor(processor):
                self._processes.start(processor)
            case KillProcessor(processor):
                self._given.pop(processor, None)
                self._processes.let_go(processor)
            case Grant(feed, number):
                self._say(feed, Credit(number))
            case Fail(feed, record, reason, traceback):
                told = self._why_it_stops(reason, traceback)
                self._say(feed, Failed(record.number, told))
                self._tell(Stopped(self._settings.name, record.place, told))

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

    def _keep(self, record: Record) -> None:
        try:
            self._latest_file.add(record, self._latest)
        except OSError as error:  # a full disk: as long as this host lives, it has them
            _log(
                self._errors.seen(
                    f"a restarted host will not have this record: {error}", "", record.place
                )
            )

    def _give(self, given: Give) -> None:
        now_s = time()
        self._given[given.processor] = [
            (record, _waited_s(record, now_s) if given.new else None)
            for record in given.records
        ]
        self._processes.give(given.processor, given.records)

    def _answered(self, record: Record, answer: Answer) -> None:
        for output in answer.outputs:
            self._counters.passed(output.stream, output.size_bytes)
        if not record.traced:
            return
        done_s, name = time(), record.name or record.identity
        children = [
            (
                output.stream,
                child_identity(name, self._settings.name, place, root=record.root),
            )
            for place, output in enumerate(answer.outputs)
        ]
        self._counters.traced(
            Trace(
                root=record.root,
                identity=name,
                birth_s=record.birth_s,
                done_s=done_s,
                sojourn_s=max(0.0, done_s - record.written_s),
                weight=record.traced,
                children=children,
            )
        )

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
        await self._processes.close()
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


def _waited_s(record: Record, now_s: float) -> float:
    return max(0.0, now_s - record.written_s) if record.written_s else 0.0


def _log(text: str) -> None:
    """Write to the log of the operator; one that cannot be written harms nobody."""
    if text:
        with suppress(OSError):
            sys.stderr.write(stamp(text, time()))
            sys.stderr.flush()
