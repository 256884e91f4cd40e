"""Atomic replacement of files: after a crash or on a full disk the old version remains."""

import errno
import os
from contextlib import suppress
from pathlib import Path

from sojourn.errors import DiskFull, EngineError
from sojourn.files.private_files import FILE_MODE, make_folder, sync_folder

__all__ = ["unwritable", "write_durably"]


def write_durably(path: Path, content: bytes) -> None:
    """Replace the file at *path*; the new version is on disk when this returns.

    Missing folders are created, and other users have no access. Nothing is written if the
    content is the same. Raise `EngineError` if it cannot be written, and `DiskFull` for lack of
    space; the old version remains.
    """
    with suppress(OSError):
        if path.read_bytes() == content:
            return
    new = path.with_name(f"{path.name}.new")
    try:
        make_folder(path.parent)
        flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        with os.fdopen(os.open(new, flags, FILE_MODE), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
            new.unlink()
        raise unwritable(str(path), path.parent, error) from error


def unwritable(what: str, folder: Path, error: OSError) -> EngineError:
    """Return the error to raise if *what* cannot be written to *folder*.

    >>> unwritable("the log", Path("/s"), OSError(errno.ENOSPC, "No space left on device"))
    DiskFull('the log', '/s', 'No space left on device')
    >>> print(unwritable("the log", Path("/s"), OSError(errno.EIO, "Input/output error")))
    the log cannot be written: Input/output error; check /s
    """
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(what, str(folder), str(error.strerror))
    return EngineError(f"{what} cannot be written: {error.strerror}; check {folder}")
