"""Files with a checksum, by which reading detects damage and truncation."""

from pathlib import Path
from struct import Struct
from zlib import crc32

from sojourn.errors import BadFile
from sojourn.files.durable_file import write_durably

__all__ = ["RESTORE", "read_checked", "sealed", "unsealed", "write_checked"]

RESTORE = "restore the state folder from a backup, or start without this state (--fresh)"
"""The remedy in errors about damaged files of the state."""

_MAGIC = b"sjn1"
_HEADER = Struct("!4sIQ")  # magic number, checksum and length of the body


def sealed(body: bytes) -> bytes:
    """Return the content of a file with *body*, which follows a header with its checksum."""
    return _HEADER.pack(_MAGIC, crc32(body), len(body)) + body


def unsealed(content: bytes) -> bytes:
    """Return the body in the result of `sealed`, unchecked."""
    return content[_HEADER.size :]


def write_checked(path: Path, body: bytes) -> None:
    """Replace the file at *path*; the new version is on disk when this returns."""
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
