"""The nodes on which a host can run processors: the connections of their agents."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from time import monotonic, time

import msgspec

from sojourn.spark.host.controller_connection import ControllerConnection
from sojourn.spark.host.desk.events import Event, NodeCame, NodeLeft
from sojourn.spark.host.listener import Heartbeats, received
from sojourn.spark.host.node_measures import ClockOffset, Exchange, Traffic
from sojourn.spark.host.operator_runner import OperatorRunner
from sojourn.spark.wire.agent import (
    AgentHello,
    AskClock,
    Assign,
    CheckKafka,
    ClockIs,
    FromAgent,
    Kill,
    LetGo,
    ProcessorDied,
    ProcessorLost,
    Said,
    Start,
    Usage,
    Welcome,
)
from sojourn.spark.wire.controller import NodeIs
from sojourn.spark.wire.counters import NodeState
from sojourn.spark.wire.event_loop import report
from sojourn.spark.wire.frames import PREFIX_BYTES, Frames, framed
from sojourn.spark.wire.processor import Assignment, Done
from sojourn.spark.wire.record import Record

# An agent sends its hello immediately, so this is generous.
_HELLO_S = 10.0
_decode = msgspec.msgpack.Decoder(FromAgent).decode


class Connection:
    """The connection to an agent, which runs processors of *operators* on its node."""

    def __init__(self, writer: asyncio.StreamWriter, operators: Iterable[str]) -> None:
        self._writer = writer
        self._clock, self._traffic = ClockOffset(), Traffic()
        self._usage = Usage({})
        self.groups: Mapping[str, _RemoteProcesses] = {
            name: _RemoteProcesses(name, self.tell) for name in operators
        }

    def tell(self, message: msgspec.Struct) -> None:
        if self._writer.is_closing():
            return
        frame = framed(message)
        if isinstance(message, Assign):
            self._traffic.gave(message.assignment.records, len(frame))
        self._writer.write(frame)

    def abort(self) -> None:
        """Close the connection immediately, and drop unsent data."""
        self._writer.transport.abort()

    def close(self) -> None:
        """Close the connection once all data is sent."""
        self._writer.close()

    # -- state of the node ------------------------------------------------------------------

    def said(self, message: Said, size_bytes: int) -> None:
        """Count the traffic of a message from a processor."""
        if isinstance(message.message, Done):
            self._traffic.got(message.message.results, size_bytes)

    def used(self, usage: Usage) -> None:
        """Store the resource usage that the agent sends every second; then ask for its time."""
        self._usage = usage
        for name, used in usage.memory.items():
            self.groups[name].used = used
        self._traffic.mark(monotonic())
        self.tell(AskClock(time()))

    def clock_is(self, told: ClockIs) -> None:
        self._clock.seen(Exchange(told, came_s=time()))

    @property
    def state(self) -> NodeState:
        """Latest measurements of the node: clock, memory, cores and traffic."""
        best, usage = self._clock.best, self._usage
        to_per_s, back_per_s = self._traffic.per_s
        return NodeState(
            round_trip_s=None if best is None else best.round_trip_s,
            offset_s=None if best is None else best.offset_s,
            used_bytes=usage.used_bytes,
            limit_bytes=usage.limit_bytes,
            to=self._traffic.to,
            back=self._traffic.back,
            to_per_s=to_per_s,
            back_per_s=back_per_s,
            kafka=usage.kafka,
            cores=usage.cores,
            pool=usage.pool,
            cpu_s=usage.cpu_s,
            told_s=usage.told_s,
        )


class _RemoteProcesses:
    """The processors of an operator on another node: forwards requests to its agent."""

    def __init__(self, operator: str, tell: Callable[[msgspec.Struct], None]) -> None:
        self._operator, self._tell = operator, tell
        self.used: Mapping[int, int] = {}
        """Memory of each processor in bytes, as last reported by the agent."""

    def start(self, number: int) -> None:
        self._tell(Start(self._operator, number))

    def give(
        self, number: int, records: Iterable[Record], states: Mapping[str, bytes] | None = None
    ) -> None:
        self._tell(Assign(self._operator, number, Assignment(list(records), states)))

    def let_go(self, number: int) -> None:
        self._tell(LetGo(self._operator, number))

    def kill(self, number: int, reason: str) -> None:
        self._tell(Kill(self._operator, number, reason))

    def memory(self) -> Mapping[int, int]:
        return self.used


class AgentConnections:
    """The connected agents by node, for the *stations* of a *part*.

    An agent sends a heartbeat every second; after *timeout_s* without one its node is lost.
    """

    def __init__(
        self,
        part: str,
        stations: Mapping[str, OperatorRunner],
        decide: Callable[[Event], None],
        controller: ControllerConnection,
        *,
        timeout_s: float,
    ) -> None:
        self._part, self._stations = part, stations
        self._decide, self._controller = decide, controller
        self._connections: dict[str, Connection] = {}
        self._heartbeats = Heartbeats[str](timeout_s)

    @property
    def states(self) -> dict[str, NodeState]:
        return {name: connection.state for name, connection in self._connections.items()}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve an agent until it disconnects."""
        connection, frames = None, Frames()
        node = ""
        try:
            while some := await received(reader, _HELLO_S if connection is None else None):
                self._heartbeats.heard(node)
                for body in frames.fed(some):
                    message = _decode(body)
                    if isinstance(message, AgentHello) and connection is None:
                        node, connection = message.node, self._came(message, writer)
                    elif connection is not None and self._is_heard(node, connection):
                        self._heard(connection, message, PREFIX_BYTES + len(body))
        except (msgspec.MsgspecError, asyncio.CancelledError):
            pass
        except Exception as error:  # noqa: BLE001 - reported before the node's loss is decided
            report(error)
        finally:
            if connection is not None and self._is_heard(node, connection):
                self._left(node)
            writer.close()

    def watch(self, now_s: float) -> None:
        """Drop nodes whose heartbeats have timed out; call this several times a second."""
        for node in self._heartbeats.silent(now_s):
            self._connections[node].abort()
            self._left(node, silent=True)

    def check_kafka(self) -> None:
        """Ask all agents to check again whether Kafka can be reached from their nodes."""
        for connection in self._connections.values():
            connection.tell(CheckKafka())

    def close(self) -> None:
        """Close all connections; agents then end their processors."""
        for node in list(self._connections):
            self._connections.pop(node).close()

    def _is_heard(self, node: str, connection: Connection) -> bool:
        """Return whether this is still the current connection of a node."""
        return self._connections.get(node) is connection

    def _came(self, hello: AgentHello, writer: asyncio.StreamWriter) -> Connection:
        if hello.node in self._connections:  # its old connection broke unnoticed
            self._left(hello.node)
        connection = Connection(writer, self._stations)
        jobs = {name: station.job for name, station in self._stations.items()}
        connection.tell(Welcome(self._part, jobs))
        self._connections[hello.node] = connection
        self._heartbeats.begin(hello.node)
        for name, group in connection.groups.items():
            self._stations[name].node_came(hello.node, group)
        told = NodeIs(self._part, hello.node, hello.cores, hello.machine, hello.logs)
        self._controller.tell(told)
        self._decide(NodeCame(hello.node))
        return connection

    def _left(self, node: str, *, silent: bool = False) -> None:
        self._heartbeats.end(node)
        self._connections.pop(node).close()
        for station in self._stations.values():
            station.node_left(node)
        self._controller.tell(NodeIs(self._part, node, None, silent=silent))
        self._decide(NodeLeft(node))

    def _heard(self, connection: Connection, message: FromAgent, size_bytes: int) -> None:
        match message:
            case Said(operator, number, said):
                connection.said(message, size_bytes)
                self._stations[operator].said(number, said)
            case ProcessorLost(operator, number):
                self._stations[operator].lost(number)
            case ProcessorDied(operator, number, reason, starved):
                self._stations[operator].died(number, reason, starved=starved)
            case Usage():
                connection.used(message)
            case ClockIs():
                connection.clock_is(message)
