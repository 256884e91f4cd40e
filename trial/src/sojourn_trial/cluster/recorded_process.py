"""A process that is written down, and recognised later: by its pid and when it started.

A pid alone is not enough: after the end of a process, and after a reboot, another may have it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil

__all__ = ["RecordedProcess"]

_BOOT = Path("/proc/sys/kernel/random/boot_id")
# Fields of /proc/PID/stat after the name, which may itself have spaces and brackets.
_STATE, _START = 0, 19


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedProcess:
    """The process *pid*, *started* when no other process with this pid was."""

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """Return the process that has this pid now; None if there is none.

        >>> import os
        >>> RecordedProcess.of(os.getpid()).runs
        True
        """
        started = _started(pid)
        return None if started is None else cls(pid=pid, started=started)

    @property
    def runs(self) -> bool:
        """Whether it is this process that has the pid, and it has not ended."""
        return _started(self.pid) == self.started


def _started(pid: int) -> str | None:
    """Return when the process was started; None if there is none, or it has ended.

    On Linux, ticks of a boot: the time of day may be set while a process runs.
    """
    if not _BOOT.exists():
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
