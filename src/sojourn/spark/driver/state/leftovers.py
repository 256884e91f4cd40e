"""Leftovers of killed runs: files that nothing reads any more."""

from collections.abc import Iterable
from pathlib import Path

from sojourn.spark.driver.state.checkpoints import Checkpoints

__all__ = ["remove_leftovers"]


def remove_leftovers(state: Checkpoints, parts: Iterable[str]) -> None:
    """Remove incomplete new versions of files, and the attempts of earlier runs.

    The caller must hold the lock of the state, so that no other process writes. The last
    attempt of each part stays: the next one is numbered from it, and it fences off tasks of
    earlier attempts.
    """
    folders = [state.folder, state.folder / "first"]
    folders += [state.checkpoint(query) / "memory" for query in state.written_by_tasks]
    for part in parts:
        attempts = state.cuts(part) / "attempts"
        folders.append(attempts)
        for path in sorted(_numbered(attempts), key=lambda path: int(path.name))[:-1]:
            path.unlink(missing_ok=True)
    for folder in folders:
        for path in folder.glob("*.new"):
            path.unlink(missing_ok=True)


def _numbered(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*") if path.name.isdigit()]
