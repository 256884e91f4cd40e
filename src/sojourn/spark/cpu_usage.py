"""How busy this machine is."""

import os
import time

import psutil

__all__ = ["CpuUsage"]


class CpuUsage:
    """The cores that this process may use, and how many all of them together were busy."""

    def __init__(self) -> None:
        self.cores = float(len(os.sched_getaffinity(0)))
        self._at_s, self._busy_s = time.monotonic(), _busy_s()

    def busy_cores(self, now_s: float) -> float | None:
        """Return the cores that were busy since this was last asked; None of no time."""
        busy_s, lasted_s = _busy_s(), now_s - self._at_s
        spent_s, self._busy_s, self._at_s = busy_s - self._busy_s, busy_s, now_s
        if lasted_s <= 0:
            return None
        return min(self.cores, max(0.0, spent_s / lasted_s))


def _busy_s() -> float:
    """Return the CPU seconds that the machine has spent on anything."""
    times = psutil.cpu_times()
    waiting = times.idle + getattr(times, "iowait", 0.0) + getattr(times, "steal", 0.0)
    # time of guests is counted twice, as such and as user's
    twice = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
    return float(sum(times) - waiting - twice)
