"""The memory limit of the processes of a node, and how much is in use.

Beyond the limit of a control group, which a container is, the system kills processes. Where
there is no such limit it is the memory of the machine, with all that runs there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

__all__ = ["NodeMemory", "group_folders", "memory_here"]

_GROUPS, _OURS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMemory:
    """So many bytes are *used*, of those that may be."""

    used_bytes: int
    limit_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """What the files of a version of control groups are called."""

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
    """Return the memory of the group of this process that has least; or of the machine.

    Files that were read, and that the system can forget, are not in use.
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
    r"""Yield the folders of the groups that limit memory, and of those around them.

    What a container is told of its group may be its name outside, of which it has no folder:
    then what it sees at the top is its own.

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
    """Return what a group uses of its limit; None if it has no limit."""
    try:
        limit_bytes = int((folder / names.limit).read_text())
        used_bytes = int((folder / names.used).read_text())
        statistics = (folder / "memory.stat").read_text().splitlines()
    except (OSError, ValueError):  # a limit that is none is "max"
        return None
    for line in statistics:
        name, _, value = line.partition(" ")
        if name == names.reclaimable:
            used_bytes -= int(value)
    return NodeMemory(used_bytes=max(0, used_bytes), limit_bytes=limit_bytes)
