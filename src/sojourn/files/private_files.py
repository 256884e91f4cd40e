"""Folders and files without access for other users, whatever the umask is."""

import os
import shlex
import stat
from pathlib import Path
from typing import BinaryIO

from sojourn.errors import BadFile

FILE_MODE, FOLDER_MODE = 0o600, 0o700
PRIVATE_UMASK = 0o077
"""The umask of other programs that write to a state folder, such as Java."""


def make_folder(folder: Path) -> None:
    """Create *folder* and its missing parents durably."""
    if folder.is_dir():
        return
    try:
        folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
    except FileNotFoundError:
        make_folder(folder.parent)
        folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Flush the directory entries of *folder* to disk: created, renamed and deleted files."""
    found = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(found)
    finally:
        os.close(found)


def append_to(path: Path, *, buffering: int = -1) -> BinaryIO:
    """Open a file for appending; it is created if it is missing."""
    flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, FILE_MODE), "ab", buffering=buffering)


def write_new(path: Path, content: bytes) -> None:
    """Write a file, and truncate an existing one; neither atomic nor durable."""
    flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, FILE_MODE), "wb") as file:
        file.write(content)


def claim_folder(folder: Path) -> None:
    """Make a state folder private; it is created if it is missing.

    The mode of an empty folder is changed. Raise `BadFile` if the folder cannot be used, or is
    not empty and accessible to other users: its files may be accessible, too.
    """
    try:
        make_folder(folder)
        mode = stat.S_IMODE(folder.stat().st_mode)
        if mode & PRIVATE_UMASK:
            if any(folder.iterdir()):
                raise BadFile(
                    str(folder),
                    f"is accessible to other users (mode {mode:04o})",
                    f"run `chmod -R go-rwx {shlex.quote(str(folder))}`, then start again",
                )
            folder.chmod(FOLDER_MODE)
    except OSError as error:
        problem = f"cannot be used: {error.strerror}"
        raise BadFile(str(folder), problem, "choose another with --state") from error
