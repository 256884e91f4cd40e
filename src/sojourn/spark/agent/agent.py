"""The agent of a node: starts processors there for hosts, and forwards messages between them.

It has one connection to the host of each part. It stores no records: a host that loses the
connection assigns the records of these processors to others. It ends with the process that it
watches, the executor, and when a host has been unreachable for a minute.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, time
from traceback import print_exception
from typing import Any, BinaryIO

import msgspec

from sojourn.errors import EngineError
from sojourn.files.logs import LogRotation
from sojourn.spark.agent.kafka_reach import KafkaBrokers, KafkaChecks
from sojourn.spark.agent.processes import LocalProcesses
from sojourn.spark.agent.resources import core_use, memory_here
from sojourn.spark.wire.agent import (
    AgentHello,
    AskClock,
    Assign,
    CheckKafka,
    ClockIs,
    Kill,
    LetGo,
    ProcessorDied,
    ProcessorLost,
    Said,
    Start,
    ToAgent,
    Usage,
    Welcome,
)
from sojourn.spark.wire.frames import Frames, framed
from sojourn.spark.wire.handshake import HANDSHAKE_S, NAME, introduce, peer_context
from sojourn.spark.wire.processor import FromProcessor

OWN_LOG = "agent.log"
"""The log of the agent itself, in its working folder."""

_CHUNK = 1 << 16
# The interval of heartbeats; how long, and how often, an agent retries to connect to a host.
_TELL_S = 1.0
_SEEK_S, _SEEK_EVERY_S = 60.0, 0.2
_decode = msgspec.msgpack.Decoder(ToAgent).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    executor: str
    """The id of the executor that it runs on."""
    hosts: Mapping[str, tuple[str, int]]
    """Address and port of each host, by part."""
    secret: str = field(repr=False)
    """The secret of the run, by which hosts and agents authenticate; hexadecimal."""
    certificate: str = ""
    """The certificate of hosts; empty if connections are not encrypted."""
    watch: int = 0
    """The process with which the agent ends; 0 for none."""
    logs: str = ""
    """Folder for the output of processors, a file for each operator."""
    path: str = ""
    """Additional folders in which processors find modules."""
    kafka: KafkaBrokers = field(default_factory=KafkaBrokers)
    """The brokers that Spark's tasks on this node connect to."""


def node_name(executor: str) -> str:
    """Return the name of the node of an executor.

    >>> node_name("3")
    'executor-3'
    """
    return f"executor-{executor}"


class Agent:
    """Runs the processors of one node, for all hosts of an application."""

    def __init__(self, settings: AgentSettings) -> None:
        self._settings = settings
        self._encryption: dict[str, Any] = {}
        if settings.certificate:
            self._encryption = {
                "ssl": peer_context(settings.certificate),
                "server_hostname": NAME,
                "ssl_handshake_timeout": HANDSHAKE_S,
            }
        self._kafka = KafkaChecks(settings.kafka)
        self._ending = asyncio.Event()

    async def run(self) -> None:
        """Serve hosts until one stays unreachable, or the watched process has ended."""
        parts = [
            asyncio.create_task(self._serve(*address))
            for address in self._settings.hosts.values()
        ]
        parts.append(asyncio.create_task(self._kafka.run()))
        self._watch()
        with ExitStack() as rotated:
            rotated.enter_context(LogRotation(Path.cwd(), OWN_LOG))
            if self._settings.logs:
                rotated.enter_context(LogRotation(Path(self._settings.logs)))
            await self._ending.wait()
        for task in parts:
            task.cancel()
        await asyncio.gather(*parts, return_exceptions=True)

    async def _serve(self, address: str, port: int) -> None:
        """Serve a host, and reconnect: a restarted host listens at the same address."""
        sought_s = monotonic()
        while monotonic() < sought_s + _SEEK_S:
            try:
                reader, writer = await asyncio.open_connection(
                    address, port, **self._encryption
                )
            except OSError:  # also raised for another certificate
                await asyncio.sleep(_SEEK_EVERY_S)
                continue
            try:
                await introduce(reader, writer, bytes.fromhex(self._settings.secret), "agent")
                await _Part(self._settings, writer, self._kafka).serve(reader)
                sought_s = monotonic()
            except (EngineError, OSError):
                await asyncio.sleep(_SEEK_EVERY_S)
            except Exception as error:  # noqa: BLE001 - otherwise the node is lost for good
                print_exception(error)
                await asyncio.sleep(_SEEK_EVERY_S)
            finally:
                writer.close()
        self._ending.set()

    def _watch(self) -> None:
        """End as soon as the watched process ends."""
        if not (watched := self._settings.watch):
            return
        try:
            end = os.pidfd_open(watched)
        except ProcessLookupError:
            self._ending.set()
        else:
            asyncio.get_running_loop().add_reader(end, self._ending.set)


