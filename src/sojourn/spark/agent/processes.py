"""The processes of an operator on one machine: a template, and processors forked from it.

A host and an agent use it in the same way. A processor is reached over a socket pair: one end
stays here, the other goes to the template, whose fork serves it.
"""

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
from sojourn.spark.wire.event_loop import BackgroundTasks, FrameConnection
from sojourn.spark.wire.frames import Frames, framed
from sojourn.spark.wire.processor import Assignment, FromProcessor, NotReady, Ready
from sojourn.spark.wire.record import Record

_CHUNK = 1 << 16
# The template reports the exit status of a processor shortly after its connection broke.
_LAST_WORDS_S = 0.5
# The maximum number of pending requests to the template: more would not fit into its socket.
_MOST_ASKED = 64
# Reserved for the connections of relays, and for files that are open for a moment.
_SPARE_FILES = 32

_from_processor = msgspec.msgpack.Decoder(FromProcessor).decode
_from_template = msgspec.msgpack.Decoder(FromTemplate).decode


class Watcher(Protocol):
    """The callbacks for events of processors, which are identified by number."""

    def said(self, number: int, message: FromProcessor) -> None:
        """Handle a message of a processor."""

    def lost(self, number: int) -> None:
        """Handle the loss of a processor, before its reason is known."""

    def died(self, number: int, reason: str, *, starved: bool = False) -> None:
        """Handle the end of a processor, or its failed start.

        It is *starved* if the system lacks memory, processes or open files for it.
        """

    def template_ended(self) -> None:
        """Handle the end of the template, and so of all its processors."""


@dataclass(slots=True, eq=False)
class _Process:
    """A processor, from the request to start it until its end."""

    number: int
    reason: "asyncio.Future[str]"
    """Why it ended."""
    end: socket.socket | None = None
    """Our end of the socket pair; *connection* takes it over."""
    connection: FrameConnection | None = None
    pid: int | None = None
    ready: bool = False
    """Whether its set-up is done."""
    unwanted: bool = False
    """Whether it was let go, so that its end is not reported."""
    starved: bool = False
    """Whether it could not be forked."""


@dataclass(slots=True)
class LocalProcesses:
    job: str
    """`package.module:factory`, called with *argument*."""
    argument: str
    watcher: Watcher
    log: BinaryIO | None = None
    """The file for their output; None for the output of this process."""
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
        """End all processors and the template."""
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

    # -- commands -------------------------------------------------------------------------

    def start(self, number: int) -> None:
        """Start a processor; the watcher learns whether that succeeded."""
        reason: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        process = self._all[number] = _Process(number, reason)
        self._to_start.append(process)
        self._ask()

    def give(
        self, number: int, records: Iterable[Record], states: Mapping[str, bytes] | None = None
    ) -> None:
        process = self._all.get(number)  # None if it has died, which is reported separately
        if process is not None and process.connection is not None:
            process.connection.write(framed(Assignment(list(records), states)))

    def let_go(self, number: int) -> None:
        """End an idle processor, or one in its set-up."""
        process = self._all.pop(number, None)
        if process is None:
            return
        process.unwanted = True
        if process.connection is not None:
            process.connection.close()
        # during set-up it does not read, so it would not notice
        if process.pid is not None and not process.ready:
            self._kill(process.pid)

    def kill(self, number: int, reason: str) -> None:
        process = self._all.get(number)
        if process is not None and process.pid is not None and not process.reason.done():
            process.reason.set_result(reason)
            self._kill(process.pid)

    def memory(self) -> dict[int, int]:
        """Return the resident memory of each ready processor in bytes."""
        found = {}
        for number, process in self._all.items():
            if process.ready and process.pid is not None:
                with suppress(psutil.NoSuchProcess):
                    found[number] = psutil.Process(process.pid).memory_info().rss
        return found

    # -- the template -----------------------------------------------------------------------

    def _ask(self) -> None:
        """Request pending processors from the template, a limited number at a time."""
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
        """Report a processor that could not be started, if it is still wanted."""
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
                    # reported when its connection breaks, which happens too
                    process.reason.set_result(reason)
            case Ended(pid, reason):
                # None for a process that user code has started
                ended = self._by_pid.pop(pid, None)
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
        except msgspec.MsgspecError:  # user code may write to any file descriptor
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
        """Kill a processor unless it has ended, because its pid may have been reused."""
        if pid in self._by_pid:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _socket_pair() -> tuple[socket.socket, socket.socket]:
    """Return a socket pair. Raise `OSError` if too few file descriptors remain."""
    ours, theirs = socket.socketpair()
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and theirs.fileno() >= most - _SPARE_FILES:
        ours.close()
        theirs.close()
        raise OSError(f"all but {_SPARE_FILES} of {most} open files are in use")
    return ours, theirs
