"""File locks that end with the process that holds them, however it ends."""

import fcntl
import os
from pathlib import Path

from sojourn.errors import BadFile, EngineError

__all__ = ["take"]


def take(path: Path, refusal: str) -> int:
    """Return a file descriptor that holds the lock at *path*; closing it releases the lock.

    If another process holds it, raise an `EngineError` with *refusal*, in which `{pid}` is
    replaced by its pid.
    """
    try:
        lock = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise BadFile(
            str(path), f"cannot be written: {error.strerror}", "check the path"
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        pid = os.pread(lock, 32, 0).decode(errors="replace").strip() or "unknown"
        os.close(lock)
        raise EngineError(refusal.replace("{pid}", pid)) from error
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    return lock
