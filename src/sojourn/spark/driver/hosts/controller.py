"""The controller of hosts: starts them, places their processors, receives their reports.

It runs in the process of the application. Hosts end when their connection to it is lost, so
none survives a driver that was killed.
"""

import asyncio
import hmac
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import msgspec

from sojourn.decide.plan import HERE
from sojourn.errors import EngineError
from sojourn.spark.driver.hosts.host_launcher import HostLauncher
from sojourn.spark.wire.controller import (
    Ask,
    AskTasks,
    Broken,
    Bye,
    CheckNodes,
    Drain,
    FromHost,
    HostHello,
    Measure,
    NodeIs,
    PlaceProcessors,
    Reached,
    Report,
    Stopped,
    TasksAre,
    TopicEnds,
)
from sojourn.spark.wire.counters import PartTally
from sojourn.spark.wire.frames import Frames, framed
from sojourn.spark.wire.handshake import RunIdentity
from sojourn.spark.wire.host_settings import HostSettings

_CHUNK = 1 << 16
_LOOK_S = 0.002
# The limit and the interval of asking Spark about a stage that it may not know yet.
_TASKS_WITHIN_S, _ASK_AGAIN_S = 10.0, 0.05
_GRACE_S = 10.0
_decode = msgspec.msgpack.Decoder(FromHost).decode


@dataclass(slots=True)
class _Operator:
    """The status of an operator, as its host has reported it."""

    running: int = 0
    missing: str = ""
    """The reason why fewer processors run than are wanted."""
    wanted: dict[str, int] | None = None
    """The placement to send to the host, by node; None before the first."""
    on: Mapping[str, int] = field(default_factory=dict)
    """The running processors by node."""


@dataclass(slots=True)
class _Host:
    """The process of a host, its connection and its status."""

    process: "subprocess.Popen[bytes]"
    token: str
    """Authenticates the connection of this process."""
    here: HostHello | None = None
    writer: asyncio.StreamWriter | None = None
    """None until the host has connected."""
    operators: dict[str, _Operator] = field(default_factory=dict)
    nodes: dict[str, NodeIs] = field(default_factory=dict)
    """The nodes that the host is connected to."""
    broken: str = ""
    """The error with which the host ended, if it reported one."""


