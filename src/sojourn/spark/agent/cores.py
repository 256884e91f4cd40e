"""The cores that the processes of a node may use, and how much of them is used.

The limit is that of the control group with the fewest cores, from the own group of this process
upwards: a container is such a group. Where no group has fewer cores than this process may run
on, these cores themselves are the limit, with all that runs on them.
"""

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path

__all__ = ["CoreUse", "busy_s", "core_use", "limit_of"]

_GROUPS, _SYSTEM = Path("/sys/fs/cgroup"), Path("/proc")
# Columns of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. Those of guests
# follow, and are part of the first two.
_COMPUTING = (0, 1, 2, 5, 6)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreUse:
    """So many *cores* may be used, and *used_s* CPU seconds were, since some beginning.

    All processes with the same *pool* share these cores, and *used_s* counts what all of them
    use: those of a control group, or of a machine. It is None if the system does not tell.
    """

    cores: float
    pool: str
    used_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """A control group: the folder with its limit, and the one with its use."""

    limits: Path
    uses: Path


def core_use(groups: Path = _GROUPS, system: Path = _SYSTEM) -> CoreUse:
    """Return the cores of this process, as the group or machine has them that limits it most.

    A machine is the same for all of its containers: each start of its system has an id.
    """
    allowed = os.sched_getaffinity(0)
    machine = _text(system / "sys/kernel/random/boot_id").strip()
    tightest = CoreUse(
        cores=float(len(allowed)),
        pool=f"{machine} cores {','.join(map(str, sorted(allowed)))}",
        used_s=busy_s(_text(system / "stat"), allowed),
    )
    for group in _groups(_text(system / "self/cgroup"), groups):
        cores = _limit(group.limits)
        if cores < tightest.cores:
            pool = f"{machine} group {group.limits.stat().st_ino}"
            tightest = CoreUse(cores=cores, pool=pool, used_s=_used_s(group.uses))
    return tightest


def limit_of(quota: str, period: str) -> float:
    """Return the cores of a group that has *quota* microseconds of each *period*.

    >>> limit_of("150000", "100000"), limit_of("max", "100000"), limit_of("-1", "100000")
    (1.5, inf, inf)
    """
    if quota == "max" or float(quota) <= 0:
        return inf
    return float(quota) / float(period)


def busy_s(stat: str, allowed: Collection[int]) -> float | None:
    r"""Return the CPU seconds of all processes on the *allowed* cores, as /proc/stat tells.

    >>> both = "cpu  30 0 12 9 9 0 0 0\ncpu0 10 0 5 9 0 0 0 0\ncpu1 20 0 7 0 9 0 0 0\n"
    >>> ticks = os.sysconf("SC_CLK_TCK")
    >>> busy_s(both, {1}) * ticks, busy_s(both, {0, 1}) * ticks, busy_s("", {0})
    (27.0, 42.0, None)
    """
    names = {f"cpu{number}" for number in allowed}
    rows = [line.split() for line in stat.splitlines()]
    ticks = [int(row[1 + i]) for row in rows if row and row[0] in names for i in _COMPUTING]
    return sum(ticks) / os.sysconf("SC_CLK_TCK") if ticks else None


def _groups(told: str, top: Path) -> Iterator[_Group]:
    """Yield the groups that a process is *told* to be in, and those around them.

    A container may be told the name of its group outside, of which it has no folder: then what
    it sees at the top is its own.
    """
    for line in told.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, name = rest.partition(":")
        own = Path(name.strip("/"))
        for part in (own, *own.parents):
            if not controllers:  # version 2 has one hierarchy
                yield _Group(limits=top / part, uses=top / part)
            elif "cpu" in controllers.split(","):
                yield _Group(limits=top / "cpu" / part, uses=top / "cpuacct" / part)


def _limit(folder: Path) -> float:
    """Return the cores of a group; infinite if it has no limit, or there is no such folder."""
    limit = _text(folder / "cpu.max").split()
    if not limit:
        names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        limit = [_text(folder / name).strip() for name in names]
    try:
        return limit_of(*limit)
    except (ValueError, TypeError, ZeroDivisionError):
        return inf


def _used_s(folder: Path) -> float | None:
    """Return the CPU seconds of all processes in a group."""
    for line in _text(folder / "cpu.stat").splitlines():
        name, _, value = line.partition(" ")
        if name == "usage_usec":
            return int(value) / 1e6
    try:
        return int(_text(folder / "cpuacct.usage")) / 1e9
    except ValueError:
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
