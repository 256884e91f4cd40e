"""How many cores the processes of a node may use."""

import os
from pathlib import Path

__all__ = ["cores_here", "limit_of"]

# Of the group that a container is: so many microseconds of every so many.
_LIMIT = Path("/sys/fs/cgroup/cpu.max")


def cores_here() -> float:
    """Return the cores that this process may use, and no more than its container has."""
    allowed = float(len(os.sched_getaffinity(0)))
    try:
        return min(allowed, limit_of(_LIMIT.read_text()))
    except (OSError, ValueError):
        return allowed


def limit_of(text: str) -> float:
    """Return the cores that a control group has; infinite if they are not limited.

    >>> limit_of("150000 100000"), limit_of("max 100000")
    (1.5, inf)
    """
    quota, period = text.split()
    return float("inf") if quota == "max" else float(quota) / float(period)
