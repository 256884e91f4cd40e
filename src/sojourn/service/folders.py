"""Folders of running applications, which only their owner may enter."""

import os
import stat
from pathlib import Path

from sojourn.errors import BadFile

__all__ = ["places", "private_folder", "refuse_others", "state_folder"]


def places() -> tuple[Path, ...]:
    """Return where running applications are found, the place for new ones first.

    All are looked at: a command may not have the environment that the application has.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    kept = _kept() / "run"
    return (Path(runtime) / "sojourn", kept) if runtime and Path(runtime).is_dir() else (kept,)


def state_folder(name: str) -> Path:
    """Return where an application keeps its state, unless it is told another folder."""
    return _kept() / "state" / name


def private_folder(path: Path) -> Path:
    """Return the folder, made if need be, having seen to it that only we may enter it."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.lstat().st_uid == os.getuid() and not path.is_symlink():
            path.chmod(0o700)
    except OSError as error:
        raise BadFile(
            str(path), f"cannot be made: {error.strerror}", "set XDG_STATE_HOME to a folder"
        ) from error
    refuse_others(path)
    return path


def refuse_others(path: Path) -> None:
    """Raise a `BadFile` unless the file or folder is ours, and nobody else may use it."""
    try:
        found = path.lstat()
    except OSError as error:
        raise BadFile(str(path), f"cannot be read: {error.strerror}", "is it yours?") from error
    if stat.S_ISLNK(found.st_mode):
        raise BadFile(str(path), "is a link", "remove it")
    if found.st_uid != os.getuid():
        raise BadFile(str(path), f"belongs to user {found.st_uid}", "remove it, or ask them")
    if stat.S_IMODE(found.st_mode) & 0o077:
        mode = f"{stat.S_IMODE(found.st_mode):04o}"
        right = "0700" if stat.S_ISDIR(found.st_mode) else "0600"
        raise BadFile(
            str(path),
            f"may be used by others than its owner (mode {mode})",
            f"make it {right}, and start the application anew",
        )


def _kept() -> Path:
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "sojourn"
