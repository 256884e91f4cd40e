"""The other end of hosts: starts them, tells them how many processors, hears their reports.

It lives in the application's own process. Hosts end when it is gone, however it went.
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
from sojourn.spark.wire.counters import PartTally
from sojourn.spark.wire.encryption import RunIdentity
from sojourn.spark.wire.frames import Frames, framed
from sojourn.spark.wire.host_settings import HostSettings

__all__ = ["Controller"]

_CHUNK = 1 << 16
_LOOK_S = 0.002
# How long Spark is asked about a stage that it may not have heard of yet, and how often.
_TASKS_WITHIN_S, _ASK_AGAIN_S = 10.0, 0.05
_GRACE_S = 10.0
_decode = msgspec.msgpack.Decoder(FromHost).decode


@dataclass(slots=True)
class _Operator:
    """What is known of one operator: processors that run, why not more, and where they should.

    They are *on* nodes.
    """

    running: int = 0
    missing: str = ""
    wanted: dict[str, int] | None = None
    on: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Host:
    """What is known of one host."""

    process: "subprocess.Popen[bytes]"
    token: str
    here: Here | None = None
    writer: asyncio.StreamWriter | None = None
    operators: dict[str, _Operator] = field(default_factory=dict)
    nodes: dict[str, NodeIs] = field(default_factory=dict)
    broken: str = ""


class Controller:
    """The hosts of one application, in a *folder* of its own. Leaving it ends them all.

    *tasks* tells how many tasks a stage of Spark has; the other settings are those of
    `HostLauncher`.
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
        self._folder.chmod(0o700)  # whoever may connect may command
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
        """Start a host, or start it again, and return at once.

        *settings* need not say where the controller is.
        """
        process, token = self.launcher.launch(settings)
        if settings.name in self._hosts:
            self._hosts[settings.name].process.poll()  # so that what is left of it goes
        operators = {name: _Operator() for name in settings.operators}
        self._hosts[settings.name] = _Host(process, token, operators=operators)

    def start(self, settings: HostSettings, *, patience_s: float = 60.0) -> Path:
        """Start a host, and return where relays reach it once its operators have a processor.

        Raise `EngineError` if it breaks.
        """
        self.launch(settings)
        for operator in settings.operators:
            self.await_running(operator, 1, patience_s=patience_s)
        here = self._hosts[settings.name].here
        return Path(here.socket if here is not None else "")

    def scale(self, operator: str, processors: int) -> None:
        """Tell a host how many processors an operator should have, all beside the host."""
        self.place(operator, {HERE: processors})

    def place(self, operator: str, on: Mapping[str, int]) -> None:
        """Tell a host where the processors of an operator should be, or once it has come."""
        host = self._host_of(operator)
        host.operators[operator].wanted = dict(on)
        self._loop.call_soon_threadsafe(self._tell_wanted, host)

    def ask(self) -> list[str]:
        """Ask all hosts for a report, and return the names of those that are there."""
        return self._tell_all(framed(Ask()))

    def tell_ends(self, ends: Mapping[str, Mapping[int, int]]) -> None:
        """Tell hosts where the partitions of topics end."""
        self._tell_all(framed(TopicEnds(ends)))

    def check_nodes(self) -> None:
        """Let nodes check again whether they reach Kafka."""
        self._tell_all(framed(CheckNodes()))

    def drain(self) -> None:
        """Let hosts end their batches when nothing is open any more."""
        self._draining = True
        self._tell_all(framed(Drain()))

    def measure(self, *, on: bool) -> None:
        """Let hosts measure, or not: to see what measuring costs."""
        self._tell_all(framed(Measure(on)))

    def await_running(
        self, operator: str, processors: int, *, patience_s: float = 60.0
    ) -> None:
        """Return when so many processors of an operator, or more, can take records.

        Or fewer, if its host cannot start the others: it goes on trying.
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
        """Return how many processors of an operator can take records."""
        return self._host_of(operator).operators[operator].running

    def wanted(self, operator: str) -> dict[str, int]:
        """Return how many processors of an operator there should be, by node."""
        return dict(self._host_of(operator).operators[operator].wanted or {})

    def placed(self, operator: str) -> dict[str, int]:
        """Return how many processors of an operator can take records, by node."""
        return dict(self._host_of(operator).operators[operator].on)

    def nodes(self) -> dict[str, float]:
        """Return the cores of the nodes on which all hosts can have processors."""
        return {name: node.cores or 0.0 for name, node in self.told_nodes().items()}

    def told_nodes(self) -> dict[str, NodeIs]:
        """Return what is known of the nodes on which all hosts can have processors."""
        each = [host.nodes for host in self._hosts.values()]
        return {
            name: node
            for nodes in each[:1]
            for name, node in nodes.items()
            if all(name in other for other in each)
        }

    def lost_nodes(self) -> Mapping[str, float]:
        """Return when a host last lost the connection to a node, by name; steady clock."""
        return self._lost

    def silent_nodes(self) -> Mapping[str, float]:
        """Return when a host lost a node that does not answer any more, by name."""
        return self._silent

    def pid(self, operator: str) -> int:
        """Return the process of the host of an operator."""
        return self._host_of(operator).process.pid

    def ended(self) -> dict[str, str]:
        """Return the hosts that run no more, and why."""
        return {
            name: host.broken or _ended_with(status)
            for name, host in self._hosts.items()
            if (status := host.process.poll()) is not None
        }

    def stopped(self) -> Mapping[str, str]:
        """Return the operators at which a record stops the application, and why."""
        return dict(self._stopped)

    def tallies(self) -> dict[str, list[PartTally]]:
        """Return what hosts reported since this was last asked."""
        with self._lock:
            taken, self._tallies = self._tallies, {}
        return taken

    def reported(self) -> set[str]:
        """Return the hosts of which there are reports that were not taken yet."""
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
        """Return whether the first message of a connection is that of a host we started."""
        if not isinstance(message, Here | Broken) or message.name not in self._hosts:
            return False
        host = self._hosts[message.name]
        return hmac.compare_digest(message.token.encode(), host.token.encode())

    def _note_node(self, host: _Host, told: NodeIs) -> None:
        # other mappings: others read them meanwhile
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
            case Here():
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
                asked = self._loop.run_in_executor(None, self._told_tasks, stage, writer)
                self._asked.add(asked)
                asked.add_done_callback(self._asked.discard)
            case Report(name, tally):
                with self._lock:
                    self._tallies.setdefault(name, []).append(tally)
            case Stopped(_, operator, place, reason):
                self._stopped[operator] = f"record {place}: {reason}"
            case Broken(_, reason):
                host.broken = reason

    def _told_tasks(self, stage: int, writer: asyncio.StreamWriter) -> None:
        """Tell a host how many tasks a stage has, once Spark knows."""
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
                if host.writer is None:  # it has not come yet, and would wait for nobody
                    host.process.kill()
        tasks = asyncio.all_tasks(self._loop) - {asyncio.current_task(self._loop)}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _ended_with(status: int) -> str:
    """Return how the process of a host ended that gave no reason."""
    told = f"its host exited with status {status}"
    if status == -signal.SIGBUS:
        told += " (SIGBUS: its state store was truncated; check the disk)"
    return told
