"""The host's sockets and processes: carries out what the desk decides.

One event loop, which nothing may block: writes are buffered, and bounded by the few records
in hand. When the controller is gone the host ends, and with it template and processors.
"""

import asyncio
import os
import shutil
import signal
import socket
import sys
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, time

import msgspec
import psutil

from sojourn.app.operator import OnError
from sojourn.errors import EngineError
from sojourn.host.counting import Counters, State
from sojourn.host.desk import (
    Desk,
    Fail,
    Finish,
    Give,
    Grant,
    Instruction,
    Kill,
    Reply,
    Start,
)
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
    PassedBy,
    Ready,
    Record,
    Records,
    Result,
    Stay,
    Work,
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
    Scale,
    Stopped,
)
from sojourn.host.template import Ended, Forked, FromTemplate, Loaded
from sojourn.host.tracing import Trace, child_identity

__all__ = ["TOKEN", "Host", "Settings"]

TOKEN = "SOJOURN_HOST_TOKEN"  # noqa: S105 - its name
"""The variable by which a host knows what to say to its controller."""

_CHUNK = 1 << 16
# Processors that die so often in a row before they can take a record never will.
_MOST_STILLBORN = 5
# What the template says of a dead processor comes a little after its connection broke.
_LAST_WORDS_S = 0.5
# Java needs a moment to notice that it is not wanted any more, and may write until then.
_REMOVE_FOR_S, _REMOVE_EVERY_S = 3.0, 0.1
_GONE_WITHIN_S = 10.0
# A controller that has not read so much is not going to: reports wait, and nothing else.
_MOST_UNREAD_BYTES = 1 << 20