class _Part:
    """The processors of one part, while its host is connected."""

    def __init__(
        self, settings: AgentSettings, writer: asyncio.StreamWriter, kafka: KafkaChecks
    ) -> None:
        self._settings, self._writer, self._kafka = settings, writer, kafka
        self._jobs: dict[str, tuple[str, str]] = {}
        self._operators: dict[str, _Operator] = {}

    async def serve(self, reader: asyncio.StreamReader) -> None:
        """Carry out the commands of a host until it disconnects."""
        self._tell(_hello(self._settings))
        telling = asyncio.create_task(self._tell_usage())
        frames = Frames()
        try:
            while some := await reader.read(_CHUNK):
                heard_s = time()
                for body in frames.fed(some):
                    self._heard(_decode(body), heard_s)
        finally:
            telling.cancel()
            for operator in self._operators.values():
                await operator.close()

    def _heard(self, message: ToAgent, heard_s: float) -> None:
        match message:
            case Welcome(_, operators):
                self._jobs = operators
            case Start(operator, number):
                self._operator(operator).start(number)
            case Assign(operator, number, assignment):
                self._operator(operator).processes.give(
                    number, assignment.records, assignment.states
                )
            case LetGo(operator, number):
                self._operator(operator).let_go(number)
            case Kill(operator, number, reason):
                self._operator(operator).processes.kill(number, reason)
            case AskClock(asked_s):
                self._tell(ClockIs(asked_s, heard_s, time()))
            case CheckKafka():
                self._kafka.asked.set()

    def _operator(self, name: str) -> "_Operator":
        if name not in self._operators:
            logs = self._settings.logs
            log = _log_of(Path(logs), name) if logs else None
            self._operators[name] = _Operator(
                node_name(self._settings.executor), name, *self._jobs[name], self._tell, log
            )
        return self._operators[name]

    def _tell(self, message: msgspec.Struct) -> None:
        if not self._writer.is_closing():
            self._writer.write(framed(message))

    async def _tell_usage(self) -> None:
        while True:
            node, cores = memory_here(), core_use()
            self._tell(
                Usage(
                    {name: each.processes.memory() for name, each in self._operators.items()},
                    node.used_bytes,
                    node.limit_bytes,
                    self._kafka.problem,
                    cores=cores.cores,
                    pool=cores.pool,
                    cpu_s=cores.used_s,
                    told_s=monotonic(),
                )
            )
            await asyncio.sleep(_TELL_S)


class _Operator:
    """The processors of an operator, whose template starts with the first of them."""

    def __init__(
        self,
        node: str,
        name: str,
        job: str,
        argument: str,
        tell: Callable[[msgspec.Struct], None],
        log: BinaryIO | None,
    ) -> None:
        self._node, self._name, self._tell, self._log = node, name, tell, log
        self._job, self._argument = job, argument
        # processors to start once the template is ready; None when it is
        self._waiting: list[int] | None = []
        self._running: set[int] = set()
        self.processes = self._new()
        self._opening: asyncio.Task[None] | None = None

    def _new(self) -> LocalProcesses:
        return LocalProcesses(self._job, self._argument, self, log=self._log)

    def start(self, number: int) -> None:
        """Start a processor, once the template has imported the application."""
        if self._waiting is None:
            self._running.add(number)
            self.processes.start(number)
            return
        self._waiting.append(number)
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())

    def let_go(self, number: int) -> None:
        """End an idle processor, or do not start it."""
        if self._waiting is not None and number in self._waiting:
            self._waiting.remove(number)
        else:
            self._running.discard(number)
            self.processes.let_go(number)

    async def close(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
        await self.processes.close()
        if self._log is not None:
            self._log.close()

    async def _open(self) -> None:
        failure = ""
        try:
            await self.processes.open()
        except (EngineError, OSError) as error:
            failure = f"could not be started on {self._node}: {error}"
        waiting = self._waiting or []
        if failure:
            self._waiting = []
            for number in waiting:
                self._tell(ProcessorDied(self._name, number, failure))
            await self._begin_anew()
            return
        self._waiting, self._opening = None, None
        for number in waiting:
            self.start(number)

    async def _begin_anew(self) -> None:
        """Replace the template; the new one starts with the next requested processor."""
        await self.processes.close()
        self.processes, self._opening = self._new(), None
        if self._waiting:
            self._opening = asyncio.create_task(self._open())

    # -- events of processors ---------------------------------------------------------------

    def said(self, number: int, message: FromProcessor) -> None:
        self._tell(Said(self._name, number, message))

    def lost(self, number: int) -> None:
        self._tell(ProcessorLost(self._name, number))

    def died(self, number: int, reason: str, *, starved: bool = False) -> None:
        self._running.discard(number)
        self._tell(ProcessorDied(self._name, number, reason, starved))

    def template_ended(self) -> None:
        """Report all processors as ended, because they end with their template."""
        for number in sorted(self._running):
            self.died(number, "ended with the template process, which starts processors")
        self._waiting = []
        self._opening = asyncio.create_task(self._begin_anew())


def _hello(settings: AgentSettings) -> AgentHello:
    return AgentHello(
        node_name(settings.executor),
        core_use().cores,
        os.getpid(),
        machine=socket.gethostname(),
        logs=str(Path(settings.logs).absolute()) if settings.logs else "",
    )


def _log_of(folder: Path, operator: str) -> BinaryIO:
    folder.mkdir(parents=True, exist_ok=True)
    return (folder / f"{operator}.log").open("ab")
