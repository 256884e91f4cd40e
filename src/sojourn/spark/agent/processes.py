"""The processes of a host: the template, and the processors that are forked from it."""

import asyncio
import os
import resource
import signal
import socket
import sys
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import BinaryIO, Protocol

import msgspec
import psutil

from sojourn.errors import EngineError
from sojourn.spark.processor.template import Ended, Forked, FromTemplate, Loaded, NotForked
from sojourn.spark.wire.background import BackgroundTasks
from sojourn.spark.wire.frame_connection import FrameConnection
from sojourn.spark.wire.frames import Frames, framed
from sojourn.spark.wire.processor import Assignment, FromProcessor, NotReady, Ready
from sojourn.spark.wire.record import Record

__all__ = ["Processes", "Watcher"]

_CHUNK = 1 << 16
# What the template says of a dead processor comes a little after its connection broke.
_LAST_WORDS_S = 0.5
# The template is asked for so many at once: more would not fit into its socket.
_MOST_ASKED = 64
# Left for relays, which come and go, and for all else that opens a file for a moment.
_SPARE_FILES = 32

_from_processor = msgspec.msgpack.Decoder(FromProcessor).decode
_from_template = msgspec.msgpack.Decoder(FromTemplate).decode


class Watcher(Protocol):
    """Who is told what happens to processors, by their number."""

    def said(self, number: int, message: FromProcessor) -> None:
        """Hear what a processor says."""

    def lost(self, number: int) -> None:
        """Take note that a processor is gone, before it is known why."""

    def died(self, number: int, reason: str, *, starved: bool = False) -> None:
        """Take note of why a processor is gone, or could not be started.

        It is *starved* if the system has no room for it: memory, processes, or open files.
        """

    def template_ended(self) -> None:
        """Take note that no processors can be started any more."""


@dataclass(slots=True, eq=False)
class _Process:
    """A processor: *ready* once it said so, *unwanted* once it was let go.

    It is *starved* if it could not be forked. Our *end* is that of its *connection*, once
    somebody listens.
    """

    number: int
    reason: "asyncio.Future[str]"
    end: socket.socket | None = None
    connection: FrameConnection | None = None
    pid: int | None = None
    ready: bool = False
    unwanted: bool = False
    starved: bool = False


