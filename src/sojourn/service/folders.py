"""Folders of running applications, with access for their owner only."""

import os
import stat
from pathlib import Path

from sojourn.errors import BadFile

__all__ = [
    "cluster_folder",
    "database_folder",
    "places",
    "private_folder",
    "refuse_others",
    "state_folder",
]


def places() -> tuple[Path, ...]:
    """Return the folders of running applications, that of new ones first.

    There are several because a command may have another environment than the application.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    kept = _kept() / "run"
    return (Path(runtime) / "sojourn", kept) if runtime and Path(runtime).is_dir() else (kept,)


def state_folder(name: str, engine: str = "spark") -> Path:
    """Return the default state folder of an application."""
    return _kept() / "state" / (name if engine == "spark" else f"{name}.{engine}")


def database_folder() -> Path:
    """Return the default folder of the databases that applications write to."""
    return _kept() / "databases"


def cluster_folder() -> Path:
    """Return the default folder of a trial cluster."""
    return _kept() / "cluster"


def private_folder(path: Path) -> Path:
    """Return the folder, created with mode 0700 if it does not exist."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.lstat().st_uid == os.getuid() and not path.is_symlink():
            path.chmod(0o700)
    except OSError as error:
        raise BadFile(
            str(path), f"cannot be created: {error.strerror}", "set XDG_STATE_HOME to a folder"
        ) from error
    refuse_others(path)
    return path


def refuse_others(path: Path) -> None:
    """Raise a `BadFile` unless only this user has access to the file or folder."""
    try:
        found = path.lstat()
    except OSError as error:
        raise BadFile(
            str(path), f"cannot be read: {error.strerror}", "check its owner"
        ) from error
    if stat.S_ISLNK(found.st_mode):
        raise BadFile(str(path), "is a symbolic link", "remove it")
    if found.st_uid != os.getuid():
        raise BadFile(str(path), f"belongs to user {found.st_uid}", "remove it")
    if stat.S_IMODE(found.st_mode) & 0o077:
        mode = f"{stat.S_IMODE(found.st_mode):04o}"
        right = "0700" if stat.S_ISDIR(found.st_mode) else "0600"
        raise BadFile(
            str(path),
            f"is accessible to other users (mode {mode})",
            f"set its mode to {right}, and restart the application",
        )


def _kept() -> Path:
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "sojourn"
