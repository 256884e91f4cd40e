"""The history of an application, where nobody names its file."""

from pathlib import Path

from sojourn.errors import BadInput, EngineError
from sojourn.service.client import ask
from sojourn.service.entry import Entry, running
from sojourn.service.folders import state_folder
from sojourn.topology.check import shown

__all__ = ["find_history"]

_NAME = "history"


def find_history(app: str | None = None) -> Path:
    """Return the history of an application that runs, or else of one that ran here last.

    *app* is its name. Raise `BadInput` where there is none, or it is not clear which.
    """
    runs, kept = running(), _kept()
    if app is not None:
        if app in runs:
            return _of_running(*runs[app])
        if app in kept:
            return kept[app]
        known = ", ".join(dict.fromkeys([*runs, *kept])) or "none"
        raise BadInput(
            f"there is no history of {shown(app)}; there are: {known}. Of an application with "
            "its own --state or --history, name the file"
        )
    if len(runs) > 1:
        raise BadInput(
            f"{len(runs)} applications run, {', '.join(runs)}; say which: --app {min(runs)}"
        )
    if runs:
        return _of_running(*next(iter(runs.values())))
    if not kept:
        raise BadInput("no application has run here; name the file of a history")
    return max(kept.values(), key=lambda path: path.stat().st_mtime)


def _of_running(folder: Path, entry: Entry) -> Path:
    try:
        told = ask(folder, entry, {"ask": "status"}).get("history")
    except EngineError:  # it is just starting, or too busy
        told = None
    return Path(told) if told else Path(entry.state) / _NAME


def _kept() -> dict[str, Path]:
    """Return the histories in the state folders of applications, by the names of these."""
    found = sorted(state_folder("").glob(f"*/{_NAME}"))
    return {path.parent.name: path for path in found if path.is_file()}
