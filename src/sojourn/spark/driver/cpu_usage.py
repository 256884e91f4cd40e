"""The busy cores of this machine, or of this container."""

import time

from sojourn.spark.agent.cores import core_use

__all__ = ["CpuUsage"]


class CpuUsage:
    """The cores that this process may use, and how many of them are busy."""

    def __init__(self) -> None:
        now = core_use()
        self.cores = now.cores
        self._at_s, self._used_s = time.monotonic(), now.used_s

    def busy_cores(self, now_s: float) -> float | None:
        """Return the mean of busy cores since the last call; None if unknown."""
        now, lasted_s, before_s = core_use(), now_s - self._at_s, self._used_s
        self.cores, self._used_s, self._at_s = now.cores, now.used_s, now_s
        if lasted_s <= 0 or before_s is None or now.used_s is None:
            return None
        return min(self.cores, max(0.0, (now.used_s - before_s) / lasted_s))
