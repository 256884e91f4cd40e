"""The nodes on which a host has processors: the connections of their agents."""

import asyncio
from collections.abc import Mapping
from typing import Protocol

import msgspec

from sojourn.host.node.messages import (
    AgentHello,
    FromAgent,
    ProcessorDied,
    ProcessorLost,
    Said,
    Usage,
    Welcome,
)
from sojourn.host.node.remote_processes import RemoteProcesses
from sojourn.host.process.messages import Frames, framed
from sojourn.host.station import Station

__all__ = ["NodeDecider", "Nodes"]

_CHUNK = 1 << 16
# An agent says every second that it lives.
_SILENT_S = 10.0
_decode = msgspec.msgpack.Decoder(FromAgent).decode


class NodeDecider(Protocol):
    """Who decides what is done when nodes come and go."""

    def node_came(self, hello: AgentHello) -> None:
        """Start processors on a node, if they are wanted there."""

    def node_left(self, node: str) -> None:
        """Let others do what was under way on a node."""


class Nodes:
    """Agents by the name of their node, for the *stations* of a *part*."""

    def __init__(
        self, part: str, stations: Mapping[str, Station], decider: NodeDecider
    ) -> None:
        self._part, self._stations, self._decider = part, stations, decider
        self._writers: dict[str, asyncio.StreamWriter] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hear an agent until it is gone, or says nothing for long."""
        node, frames = "", Frames()
        groups: dict[str, RemoteProcesses] = {}
        try:
            while some := await _some(reader):
                for body in frames.fed(some):
                    message = _decode(body)
                    if isinstance(message, AgentHello) and not node:
                        node = message.node
                        groups = self._came(message, writer)
                    elif self._writers.get(node) is writer:
                        self._heard(message, groups)
        except (msgspec.MsgspecError, asyncio.CancelledError):
            pass
        finally:
            if self._writers.get(node) is writer:
                self._left(node)
            writer.close()

    def close(self) -> None:
        """Close all connections, at which agents end their processors."""
        for node in list(self._writers):
            self._writers.pop(node).close()

    def _came(
        self, hello: AgentHello, writer: asyncio.StreamWriter
    ) -> dict[str, RemoteProcesses]:
        if hello.node in self._writers:  # it has lost its connection, and we have not noticed
            self._left(hello.node)

        def tell(message: msgspec.Struct) -> None:
            if not writer.is_closing():
                writer.write(framed(message))

        jobs = {name: station.job for name, station in self._stations.items()}
        tell(Welcome(self._part, jobs))
        self._writers[hello.node] = writer
        groups = {name: RemoteProcesses(name, tell) for name in self._stations}
        for name, group in groups.items():
            self._stations[name].node_came(hello.node, group)
        self._decider.node_came(hello)
        return groups

    def _left(self, node: str) -> None:
        self._writers.pop(node).close()
        for station in self._stations.values():
            station.node_left(node)
        self._decider.node_left(node)

    def _heard(self, message: FromAgent, groups: Mapping[str, RemoteProcesses]) -> None:
        match message:
            case Said(operator, number, said):
                self._stations[operator].said(number, said)
            case ProcessorLost(operator, number):
                self._stations[operator].lost(number)
            case ProcessorDied(operator, number, reason):
                self._stations[operator].died(number, reason)
            case Usage(memory):
                for name, used in memory.items():
                    groups[name].used = used


async def _some(reader: asyncio.StreamReader) -> bytes:
    """Return what an agent says; nothing if its connection is over, however it broke."""
    try:
        async with asyncio.timeout(_SILENT_S):
            return await reader.read(_CHUNK)
    except OSError:  # also if it was silent for too long
        return b""