@dataclass(slots=True)
class Processes:
    """The processes that run *job*, called with *argument*, for *watcher*.

    What they print goes to *log*, or where the host prints.
    """

    job: str
    argument: str
    watcher: Watcher
    log: BinaryIO | None = None
    _template: socket.socket | None = None
    _child: asyncio.subprocess.Process | None = None
    _all: dict[int, _Process] = field(default_factory=dict)
    _by_pid: dict[int, _Process] = field(default_factory=dict)
    _to_start: deque[_Process] = field(default_factory=deque)
    _asked: dict[int, _Process] = field(default_factory=dict)
    _tasks: BackgroundTasks = field(default_factory=BackgroundTasks)

    async def open(self) -> None:
        """Start the template. Raise `EngineError` if it cannot import the job."""
        ours, theirs = socket.socketpair()
        self._template = ours
        with theirs:
            self._child = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "sojourn.spark.processor.template",
                str(theirs.fileno()),
                str(os.getpid()),
                self.job,
                self.argument,
                pass_fds=[theirs.fileno()],
                stdout=self.log,
                stderr=self.log,
            )
        reader, writer = await asyncio.open_connection(sock=ours.dup())
        loaded: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._tasks.spawn(self._listen_to_template(reader, writer, loaded))
        if error := await loaded:
            raise EngineError(error)

    async def close(self) -> None:
        """End them all."""
        self._tasks.cancel()
        for process in self._all.values():
            if process.connection is not None:
                process.connection.close()
            elif process.end is not None:
                process.end.close()
        if self._template is not None:
            self._template.close()
        for pid in list(self._by_pid):
            self._kill(pid)
        if self._child is not None:
            with suppress(ProcessLookupError):
                self._child.kill()
            await self._child.wait()

    # -- what can be asked ----------------------------------------------------------------

    def start(self, number: int) -> None:
        """Start a processor; the watcher is told whether that succeeded."""
        reason: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        process = self._all[number] = _Process(number, reason)
        self._to_start.append(process)
        self._ask()

    def give(
        self, number: int, records: Iterable[Record], states: Mapping[str, bytes] | None = None
    ) -> None:
        """Let a processor work on records, with the *states* of their keys."""
        process = self._all.get(number)  # one that has died meanwhile gives nothing back
        if process is not None and process.connection is not None:
            process.connection.write(framed(Assignment(list(records), states)))

    def let_go(self, number: int) -> None:
        """End a processor that has nothing to do; one in its set-up would not notice."""
        process = self._all.pop(number, None)
        if process is None:
            return
        process.unwanted = True
        if process.connection is not None:
            process.connection.close()
        if process.pid is not None and not process.ready:
            self._kill(process.pid)

    def kill(self, number: int, reason: str) -> None:
        """End a processor whatever it does."""
        process = self._all.get(number)
        if process is not None and process.pid is not None and not process.reason.done():
            process.reason.set_result(reason)
            self._kill(process.pid)

    def memory(self) -> dict[int, int]:
        """Return the memory of each processor in bytes."""
        found = {}
        for number, process in self._all.items():
            if process.ready and process.pid is not None:
                with suppress(psutil.NoSuchProcess):
                    found[number] = psutil.Process(process.pid).memory_info().rss
        return found

    # -- the template -----------------------------------------------------------------------

    def _ask(self) -> None:
        """Ask the template for processors, a few at a time."""
        while self._to_start and len(self._asked) < _MOST_ASKED:
            process = self._to_start.popleft()
            if process.unwanted or self._template is None:
                continue
            try:
                ours, theirs = _socket_pair()
            except OSError as error:
                why = f"could not be started: no sockets left (ulimit -n): {error}"
                asyncio.get_running_loop().call_soon(self._not_started, process, why)
                continue
            with theirs:
                try:
                    asked = process.number.to_bytes(4, "big")
                    socket.send_fds(self._template, [asked], [theirs.fileno()])
                except OSError as error:
                    ours.close()
                    why = f"could not be started: no answer from the template: {error}"
                    asyncio.get_running_loop().call_soon(self._not_started, process, why)
                    continue
            self._asked[process.number], process.end = process, ours
            self._tasks.spawn(self._listen(process, ours))

    def _not_started(self, process: _Process, why: str) -> None:
        """Say that a processor could not be started, if it is still wanted."""
        if self._all.pop(process.number, None) is not None:
            self.watcher.died(process.number, why, starved=True)

    async def _listen_to_template(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        loaded: "asyncio.Future[str]",
    ) -> None:
        frames = Frames()
        try:
            with suppress(ConnectionError):
                while some := await reader.read(_CHUNK):
                    for body in frames.fed(some):
                        message = _from_template(body)
                        if isinstance(message, Loaded):
                            loaded.set_result(message.error)
                        else:
                            self._heard(message)
        finally:
            writer.close()
        if not loaded.done():
            loaded.set_result("the template process died while importing the application")
        elif not loaded.result():
            self.watcher.template_ended()

    def _heard(self, message: Forked | NotForked | Ended) -> None:
        match message:
            case Forked(number, pid):
                process = self._asked.pop(number)
                process.pid, self._by_pid[pid] = pid, process
                if process.unwanted:
                    self._kill(pid)
            case NotForked(number, reason):
                process = self._asked.pop(number)
                process.starved = True
                if not process.reason.done():
                    process.reason.set_result(reason)  # its connection breaks, too
            case Ended(pid, reason):
                ended = self._by_pid.pop(pid, None)  # or a process of the user's own
                if ended is not None and not ended.reason.done():
                    ended.reason.set_result(reason)
        self._ask()

    # -- processors -------------------------------------------------------------------------

    async def _listen(self, process: _Process, end: socket.socket) -> None:
        connection = FrameConnection(partial(self._said, process))
        await asyncio.get_running_loop().create_connection(lambda: connection, sock=end)
        process.connection = connection
        if process.unwanted:
            connection.close()
        await connection.closed
        if process.unwanted:
            return
        self.watcher.lost(process.number)
        try:
            reason = await asyncio.wait_for(asyncio.shield(process.reason), _LAST_WORDS_S)
        except TimeoutError:
            reason = "died"
        if self._all.pop(process.number, None) is not None:
            self.watcher.died(process.number, reason, starved=process.starved)

    def _said(self, process: _Process, bodies: Iterable[bytes]) -> None:
        try:
            messages = [_from_processor(body) for body in bodies]
        except msgspec.MsgspecError:  # the user's functions may write anywhere
            if process.connection is not None:
                process.connection.close()
            return
        for message in messages:
            match message:
                case Ready():
                    process.ready = True
                case NotReady(error):
                    if not process.reason.done():
                        process.reason.set_result(f"failed in set_up: {error}")
            if not process.unwanted:
                self.watcher.said(process.number, message)

    def _kill(self, pid: int) -> None:
        """Kill a processor, unless it has ended: another process may have its number now."""
        if pid in self._by_pid:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _socket_pair() -> tuple[socket.socket, socket.socket]:
    """Return two sockets, unless hardly any file could be opened after them."""
    ours, theirs = socket.socketpair()
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and theirs.fileno() >= most - _SPARE_FILES:
        ours.close()
        theirs.close()
        raise OSError(f"all but {_SPARE_FILES} of {most} open files are in use")
    return ours, theirs
