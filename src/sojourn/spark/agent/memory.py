"""The memory limit of the processes of a node, and how much is in use.

The limit is that of the tightest control group (cgroup) of this process, beyond which the
system kills processes; a container is such a group. Without one it is the memory of the
machine, and the usage is of all processes there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

__all__ = ["NodeMemory", "group_folders", "memory_here"]

_GROUPS, _OURS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMemory:
    """Memory usage and its limit."""

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


def memory_here(groups: Path = _GROUPS, ours: Path = _OURS) -> NodeMemory:
    """Return the memory of the tightest control group of this process, or of the machine.

    The page cache that the system can reclaim is not in use.
    """
    machine = psutil.virtual_memory()
    tightest = NodeMemory(
        used_bytes=machine.total - machine.available, limit_bytes=machine.total
    )
    try:
        told = ours.read_text()
    except OSError:
        return tightest
    for folder in group_folders(told, groups):
        for names in (_V2, _V1):
            found = _read(folder, names)
            if found is not None and found.limit_bytes < tightest.limit_bytes:
                tightest = found
    return tightest


def group_folders(told: str, groups: Path) -> Iterator[Path]:
    r"""Yield the folders of the groups that limit memory, and of their ancestors.

    A container may see the name that its group has outside, which has no folder inside: then
    the top folder is its own group.

    >>> [str(each) for each in group_folders("0::/pod/main", Path("/groups"))]
    ['/groups/pod/main', '/groups/pod', '/groups']
    >>> [str(each) for each in group_folders("4:memory:/a\n1:cpu:/b\n0::/", Path("/groups"))]
    ['/groups/memory/a', '/groups/memory', '/groups']
    """
    for line in told.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, name = rest.partition(":")
        if "memory" in controllers.split(","):
            top = groups / "memory"
        elif number == "0" and not controllers:
            top = groups
        else:
            continue
        own = top / name.strip("/")
        yield from (own, *(each for each in own.parents if each.is_relative_to(top)))


def _read(folder: Path, names: _Names) -> NodeMemory | None:
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
