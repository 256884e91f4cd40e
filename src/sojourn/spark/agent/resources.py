"""The cores and the memory that the processes of a node may use, and how much they use.

The limit is that of the tightest control group (cgroup), among the group of this process and
its ancestors; a container is such a group. If no group allows less than the machine, or than
the CPU affinity of this process, that is the limit, and the usage is of all processes there.
"""

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path

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
    for group in group_folders(_text(system / "self/cgroup"), groups, "cpu"):
        cores = _limit(group)
        if cores < tightest.cores:
            pool = f"{machine} group {group.stat().st_ino}"
            tightest = CoreUse(cores=cores, pool=pool, used_s=_used_s(group, groups))
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


def _used_s(folder: Path, groups: Path) -> float | None:
    """Return the CPU seconds of all processes in a group."""
    for line in _text(folder / "cpu.stat").splitlines():
        name, _, value = line.partition(" ")
        if name == "usage_usec":
            return int(value) / 1e6
    try:
        accounts = groups / "cpuacct" / folder.relative_to(groups / "cpu")
        return int(_text(accounts / "cpuacct.usage")) / 1e9
    except ValueError:  # version 2 has no such folder
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMemory:
    """Memory usage, and the memory limit."""

    used_bytes: int
    limit_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """The file names of a version of control groups."""

    limit: str
    used: str
    reclaimable: str


_V1 = _Names(
    limit="memory.limit_in_bytes",
    used="memory.usage_in_bytes",
    reclaimable="total_inactive_file",
)
_V2 = _Names(limit="memory.max", used="memory.current", reclaimable="inactive_file")


def memory_here(groups: Path = _GROUPS, ours: Path = _SYSTEM / "self/cgroup") -> NodeMemory:
    """Return the memory of the tightest control group of this process, or of the machine.

    The system kills processes beyond the limit of a group. The page cache that it can reclaim
    is not in use.
    """
    import psutil  # noqa: PLC0415 - optional, and the cores are known without it

    machine = psutil.virtual_memory()
    tightest = NodeMemory(
        used_bytes=machine.total - machine.available, limit_bytes=machine.total
    )
    for folder in group_folders(_text(ours), groups, "memory"):
        for names in (_V2, _V1):
            found = _memory(folder, names)
            if found is not None and found.limit_bytes < tightest.limit_bytes:
                tightest = found
    return tightest


def _memory(folder: Path, names: _Names) -> NodeMemory | None:
    """Return usage and limit of a group; None if it has no limit."""
    try:
        limit_bytes = int((folder / names.limit).read_text())
        used_bytes = int((folder / names.used).read_text())
        statistics = (folder / "memory.stat").read_text().splitlines()
    except (OSError, ValueError):  # without a limit the file says "max"
        return None
    for line in statistics:
        name, _, value = line.partition(" ")
        if name == names.reclaimable:
            used_bytes -= int(value)
    return NodeMemory(used_bytes=max(0, used_bytes), limit_bytes=limit_bytes)


def group_folders(told: str, groups: Path, controller: str) -> Iterator[Path]:
    r"""Yield the folders of the groups that have *controller*, and of their ancestors.

    A container may see the name that its group has outside, which has no folder inside: then
    the top folder is its own group.

    >>> [str(each) for each in group_folders("0::/pod/main", Path("/groups"), "memory")]
    ['/groups/pod/main', '/groups/pod', '/groups']
    >>> told = "4:memory:/a\n1:cpu:/b\n0::/"
    >>> [str(each) for each in group_folders(told, Path("/groups"), "memory")]
    ['/groups/memory/a', '/groups/memory', '/groups']
    """
    for line in told.splitlines():
        _, controllers, name = line.split(":", 2)
        if not controllers:  # version 2 has one hierarchy
            top = groups
        elif controller in controllers.split(","):
            top = groups / controller
        else:
            continue
        own = Path(name.strip("/"))
        yield from (top / part for part in (own, *own.parents))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
