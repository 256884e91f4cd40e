"""The last allocation of an application, saved in its state folder for the next start."""

import json
from collections.abc import Mapping
from pathlib import Path

from sojourn.errors import EngineError
from sojourn.files.durable_file import write_durably

__all__ = ["LastAllocation"]

_FILE = "allocation.json"


class LastAllocation:
    """The last allocation of the application with the state folder *state*.

    *failure* is why the current allocation could not be saved; "" if it is saved.
    """

    def __init__(self, state: Path) -> None:
        self._file = state / _FILE
        self._saved: Mapping[str, int] | None = None
        self.failure = ""

    def read(self) -> dict[str, int]:
        """Return the allocation that was saved last, without invalid numbers."""
        try:
            told = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}  # not worth an error: the loop soon finds an allocation
        return {
            name: processors
            for name, processors in (told.items() if isinstance(told, dict) else ())
            if isinstance(processors, int) and processors > 0
        }

    def save(self, allocation: Mapping[str, int]) -> None:
        """Save *allocation* durably, if it has changed; set `failure` if that fails."""
        if allocation != self._saved:
            try:
                write_durably(self._file, json.dumps(dict(allocation)).encode())
            except EngineError as error:
                self.failure = str(error)
                return
            self._saved = dict(allocation)
        self.failure = ""
