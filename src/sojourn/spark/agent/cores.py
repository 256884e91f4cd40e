"""The cores that the processes of a node may use, and their CPU usage.

The limit is that of the tightest control group (cgroup), among the group of this process and
its ancestors; a container is such a group. If no group is limited to fewer cores than the CPU
affinity of this process, its affinity is the limit, and the usage is of all processes there.
"""

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path

__all__ = ["CoreUse", "busy_s", "core_use", "limit_of"]

_GROUPS, _SYSTEM = Path("/sys/fs/cgroup"), Path("/proc")
# Columns of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. The columns of
# guests follow, and are included in the first two.
_COMPUTING = (0, 1, 2, 5, 6)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreUse:
    """A CPU limit, and how much of it was used."""

    cores: float
    """Cores that may be used."""
    pool: str
    """Identifies these cores: all processes with the same pool share them."""
    used_s: float | None
    """CPU seconds of all processes in the pool, from an arbitrary start; None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """A control group."""

    limits: Path
    """The folder with its limit."""
    uses: Path
    """The folder with its usage."""


def core_use(groups: Path = _GROUPS, system: Path = _SYSTEM) -> CoreUse:
    """Return the tightest CPU limit of this process, and its usage.

    Pools contain the boot id, which is the same in all containers of a machine.
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
    """Return the cores of a group with a quota of *quota* microseconds per *period*.

    >>> limit_of("150000", "100000"), limit_of("max", "100000"), limit_of("-1", "100000")
    (1.5, inf, inf)
    """
    if quota == "max" or float(quota) <= 0:
        return inf
    return float(quota) / float(period)


def busy_s(stat: str, allowed: Collection[int]) -> float | None:
    r"""Return the CPU seconds of all processes on the *allowed* cores, from /proc/stat.

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
    """Yield the control groups of a process in /proc/self/cgroup, and their ancestors.

    A container may see the name that its group has outside, which has no folder inside: then
    the top folder is its own group.
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
    """Return the cores of a group; infinite without a limit, or without such a folder."""
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
