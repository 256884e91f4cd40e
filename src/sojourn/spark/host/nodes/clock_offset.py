"""How far the clock of another machine is ahead, from questions and answers.

As in NTP, an exchange has four times, two of each clock. If the ways there and back took the
same time, it tells the difference of the clocks exactly; it is never wrong by more than half of
the round trip. Of a few exchanges, that with the shortest round trip is the best.
"""

from collections import deque
from dataclasses import dataclass

__all__ = ["ClockOffset", "Exchange"]

# Questions are asked every second: few enough that clocks do not drift apart meanwhile, and
# enough that one of them met nobody else on its way. NTP keeps as many.
_KEPT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A question and its answer: *asked* and *came* by our clock, *heard* and *told* by theirs.

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
    """The best of the last exchanges with a machine.

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
