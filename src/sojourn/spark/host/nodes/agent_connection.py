"""The connection of an agent, as a host has it: what is said there, and how its node is."""

import asyncio
from collections.abc import Iterable, Mapping
from time import monotonic, time

import msgspec

from sojourn.spark.host.nodes.clock_offset import ClockOffset, Exchange
from sojourn.spark.host.nodes.remote_processes import RemoteProcesses
from sojourn.spark.host.nodes.traffic import Traffic
from sojourn.spark.wire.agent import AskClock, Assign, ClockIs, Said, Usage
from sojourn.spark.wire.frames import framed
from sojourn.spark.wire.node_state import NodeState
from sojourn.spark.wire.processor import Done

__all__ = ["Connection"]


class Connection:
    """What an agent is told by way of *writer*, for the processors of *operators*."""

    def __init__(self, writer: asyncio.StreamWriter, operators: Iterable[str]) -> None:
        self._writer = writer
        self._clock, self._traffic = ClockOffset(), Traffic()
        self._usage = Usage({})
        self.groups: Mapping[str, RemoteProcesses] = {
            name: RemoteProcesses(name, self.tell) for name in operators
        }

    def tell(self, message: msgspec.Struct) -> None:
        """Tell the agent something, if it is still there."""
        if self._writer.is_closing():
            return
        frame = framed(message)
        if isinstance(message, Assign):
            self._traffic.gave(message.assignment.records, len(frame))
        self._writer.write(frame)

    def abort(self) -> None:
        """End the connection now: nobody reads what is still to be sent."""
        self._writer.transport.abort()

    def close(self) -> None:
        """Let the agent know that nobody hears it any more."""
        self._writer.close()

    # -- how the node is ------------------------------------------------------------------

    def said(self, message: Said, size_bytes: int) -> None:
        """Count what a processor says, in so many bytes."""
        if isinstance(message.message, Done):
            self._traffic.got(message.message.results, size_bytes)

    def used(self, usage: Usage) -> None:
        """Take note of what a node uses, which it tells every second; and ask for its time."""
        self._usage = usage
        for name, used in usage.memory.items():
            self.groups[name].used = used
        self._traffic.mark(monotonic())
        self.tell(AskClock(time()))

    def clock_is(self, told: ClockIs) -> None:
        """Take note of the time that a node has told just now."""
        self._clock.seen(
            Exchange(
                asked_s=told.asked_s,
                heard_s=told.heard_s,
                told_s=told.told_s,
                came_s=time(),
            )
        )

    @property
    def state(self) -> NodeState:
        """How the node is at the moment."""
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
