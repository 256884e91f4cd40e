"""The last allocation of an application, kept in its state folder."""

import json
from collections.abc import Mapping
from pathlib import Path

from sojourn.files.durable_file import write_durably

__all__ = ["keep_allocation", "last_allocation"]

_FILE = "allocation.json"


def keep_allocation(state: Path, allocation: Mapping[str, int]) -> None:
    """Save the processors for the next start. Raise `EngineError` if they cannot be written."""
    write_durably(state / _FILE, json.dumps(dict(allocation)).encode())


def last_allocation(state: Path) -> dict[str, int]:
    """Return the last processors of operators; unknown ones are left out."""
    try:
        told = json.loads((state / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # the loop soon finds out how many are needed
    return {
        name: processors
        for name, processors in (told.items() if isinstance(told, dict) else ())
        if isinstance(processors, int) and processors > 0
    }
