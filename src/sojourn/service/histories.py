"""Finding the history of an application."""

from pathlib import Path

from sojourn.errors import BadInput, EngineError
from sojourn.service.client import ask
from sojourn.service.entry import Entry, only, running
from sojourn.service.folders import state_folder
from sojourn.topology.check import shown

__all__ = ["find_history"]

_NAME = "history"


def find_history(app: str | None = None) -> Path:
    """Return the history of *app*; without a name, of the application that runs or ran last.

    Raise `BadInput` if there is none, or several run.
    """
    runs, kept = running(), _kept()
    if app is not None:
        if app in runs:
            return _of_running(*runs[app])
        if app in kept:
            return kept[app]
        known = ", ".join(dict.fromkeys([*runs, *kept])) or "none"
        raise BadInput(
            f"there is no history of {shown(app)}; there are: {known}. If it ran with --state "
            "or --history, name the file"
        )
    if runs:
        return _of_running(*only(runs))
    if not kept:
        raise BadInput("no application has run here; name a history file")
    return max(kept.values(), key=lambda path: path.stat().st_mtime)


def _of_running(folder: Path, entry: Entry) -> Path:
    try:
        told = ask(folder, entry, {"ask": "status"}).get("history")
    except EngineError:  # it is starting, or busy
        told = None
    return Path(told) if told else Path(entry.state) / _NAME


def _kept() -> dict[str, Path]:
    """Return the histories in state folders, by application."""
    found = sorted(state_folder("").glob(f"*/{_NAME}"))
    return {path.parent.name: path for path in found if path.is_file()}
