"""The identity of a process on disk: its pid and start time.

A pid alone is not enough: after the process has ended, or after a reboot, another process may
get the same pid.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil

_BOOT = Path("/proc/sys/kernel/random/boot_id")
# Fields of /proc/PID/stat after the name, which may itself contain spaces and brackets.
_STATE, _START = 0, 19


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedProcess:
    """A process, identified by pid and start time."""

    pid: int
    started: str
    """On Linux, the id of the boot and the clock ticks since then."""

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """Return the process that now has this pid; None if there is none.

        >>> import os
        >>> RecordedProcess.of(os.getpid()).runs
        True
        """
        started = _started(pid)
        return None if started is None else cls(pid=pid, started=started)

    @property
    def runs(self) -> bool:
        """Whether this process still runs, as opposed to another one with its pid."""
        return _started(self.pid) == self.started


def _started(pid: int) -> str | None:
    """Return the start time of a process; None if it does not exist, or is a zombie.

    On Linux it is counted from the boot, because the wall clock may be set.
    """
    if not _BOOT.exists():  # not Linux
        try:
            process = psutil.Process(pid)
            ended = process.status() == psutil.STATUS_ZOMBIE
            return None if ended else str(process.create_time())
        except psutil.Error:
            return None
    try:
        fields = (
            Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        )
        boot = _BOOT.read_text().strip()
    except OSError:
        return None
    return None if fields[_STATE] in "ZX" else f"{boot}/{fields[_START]}"
