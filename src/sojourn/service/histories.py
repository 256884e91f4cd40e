"""Finding the history of an application."""

from pathlib import Path

from sojourn.errors import EngineError
from sojourn.service.client import ask
from sojourn.service.entry import only, running
from sojourn.service.state_folder import find_in_state

__all__ = ["find_history"]


def find_history(app: str | None = None) -> Path:
    """Return the history of *app*; without a name, of the application that runs or ran last.

    Raise `BadInput` if there is none, or several run.
    """
    runs = running()
    if runs and (app is None or app in runs):
        folder, entry = only(runs) if app is None else runs[app]
        try:
            path = ask(folder, entry, {"ask": "status"}).get("history")
        except EngineError:  # it is starting, or busy
            path = None
        return Path(path) if path else Path(entry.state) / "history"
    return find_in_state("history", app)
