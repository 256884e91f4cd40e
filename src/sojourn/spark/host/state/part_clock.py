"""The clock of reminders and expiry, which counts elapsed time.

`remind(after_s=…)` and `ttl_s` are durations, so no date is needed to measure them. While a
host runs, its clock follows the monotonic clock of the machine, even if the wall clock is
changed. The wall clock only measures how long no host ran: each cut has a reading of both
clocks, and the next host adds the wall time since then.
"""

import time
from collections.abc import Callable

import msgspec

# A longer absence, or a negative one, may come from a wall clock that is not set yet after a
# boot. It is read again once NTP has had time to set it.
_BELIEVED_US = 3_600_000_000
_DOUBTED_US = 60_000_000


class ClockReading(msgspec.Struct, array_like=True, frozen=True):
    """The clock of a part and the wall clock, at one moment."""

    part_us: int
    wall_us: int


def _running_s() -> float:
    """Return the time since the machine was booted, including time in suspension."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class PartClock:
    """The clock of a part in microseconds; it begins with the time of the *wall* clock.

    *running* is a monotonic clock, whose readings mean nothing to another process.
    """

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        running: Callable[[], float] = _running_s,
    ) -> None:
        self._wall, self._running = wall, running
        self._ahead_us = self._wall_us() - self._running_us()
        self._doubted: ClockReading | None = None
        self._doubted_until_us = 0

    def restore(self, last: ClockReading | None) -> None:
        """Resume from the reading of a cut, or from the wall clock if there is none."""
        wall_us, running_us = self._wall_us(), self._running_us()
        self._doubted = None
        if last is None:
            self._ahead_us = wall_us - running_us
            return
        absent_us = wall_us - last.wall_us
        if not 0 <= absent_us <= _BELIEVED_US:
            self._doubted, self._doubted_until_us = last, running_us + _DOUBTED_US
            absent_us = 0
        self._ahead_us = last.part_us + absent_us - running_us

    @property
    def in_doubt(self) -> bool:
        """Whether it is not known yet how long no host ran."""
        return self._doubted is not None

    def now_us(self) -> int:
        running_us = self._running_us()
        if self._doubted is not None and running_us >= self._doubted_until_us:
            absent_us = self._wall_us() - self._doubted.wall_us
            then_us = self._doubted.part_us + absent_us
            # It never goes back, even if the wall clock has.
            self._ahead_us = max(self._ahead_us, then_us - running_us)
            self._doubted = None
        return running_us + self._ahead_us

    def now_s(self) -> float:
        return self.now_us() / 1e6

    def reading(self) -> ClockReading:
        """Return the reading for a cut; while an absence is in doubt, that of its beginning."""
        now_us = self.now_us()
        return self._doubted or ClockReading(now_us, self._wall_us())

    def on_wall_s(self, part_us: int) -> float:
        """Convert a time of this clock to seconds of the wall clock."""
        return self._wall() - (self.now_us() - part_us) / 1e6

    def _wall_us(self) -> int:
        return round(self._wall() * 1e6)

    def _running_us(self) -> int:
        return round(self._running() * 1e6)
