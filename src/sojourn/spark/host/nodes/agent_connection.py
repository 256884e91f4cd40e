"""The connection of an agent, as a host has it: processors there, clock offset, and load."""

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
from sojourn.spark.wire.frames import framed
from sojourn.spark.wire.node_state import NodeState
from sojourn.spark.wire.processor import Assignment, Done
from sojourn.spark.wire.record import Record

__all__ = ["ClockOffset", "Connection", "Exchange"]

# Questions are asked every second: few enough that clocks do not drift apart meanwhile, and
# enough that one of them met nobody else on its way. NTP keeps as many.
_KEPT = 8


class Connection:
    """What an agent is told by way of *writer*, for the processors of *operators*."""

    def __init__(self, writer: asyncio.StreamWriter, operators: Iterable[str]) -> None:
        self._writer = writer
        self._clock, self._traffic = ClockOffset(), Traffic()
        self._usage = Usage({})
        self.groups: Mapping[str, _RemoteProcesses] = {
            name: _RemoteProcesses(name, self.tell) for name in operators
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


class _RemoteProcesses:
    """What is asked of them is *told* to the agent of their node."""

    def __init__(self, operator: str, tell: Callable[[msgspec.Struct], None]) -> None:
        self._operator, self._tell = operator, tell
        self.used: Mapping[int, int] = {}

    def start(self, number: int) -> None:
        """Start a processor; the station is told whether that succeeded."""
        self._tell(Start(self._operator, number))

    def give(
        self, number: int, records: Iterable[Record], states: Mapping[str, bytes] | None = None
    ) -> None:
        """Let a processor work on records, with the *states* of their keys."""
        self._tell(Assign(self._operator, number, Assignment(list(records), states)))

    def let_go(self, number: int) -> None:
        """End a processor that has nothing to do."""
        self._tell(LetGo(self._operator, number))

    def kill(self, number: int, reason: str) -> None:
        """End a processor whatever it does."""
        self._tell(Kill(self._operator, number, reason))

    def memory(self) -> Mapping[int, int]:
        """Return the memory of each processor in bytes, as the agent told it last."""
        return self.used


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A question and its answer: *asked* and *came* by our clock, *heard* and *told* by theirs.

    As in NTP, an exchange has four times, two of each clock. If the ways there and back took
    the same time, it tells the difference of the clocks exactly; it is never wrong by more than
    half of the round trip. Of a few exchanges, that with the shortest round trip is the best.

    >>> exchange = Exchange(asked_s=10.0, heard_s=15.25, told_s=15.5, came_s=11.0)
    >>> exchange.round_trip_s, exchange.offset_s
    (0.75, 4.875)
    """

    asked_s: float
    heard_s: float
    told_s: float
    came_s: float

    @property
    def round_trip_s(self) -> float:
        """The time on the way, there and back; negative if a clock has jumped meanwhile."""
        return (self.came_s - self.asked_s) - (self.told_s - self.heard_s)

    @property
    def offset_s(self) -> float:
        """How far their clock is ahead of ours."""
        return ((self.heard_s - self.asked_s) + (self.told_s - self.came_s)) / 2

    def agrees_with(self, other: "Exchange") -> bool:
        """Tell whether one offset can be that of both: each is wrong by half its round trip."""
        apart_s = abs(self.offset_s - other.offset_s)
        return apart_s <= (self.round_trip_s + other.round_trip_s) / 2


class ClockOffset:
    """The clock offset of another machine: the best of the last exchanges with it.

    >>> clock = ClockOffset()
    >>> clock.seen(Exchange(asked_s=10.0, heard_s=15.25, told_s=15.5, came_s=11.0))
    >>> clock.seen(Exchange(asked_s=12.0, heard_s=17.0, told_s=17.0, came_s=12.25))
    >>> clock.best.offset_s
    4.875
    """

    def __init__(self) -> None:
        self._last: deque[Exchange] = deque(maxlen=_KEPT)

    def seen(self, exchange: Exchange) -> None:
        """Take in an exchange.

        One during which a clock went back tells nothing. After one that contradicts what is
        known, a clock has been set, and what was seen before is of no use.
        """
        if exchange.round_trip_s < 0:
            return
        if (best := self.best) is not None and not exchange.agrees_with(best):
            self._last.clear()
        self._last.append(exchange)

    @property
    def best(self) -> Exchange | None:
        """The exchange with the shortest round trip; None if there was none."""
        return min(self._last, key=lambda each: each.round_trip_s, default=None)