_from_feed = msgspec.msgpack.Decoder(FromFeed).decode
_from_processor = msgspec.msgpack.Decoder(FromProcessor).decode
_from_template = msgspec.msgpack.Decoder(FromTemplate).decode
_from_controller = msgspec.msgpack.Decoder(FromController).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a host runs, and where it is reached.

    *job* is `package.module:factory`, called with *argument*. Feeds connect to `feed.sock` in
    *folder*, which only the owner may enter; the controller listens at *controller*. The
    folder *temporary* is removed by hosts if the process that started them was killed.
    """

    name: str
    job: str
    folder: Path
    controller: Path = Path()
    argument: str = ""
    processors: int = 1
    on_error: OnError = field(default_factory=OnError)
    limit_s: float = 300.0
    temporary: Path | None = None


class Host:
    """One operator on one machine."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._desk = Desk(on_error=settings.on_error)
        self._counters = Counters(since_s=monotonic())
        self._feeds: dict[int, asyncio.StreamWriter] = {}
        self._processors: dict[int, asyncio.StreamWriter] = {}
        self._given: dict[int, list[float]] = {}
        self._reached, self._measures, self._forsaken = 0, True, False
        self._late: set[int] = set()
        self._unwanted: set[int] = set()
        self._pids: dict[int, int] = {}
        self._last_words: dict[int, str] = {}
        self._stillborn = 0
        self._number = 0
        self._template: socket.socket | None = None
        self._ending, self._ended = asyncio.Event(), asyncio.Event()
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
        child = await self._start_template()
        server = await asyncio.start_unix_server(self._feed, feeds)
        self._tell(Here(self._settings.name, os.getpid(), str(feeds), _token()))
        try:
            self._do(self._desk.scaled(self._settings.processors, monotonic()))
            self._spawn(self._obey(reader))
            self._spawn(self._watch())
            await self._ending.wait()
        finally:
            server.close()
            await self._end(child)
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
                    case Scale(processors):
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
        state = State(
            wanted=desk.wanted,
            running=desk.running,
            waiting=desk.waiting,
            replayed=desk.replayed,
            retried=desk.retried,
            dead=desk.dead,
            feeds=desk.feeds,
            drained=desk.drained,
        )
        tally = self._counters.taken(monotonic(), state, memory=self._memory())
        self._tell(Report(self._settings.name, tally))

    def _unread(self) -> int:
        return self._controller.transport.get_write_buffer_size() if self._controller else 0

    def _memory(self) -> dict[str, int]:
        memory = {}
        for number, pid in self._pids.items():
            with suppress(psutil.NoSuchProcess):
                memory[self._called(number)] = psutil.Process(pid).memory_info().rss
        return memory

    def _called(self, number: int) -> str:
        return f"{self._settings.name}-{number}"

    def _tell(self, message: msgspec.Struct) -> None:
        if self._controller is not None and not self._controller.is_closing():
            self._controller.write(framed(message))

    async def _watch(self) -> None:
        """End processors whose record takes longer than it may."""
        while True:
            await asyncio.sleep(min(1.0, self._settings.limit_s / 4))
            for name in self._desk.late(monotonic(), self._settings.limit_s):
                limit = f"longer than {self._settings.limit_s:g} s for one record"
                if name in self._pids:
                    self._late.add(name)
                    self._last_words[self._pids[name]] = limit
                    with suppress(ProcessLookupError):
                        os.kill(self._pids[name], signal.SIGKILL)

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
                idle = not self._desk.waiting
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
            if isinstance(instruction, Give):
                for record in instruction.records:
                    self._counters.transferred(max(0.0, now_s - record.written_s))

    # -- template and processors ------------------------------------------------------------

    async def _start_template(self) -> asyncio.subprocess.Process:
        ours, theirs = socket.socketpair()
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "sojourn.host.template",
            str(theirs.fileno()),
            self._settings.job,
            self._settings.argument,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        self._template = ours
        reader, writer = await asyncio.open_connection(sock=ours.dup())
        loaded: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._spawn(self._listen_to_template(reader, writer, loaded))
        if error := await loaded:
            self._tell(Broken(self._settings.name, error, _token()))
            raise EngineError(f"{self._settings.name}: {error}")
        return child

    async def _listen_to_template(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        loaded: "asyncio.Future[str]",
    ) -> None:
        frames = Frames()
        while some := await reader.read(_CHUNK):
            for body in frames.fed(some):
                match _from_template(body):
                    case Loaded(error):
                        loaded.set_result(error)
                    case Forked(number, pid):
                        self._pids[number] = pid
                    case Ended(pid, reason):
                        self._last_words.setdefault(pid, reason)
                        self._ended.set()
        writer.close()
        if not loaded.done():
            loaded.set_result("the template process died while it imported the job")
        self._ending.set()

    async def _processor(self, number: int, end: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=end)
        if number in self._unwanted:
            self._unwanted.discard(number)
            writer.close()
            return
        self._processors[number] = writer
        frames = Frames()
        with suppress(ConnectionError):
            while some := await reader.read(_CHUNK):
                for body in frames.fed(some):
                    self._said(number, _from_processor(body))
        writer.close()
        if self._processors.pop(number, None) is not None:
            self._desk.processor_lost(number)
            await self._died(number)

    def _said(self, number: int, message: FromProcessor) -> None:
        now_s = monotonic()
        match message:
            case Ready(pid):
                self._stillborn, self._pids[number] = 0, pid
                self._do(self._desk.processor_ready(number, now_s))
            case Done(results):
                self._count(number, results)
                self._do(self._desk.processor_done(number, results, now_s))

    def _count(self, number: int, results: list[Result]) -> None:
        given_s = self._given.pop(number)
        if self._measures:
            for waited_s, result in zip(given_s, results, strict=True):
                self._counters.served(
                    self._called(number),
                    service_s=result.took_s,
                    wait_s=waited_s,
                    cpu_s=result.cpu_s,
                )

    async def _died(self, number: int) -> None:
        """Find out why a processor died, and let the desk decide what to do."""
        pid, started = self._pids.pop(number, None), number in self._given
        with suppress(TimeoutError):
            await asyncio.wait_for(self._heard_of(pid), _LAST_WORDS_S)
        reason = self._last_words.pop(pid or 0, "died")
        self._given.pop(number, None)
        self._stillborn += not started
        if self._stillborn >= _MOST_STILLBORN:
            why = f"{_MOST_STILLBORN} processors in a row were not ready for a record: {reason}"
            self._tell(Broken(self._settings.name, why, _token()))
            self._ending.set()
            return
        late = number in self._late
        self._late.discard(number)
        self._do(
            self._desk.processor_died(number, f"its processor {reason}", monotonic(), late=late)
        )

    async def _heard_of(self, pid: int | None) -> None:
        while pid not in self._last_words:
            self._ended.clear()
            await self._ended.wait()

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
        if self._desk.running != self._reached:
            self._reached = self._desk.running
            self._tell(Reached(self._settings.name, self._reached))

    def _carry_out(self, instruction: Give | Start | Kill | Grant | Fail) -> None:
        match instruction:
            case Give(processor, records):
                self._give(processor, records)
            case Start(processor):
                self._start(processor)
            case Kill(processor):
                self._let_go(processor)
            case Grant(feed, number):
                self._say(feed, Credit(number))
            case Fail(feed, record, reason):
                self._say(feed, Failed(record.number, reason))
                self._tell(Stopped(self._settings.name, record.identity, reason))

    def _say(self, feed: int, message: msgspec.Struct) -> None:
        if (writer := self._feeds.get(feed)) is not None and not writer.is_closing():
            writer.write(framed(message))

    def _give(self, processor: int, records: tuple[Record, ...]) -> None:
        now_s = time()
        self._given[processor] = [
            max(0.0, now_s - record.written_s) if record.written_s else 0.0
            for record in records
        ]
        self._processors[processor].write(framed(Work(list(records))))

    def _answered(self, record: Record, answer: Answer) -> None:
        for output in answer.outputs:
            self._counters.passed(output.stream, output.size_bytes)
        if not record.traced:
            return
        done_s, name = time(), record.name or record.identity
        children = [
            (output.stream, child_identity(name, self._settings.name, place))
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

    def _let_go(self, processor: int) -> None:
        self._pids.pop(processor, None)
        if (writer := self._processors.pop(processor, None)) is not None:
            writer.close()
        else:
            self._unwanted.add(processor)

    def _start(self, processor: int) -> None:
        ours, theirs = socket.socketpair()
        if self._template is not None:
            asked = processor.to_bytes(4, "big")
            socket.send_fds(self._template, [asked], [theirs.fileno()])
        theirs.close()
        self._spawn(self._processor(processor, ours))

    # -- the end ------------------------------------------------------------------------------

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _end(self, child: asyncio.subprocess.Process) -> None:
        for task in list(self._tasks):
            task.cancel()
        for writer in (*self._processors.values(), *self._feeds.values()):
            writer.close()
        if self._template is not None:
            self._template.close()
        for pid in self._pids.values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            child.kill()
        await child.wait()
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
