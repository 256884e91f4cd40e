"""Atomic replacement of files: after a crash or on a full disk the old version remains.

A file with a checksum also shows when it is read that it is damaged or truncated.
"""

import errno
import os
from contextlib import suppress
from pathlib import Path
from struct import Struct
from zlib import crc32

from sojourn.errors import BadFile, DiskFull, EngineError
from sojourn.files.private_files import FILE_MODE, make_folder, sync_folder

RESTORE = "restore the state folder from a backup, or start without this state (--fresh)"
"""The remedy in errors about damaged files of the state."""

_MAGIC = b"sjn1"
_HEADER = Struct("!4sIQ")  # magic number, checksum and length of the body


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


def sealed(body: bytes) -> bytes:
    """Return the content of a file with *body*, which follows a header with its checksum."""
    return _HEADER.pack(_MAGIC, crc32(body), len(body)) + body


def unsealed(content: bytes) -> bytes:
    """Return the body in the result of `sealed`, unchecked."""
    return content[_HEADER.size :]


def write_checked(path: Path, body: bytes) -> None:
    write_durably(path, sealed(body))


def read_checked(path: Path) -> bytes:
    """Return the body of the file at *path*.

    Raise `FileNotFoundError` if it is missing, and `BadFile` if it is unreadable or damaged.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise BadFile(str(path), f"cannot be read: {error.strerror}", RESTORE) from error
    if problem := _problem(content):
        raise BadFile(str(path), problem, RESTORE)
    return unsealed(content)


def _problem(content: bytes) -> str:
    if len(content) < _HEADER.size:
        return f"is truncated: it has {len(content)} bytes"
    magic, check, length = _HEADER.unpack_from(content)
    if magic != _MAGIC:
        return "is damaged, or was written by another version"
    body = memoryview(content)[_HEADER.size :]
    if len(body) < length:
        return f"is truncated: it has {len(body)} of {length} bytes"
    if len(body) > length or crc32(body) != check:
        return "is damaged: its checksum does not match"
    return ""