class Controller:
    """The hosts of one application, with a socket in a *folder* of its own.

    A context manager: on exit it ends all hosts. *tasks* returns the number of tasks of a Spark
    stage, None while it is unknown; the other settings are those of `HostLauncher`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        logs: Path | None = None,
        binds: str | None = None,
        identity: RunIdentity | None = None,
        tasks: Callable[[int], int | None] = lambda _stage: None,
    ) -> None:
        self._folder, self._socket, self.tasks = folder, folder / "controller.sock", tasks
        self.launcher = HostLauncher(self._socket, logs=logs, binds=binds, identity=identity)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._lock = threading.Lock()
        self._hosts: dict[str, _Host] = {}
        self._tallies: dict[str, list[PartTally]] = {}
        self._stopped: dict[str, str] = {}
        self._lost: Mapping[str, float] = {}
        self._silent: Mapping[str, float] = {}
        self._server: asyncio.AbstractServer | None = None
        self._draining = False
        self._asked: set[asyncio.Future[None]] = set()

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._folder.chmod(0o700)  # only this user may connect
        self._thread.start()
        listening = asyncio.start_unix_server(self._heard, self._socket)
        self._server = asyncio.run_coroutine_threadsafe(listening, self._loop).result()
        return self

    def __exit__(self, *_exception: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self.launcher.close()
        for host in self._hosts.values():
            try:
                host.process.wait(timeout=_GRACE_S)
            except subprocess.TimeoutExpired:
                host.process.kill()
                host.process.wait()

    def launch(self, settings: HostSettings) -> None:
        """Start or restart a host, without waiting for it.

        *settings* need not contain the address of the controller.
        """
        process, token = self.launcher.launch(settings)
        if settings.name in self._hosts:
            self._hosts[settings.name].process.poll()  # reaps the process before
        operators = {name: _Operator() for name in settings.operators}
        self._hosts[settings.name] = _Host(process, token, operators=operators)

    def start(self, settings: HostSettings, *, patience_s: float = 60.0) -> Path:
        """Start a host, wait for a processor of each operator, and return the relays' socket.

        Raise `EngineError` if the host fails.
        """
        self.launch(settings)
        for operator in settings.operators:
            self.await_running(operator, 1, patience_s=patience_s)
        here = self._hosts[settings.name].here
        return Path(here.socket if here is not None else "")

    def scale(self, operator: str, processors: int) -> None:
        """Set the number of an operator's processors, all on the host's own machine."""
        self.place(operator, {HERE: processors})

    def place(self, operator: str, on: Mapping[str, int]) -> None:
        """Send the placement of an operator's processors, once its host is connected."""
        host = self._host_of(operator)
        host.operators[operator].wanted = dict(on)
        self._loop.call_soon_threadsafe(self._tell_wanted, host)

    def ask(self) -> list[str]:
        """Request a report of all connected hosts, and return their names."""
        return self._tell_all(framed(Ask()))

    def tell_ends(self, ends: Mapping[str, Mapping[int, int]]) -> None:
        """Send the end offsets of partitions to hosts, by topic."""
        self._tell_all(framed(TopicEnds(ends)))

    def check_nodes(self) -> None:
        """Make nodes check again whether they reach Kafka."""
        self._tell_all(framed(CheckNodes()))

    def drain(self) -> None:
        """Make hosts end their batches once no record is open."""
        self._draining = True
        self._tell_all(framed(Drain()))

    def measure(self, *, on: bool) -> None:
        """Turn the measurements of hosts on or off, to see their cost."""
        self._tell_all(framed(Measure(on)))

    def await_running(
        self, operator: str, processors: int, *, patience_s: float = 60.0
    ) -> None:
        """Wait until at least *processors* of an operator can take records.

        One is enough if its host cannot start the others, whose start it keeps retrying. Raise
        `EngineError` if the host ends, or after *patience_s*.
        """
        host = self._host_of(operator)
        here = host.operators[operator]
        until_s = time.monotonic() + patience_s
        while host.here is None or here.running < (1 if here.missing else processors):
            if host.broken:
                raise EngineError(host.broken)
            status = host.process.poll()
            if status is not None:
                raise EngineError(f"{operator}: {_ended_with(status)}")
            if time.monotonic() > until_s:
                why = f": {here.missing}" if here.missing else ""
                raise EngineError(
                    f"{operator}: {here.running} of {processors} processors are ready after "
                    f"{patience_s:g} s{why}"
                )
            time.sleep(_LOOK_S)

    def running(self, operator: str) -> int:
        return self._host_of(operator).operators[operator].running

    def wanted(self, operator: str) -> dict[str, int]:
        return dict(self._host_of(operator).operators[operator].wanted or {})

    def placed(self, operator: str) -> dict[str, int]:
        """Return the processors of an operator that can take records, by node."""
        return dict(self._host_of(operator).operators[operator].on)

    def nodes(self) -> dict[str, float]:
        """Return the cores of the nodes that all hosts are connected to."""
        return {name: node.cores or 0.0 for name, node in self.told_nodes().items()}

    def told_nodes(self) -> dict[str, NodeIs]:
        """Return the nodes that all hosts are connected to, as they were reported."""
        each = [host.nodes for host in self._hosts.values()]
        return {
            name: node
            for nodes in each[:1]
            for name, node in nodes.items()
            if all(name in other for other in each)
        }

    def lost_nodes(self) -> Mapping[str, float]:
        """Return when a host last lost its connection to a node, by node; monotonic clock."""
        return self._lost

    def silent_nodes(self) -> Mapping[str, float]:
        """Return when a host last lost a node because it did not answer, by node."""
        return self._silent

    def pid(self, operator: str) -> int:
        return self._host_of(operator).process.pid

    def ended(self) -> dict[str, str]:
        """Return the hosts that have ended, with the reason."""
        return {
            name: host.broken or _ended_with(status)
            for name, host in self._hosts.items()
            if (status := host.process.poll()) is not None
        }

    def stopped(self) -> Mapping[str, str]:
        """Return the operators at which a record stops the application, with the reason."""
        return dict(self._stopped)

    def tallies(self) -> dict[str, list[PartTally]]:
        """Return the reports since the last call, by host."""
        with self._lock:
            taken, self._tallies = self._tallies, {}
        return taken

    def reported(self) -> set[str]:
        """Return the hosts with reports that `tallies` has not returned yet."""
        with self._lock:
            return set(self._tallies)

    def _host_of(self, operator: str) -> _Host:
        for host in self._hosts.values():
            if operator in host.operators:
                return host
        raise EngineError(f"{operator} has no host")

    def _tell_all(self, frame: bytes) -> list[str]:
        there = {
            name: host.writer
            for name, host in self._hosts.items()
            if host.writer is not None and not host.writer.is_closing()
        }
        for writer in there.values():
            self._loop.call_soon_threadsafe(writer.write, frame)
        return list(there)

    def _tell_wanted(self, host: _Host) -> None:
        if host.writer is not None:
            for name, operator in host.operators.items():
                if operator.wanted is not None:
                    host.writer.write(framed(PlaceProcessors(name, operator.wanted)))

    async def _heard(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames, known = Frames(), False
        try:
            while some := await reader.read(_CHUNK):
                for body in frames.fed(some):
                    message = _decode(body)
                    known = known or self._is_ours(message)
                    if not known:
                        return
                    self._note(message, writer)
        except (ConnectionError, msgspec.MsgspecError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    def _is_ours(self, message: FromHost) -> bool:
        """Return whether the first *message* of a connection has the token of its host."""
        if not isinstance(message, HostHello | Broken) or message.name not in self._hosts:
            return False
        host = self._hosts[message.name]
        return hmac.compare_digest(message.token.encode(), host.token.encode())

    def _note_node(self, host: _Host, told: NodeIs) -> None:
        # new mappings, because other threads may read the old ones
        left = {name: each for name, each in host.nodes.items() if name != told.node}
        if told.cores is not None:
            host.nodes = {**left, told.node: told}
            return
        host.nodes = left
        self._lost = {**self._lost, told.node: time.monotonic()}
        if told.silent:
            self._silent = {**self._silent, told.node: time.monotonic()}

    def _note(self, message: FromHost, writer: asyncio.StreamWriter) -> None:
        host = self._hosts[message.name]
        match message:
            case HostHello():
                host.here, host.writer = message, writer
                self._tell_wanted(host)
                if self._draining:
                    writer.write(framed(Drain()))
            case Reached(_, operator, processors, missing, on):
                here = host.operators[operator]
                here.running, here.missing, here.on = processors, missing, on
            case NodeIs():
                self._note_node(host, message)
            case AskTasks(_, stage):
                # in a thread: the call to Java would block the messages of all hosts
                asked = self._loop.run_in_executor(None, self._told_tasks, stage, writer)
                self._asked.add(asked)
                asked.add_done_callback(self._asked.discard)
            case Report(name, tally):
                with self._lock:
                    self._tallies.setdefault(name, []).append(tally)
            case Stopped(_, operator, position, reason):
                self._stopped[operator] = f"record {position}: {reason}"
            case Broken(_, reason):
                host.broken = reason

    def _told_tasks(self, stage: int, writer: asyncio.StreamWriter) -> None:
        """Send the number of tasks of a stage to a host, once Spark knows it."""
        until_s = time.monotonic() + _TASKS_WITHIN_S
        with suppress(Exception):  # Java may be gone, or all is stopped
            while (number := self.tasks(stage)) is None and time.monotonic() < until_s:
                time.sleep(_ASK_AGAIN_S)
            if number is not None:
                frame = framed(TasksAre(stage, number))
                self._loop.call_soon_threadsafe(writer.write, frame)

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        for host in self._hosts.values():
            if host.writer is not None:
                host.writer.write(framed(Bye()))
                host.writer.close()
            with suppress(ProcessLookupError):
                if host.writer is None:  # not connected yet, so it cannot be told to end
                    host.process.kill()
        tasks = asyncio.all_tasks(self._loop) - {asyncio.current_task(self._loop)}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _ended_with(status: int) -> str:
    """Return the exit status of a host, for one that ended without a reason."""
    told = f"its host exited with status {status}"
    if status == -signal.SIGBUS:
        told += " (SIGBUS: its state store was truncated; check the disk)"
    return told
