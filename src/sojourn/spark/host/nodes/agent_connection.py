"""The host's connection to an agent: the processors of its node, its clock offset and load."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from time import monotonic, time

import msgspec

from sojourn.spark.host.nodes.traffic import Traffic
from sojourn.spark.wire.agent import (
    AskClock,
    Assign,
    ClockIs,
    Kill,
    LetGo,
    Said,
    Start,
    Usage,
)
from sojourn.spark.wire.counters import NodeState
from sojourn.spark.wire.frames import framed
from sojourn.spark.wire.processor import Assignment, Done
from sojourn.spark.wire.record import Record

__all__ = ["ClockOffset", "Connection", "Exchange"]

# Exchanges kept, one per second: few enough that clocks hardly drift meanwhile, and enough that
# one of them was not delayed on the network. NTP keeps as many.
_KEPT = 8


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
        """Send a message to the agent, if the connection is still open."""
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
        """Add an answer to `AskClock` to the clock offset."""
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

    def start(self, number: int) -> None:
        """Start a processor; the station gets `Ready`, or `died` is called."""
        self._tell(Start(self._operator, number))

    def give(
        self, number: int, records: Iterable[Record], states: Mapping[str, bytes] | None = None
    ) -> None:
        """Send records to a processor, with the *states* of their keys."""
        self._tell(Assign(self._operator, number, Assignment(list(records), states)))

    def let_go(self, number: int) -> None:
        """End an idle processor."""
        self._tell(LetGo(self._operator, number))

    def kill(self, number: int, reason: str) -> None:
        """Kill a processor, even a busy one."""
        self._tell(Kill(self._operator, number, reason))

    def memory(self) -> Mapping[int, int]:
        """Return the memory of each processor in bytes, as last reported by the agent."""
        return self.used


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A request for the time and its answer, with four timestamps, as in NTP.

    If both directions took the same time, the offset is exact; its error is at most half the
    round trip. So of several exchanges, the one with the shortest round trip is the best.

    >>> exchange = Exchange(asked_s=10.0, heard_s=15.25, told_s=15.5, came_s=11.0)
    >>> exchange.round_trip_s, exchange.offset_s
    (0.75, 4.875)
    """

    asked_s: float
    """When the request was sent, by the local clock."""
    heard_s: float
    """When it was received, by the remote clock."""
    told_s: float
    """When the answer was sent, by the remote clock."""
    came_s: float
    """When it was received, by the local clock."""

    @property
    def round_trip_s(self) -> float:
        """Round-trip time on the network; negative if a clock has jumped meanwhile."""
        return (self.came_s - self.asked_s) - (self.told_s - self.heard_s)

    @property
    def offset_s(self) -> float:
        """How far the remote clock is ahead of the local one."""
        return ((self.heard_s - self.asked_s) + (self.told_s - self.came_s)) / 2

    def agrees_with(self, other: "Exchange") -> bool:
        """Return whether both can have the same offset: each may err by half its round trip."""
        apart_s = abs(self.offset_s - other.offset_s)
        return apart_s <= (self.round_trip_s + other.round_trip_s) / 2


class ClockOffset:
    """The clock offset of another machine, by the best of the last exchanges with it.

    >>> clock = ClockOffset()
    >>> clock.seen(Exchange(asked_s=10.0, heard_s=15.25, told_s=15.5, came_s=11.0))
    >>> clock.seen(Exchange(asked_s=12.0, heard_s=17.0, told_s=17.0, came_s=12.25))
    >>> clock.best.offset_s
    4.875
    """

    def __init__(self) -> None:
        self._last: deque[Exchange] = deque(maxlen=_KEPT)

    def seen(self, exchange: Exchange) -> None:
        """Add an exchange.

        It is ignored if a clock went back during it. If it contradicts the best exchange, a
        clock has been set, and earlier exchanges are dropped.
        """
        if exchange.round_trip_s < 0:
            return
        if (best := self.best) is not None and not exchange.agrees_with(best):
            self._last.clear()
        self._last.append(exchange)

    @property
    def best(self) -> Exchange | None:
        """The exchange with the shortest round trip; None before the first."""
        return min(self._last, key=lambda each: each.round_trip_s, default=None)
