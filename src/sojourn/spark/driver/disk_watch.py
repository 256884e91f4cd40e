"""Full disks, as the driver of an application sees them.

Hosts notice a full disk themselves, and wait. Spark does not: a query that cannot write to its
checkpoint fails, and is restarted when the disk has room again.
"""

import errno
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from sojourn.files.private_files import FILE_MODE

_FULL = (errno.ENOSPC, errno.EDQUOT)
# The size of the file that probes for room; files of a checkpoint have a few kilobytes.
_PROBE_BYTES = 1 << 20
_LOOK_S = 1.0


def lacks_room(text: str) -> bool:
    """Return whether the text of an error, of Java or Python, is that of a full disk.

    >>> lacks_room("java.io.IOException: No space left on device")
    True
    """
    return any(os.strerror(number) in text for number in _FULL)


def has_room(folder: Path, least_bytes: int = _PROBE_BYTES) -> bool:
    """Return whether *least_bytes* can be written in *folder*, by trying it."""
    probe = folder / f".room-{uuid4().hex}"
    try:
        number = os.open(probe, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, FILE_MODE)
        try:
            os.posix_fallocate(number, 0, least_bytes)
        finally:
            os.close(number)
            with suppress(OSError):
                probe.unlink()
    except OSError as error:
        return error.errno not in _FULL
    return True


class DiskWatch:
    """Tracks for how long the disks of *folders* are full; *now_s* is a monotonic clock."""

    def __init__(
        self, folders: Iterable[Path], now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._folders, self._now_s = tuple(folders), now_s
        self._hosts_wait = self._probing = False
        self._since_s: float | None = None
        self._looked_s = 0.0
        self.lack = ""

    @property
    def full_s(self) -> float | None:
        """How long the disk has been full; None if it has room."""
        return None if self._since_s is None else self._now_s() - self._since_s

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices for the user; the text does not change while the disk is full."""
        if self._since_s is None:
            return ()
        return (
            f"the disk of {self._folders[0]} is full; the application waits for disk space",
        )

    def lacks(self, why: str) -> None:
        """Record a failure that a full disk has caused, and begin to probe."""
        self.lack, self._probing, self._looked_s = why, True, self._now_s()
        self._note()

    def hosts_lack(self, why: str) -> None:
        """Record the reason why hosts wait for room; empty if they do not."""
        self._hosts_wait = bool(why)
        self.lack = why or self.lack
        self._note()

    def look(self) -> None:
        """Probe after a failure, once per second, until all disks have room."""
        if self._probing and self._now_s() - self._looked_s >= _LOOK_S:
            self._looked_s = self._now_s()
            self._probing = not all(map(has_room, self._folders))
            self._note()

    def _note(self) -> None:
        if not (self._hosts_wait or self._probing):
            self._since_s, self.lack = None, ""
        elif self._since_s is None:
            self._since_s = self._now_s()
