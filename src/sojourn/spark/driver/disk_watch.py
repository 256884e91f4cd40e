"""Whether the disks that an application writes to have room, as its driver sees it.

Hosts find out by themselves, and wait. Spark does not: a query that cannot write to its
checkpoint fails, and is started again when there is room.
"""

import errno
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from sojourn.files.private_files import FILE_MODE

__all__ = ["DiskWatch", "has_room", "lacks_room"]

_FULL = (errno.ENOSPC, errno.EDQUOT)
# What a probe takes for a moment: files of a checkpoint have a few kilobytes.
_PROBE_BYTES = 1 << 20
_LOOK_S = 1.0


def lacks_room(text: str) -> bool:
    """Tell whether an error, of Java or of Python, is that of a full disk.

    >>> lacks_room("java.io.IOException: No space left on device")
    True
    """
    return any(os.strerror(number) in text for number in _FULL)


def has_room(folder: Path, least_bytes: int = _PROBE_BYTES) -> bool:
    """Tell whether so many bytes can be written in *folder*, by trying it."""
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
    """How long the disks of *folders* have had no room; *now_s* is a steady clock."""

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
        """For how long there has been no room; None if there is some."""
        return None if self._since_s is None else self._now_s() - self._since_s

    @property
    def notices(self) -> tuple[str, ...]:
        """What to tell the user, the same for as long as it is so."""
        if self._since_s is None:
            return ()
        return (
            f"the disk of {self._folders[0]} is full; the application waits for disk space",
        )

    def lacks(self, why: str) -> None:
        """Note that something failed because a disk is full."""
        self.lack, self._probing, self._looked_s = why, True, self._now_s()
        self._note()

    def hosts_lack(self, why: str) -> None:
        """Note what hosts have no room for; empty if they have."""
        self._hosts_wait = bool(why)
        self.lack = why or self.lack
        self._note()

    def look(self) -> None:
        """Find out, once in a while, whether there is room again."""
        if self._probing and self._now_s() - self._looked_s >= _LOOK_S:
            self._looked_s = self._now_s()
            self._probing = not all(map(has_room, self._folders))
            self._note()

    def _note(self) -> None:
        if not (self._hosts_wait or self._probing):
            self._since_s, self.lack = None, ""
        elif self._since_s is None:
            self._since_s = self._now_s()
