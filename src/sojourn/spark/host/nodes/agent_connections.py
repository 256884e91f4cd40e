"""The nodes on which a host can run processors: the connections of their agents."""

import asyncio
from collections.abc import Mapping
from typing import Protocol

import msgspec

from sojourn.spark.host.listener import Heartbeats, received
from sojourn.spark.host.nodes.agent_connection import Connection
from sojourn.spark.host.operator_runner import OperatorRunner
from sojourn.spark.wire.agent import (
    AgentHello,
    CheckKafka,
    ClockIs,
    FromAgent,
    ProcessorDied,
    ProcessorLost,
    Said,
    Usage,
    Welcome,
)
from sojourn.spark.wire.counters import NodeState
from sojourn.spark.wire.event_loop import report
from sojourn.spark.wire.frames import PREFIX_BYTES, Frames

__all__ = ["AgentConnections", "NodeDecider"]

# An agent sends its hello immediately, so this is generous.
_HELLO_S = 10.0
_decode = msgspec.msgpack.Decoder(FromAgent).decode


class NodeDecider(Protocol):
    """Decides what happens when nodes connect and are lost."""

    def node_came(self, hello: AgentHello) -> None:
        """Handle a node that has connected."""

    def node_left(self, node: str, *, silent: bool) -> None:
        """Handle the loss of a node; *silent* if it timed out, and may still be alive."""


class AgentConnections:
    """The connected agents by node, for the *stations* of a *part*.

    An agent sends a heartbeat every second; after *timeout_s* without one its node is lost.
    """

    def __init__(
        self,
        part: str,
        stations: Mapping[str, OperatorRunner],
        decider: NodeDecider,
        *,
        timeout_s: float,
    ) -> None:
        self._part, self._stations, self._decider = part, stations, decider
        self._connections: dict[str, Connection] = {}
        self._heartbeats = Heartbeats[str](timeout_s)

    @property
    def states(self) -> dict[str, NodeState]:
        """State of each node, by name."""
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
        self._decider.node_came(hello)
        return connection

    def _left(self, node: str, *, silent: bool = False) -> None:
        self._heartbeats.end(node)
        self._connections.pop(node).close()
        for station in self._stations.values():
            station.node_left(node)
        self._decider.node_left(node, silent=silent)

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
