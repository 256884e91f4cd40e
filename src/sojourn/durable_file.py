"""Files that are replaced atomically: after a crash or a full disk the old version remains."""

import errno
import os
from contextlib import suppress
from pathlib import Path

from sojourn.errors import EngineError

__all__ = ["sync_folder", "write_durably"]


def write_durably(path: Path, content: bytes, *, mode: int = 0o666) -> None:
    """Replace the file at *path*; the new version is on disk when this returns.

    Missing folders are created. Nothing is written if the content is the same. Raise
    `EngineError` if it cannot be written: then the old version remains.
    """
    with suppress(OSError):
        if path.read_bytes() == content:
            return
    new = path.with_name(f"{path.name}.new")
    try:
        _make_folder(path.parent)
        flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        with os.fdopen(os.open(new, flags, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
            new.unlink()
        way_out = (
            f"make room in {path.parent}"
            if error.errno in (errno.ENOSPC, errno.EDQUOT)
            else f"check {path.parent}"
        )
        raise EngineError(f"{path} cannot be written: {error.strerror}; {way_out}") from error


def sync_folder(folder: Path) -> None:
    """Wait until changes of names in *folder* are on disk."""
    found = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(found)
    finally:
        os.close(found)


def _make_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)
