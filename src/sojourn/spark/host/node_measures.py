"""Measurements by a host of a node: the offset of its clock, round trips, bytes by stream."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from sojourn.spark.wire.agent import ClockIs
from sojourn.spark.wire.processor import OutputRecord, Result
from sojourn.spark.wire.record import Record

# Exchanges kept, one per second: few enough that clocks hardly drift meanwhile, and enough that
# one of them was not delayed on the network. NTP keeps as many.
_KEPT = 8
# One mark per second, so six of them give the rate of the last five seconds.
_MARKS = 6


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request for the time and its answer, with four timestamps, as in NTP.

    If both directions took the same time, the offset is exact; its error is at most half the
    round trip. So of several exchanges, the one with the shortest round trip is the best.

    >>> exchange = Exchange(ClockIs(10.0, 15.25, 15.5), came_s=11.0)
    >>> exchange.round_trip_s, exchange.offset_s
    (0.75, 4.875)
    """

    told: ClockIs
    """The answer, with the times of the request and of the remote clock."""
    came_s: float
    """When it was received, by the local clock."""

    @property
    def round_trip_s(self) -> float:
        """Round-trip time on the network; negative if a clock has jumped meanwhile."""
        told = self.told
        return (self.came_s - told.asked_s) - (told.told_s - told.heard_s)

    @property
    def offset_s(self) -> float:
        """How far the remote clock is ahead of the local one."""
        told = self.told
        return ((told.heard_s - told.asked_s) + (told.told_s - self.came_s)) / 2

    def agrees_with(self, other: "Exchange") -> bool:
        """Return whether both can have the same offset: each may err by half its round trip."""
        apart_s = abs(self.offset_s - other.offset_s)
        return apart_s <= (self.round_trip_s + other.round_trip_s) / 2


class ClockOffset:
    """The clock offset of another machine, by the best of the last exchanges with it.

    >>> clock = ClockOffset()
    >>> clock.seen(Exchange(ClockIs(10.0, 15.25, 15.5), came_s=11.0))
    >>> clock.seen(Exchange(ClockIs(12.0, 17.0, 17.0), came_s=12.25))
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


class Traffic:
    """Bytes by stream, to a node and back, since it connected.

    Frames are counted as a whole, so names, headers and states of keys are included.

    >>> traffic = Traffic()
    >>> traffic.mark(10.0)
    >>> traffic.gave([Record("lines/0/7", b"a b", "lines")], 60)
    >>> traffic.got([Result([OutputRecord("words", b"a"), OutputRecord("ends", b"b")])], 41)
    >>> traffic.got([Result([])], 20)
    >>> traffic.to, traffic.back
    ({'lines': 60}, {'words': 20, 'ends': 21, '': 20})
    >>> traffic.mark(12.0)
    >>> traffic.per_s
    (30.0, 30.5)
    """

    def __init__(self) -> None:
        self.to: dict[str, int] = {}
        self.back: dict[str, int] = {}
        self._marks: deque[tuple[float, int, int]] = deque(maxlen=_MARKS)

    def gave(self, records: Sequence[Record], size_bytes: int) -> None:
        """Count a frame with *records* for a processor."""
        _count(self.to, records, size_bytes)

    def got(self, results: Sequence[Result], size_bytes: int) -> None:
        """Count a frame with *results*; without outputs it counts for the stream `""`."""
        if len(results) == 1:
            outputs: Sequence[OutputRecord] = results[0].outputs
        else:
            outputs = [output for result in results for output in result.outputs]
        _count(self.back, outputs, size_bytes)

    def mark(self, now_s: float) -> None:
        """Record the totals, from which `per_s` derives rates."""
        self._marks.append((now_s, sum(self.to.values()), sum(self.back.values())))

    @property
    def per_s(self) -> tuple[float, float]:
        """Bytes per second to the node and back, over the last marks."""
        if len(self._marks) < 2:
            return 0.0, 0.0
        (since_s, to, back), (at_s, to_now, back_now) = self._marks[0], self._marks[-1]
        lasted_s = max(at_s - since_s, 1e-9)
        return (to_now - to) / lasted_s, (back_now - back) / lasted_s


def _count(
    total: dict[str, int], records: Sequence[Record | OutputRecord], size_bytes: int
) -> None:
    """Add a frame to the stream of its records, or divide it if they are of several."""
    stream = records[0].stream if records else ""
    if len(records) > 1 and any(record.stream != stream for record in records):
        _divide(total, records, size_bytes)
    else:
        total[stream] = total.get(stream, 0) + size_bytes


def _divide(
    total: dict[str, int], records: Sequence[Record | OutputRecord], size_bytes: int
) -> None:
    """Divide a frame among streams in proportion to their bytes, without a remainder."""
    carried: dict[str, int] = {}
    for record in records:
        # An empty record counts too, because its name takes space.
        carried[record.stream] = carried.get(record.stream, 0) + 1 + record.size_bytes
    left, weights = size_bytes, sum(carried.values())
    # Each gets its share of the rest, and the last all of it, so rounding loses nothing.
    for stream, weight in carried.items():
        share = left * weight // weights if weights > weight else left
        total[stream] = total.get(stream, 0) + share
        left, weights = left - share, weights - weight
