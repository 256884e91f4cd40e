"""The running applications, as a table and as JSON."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from sojourn.errors import EngineError
from sojourn.report.json.output import picked
from sojourn.report.terminal.console import table
from sojourn.report.text import clock, processors_text
from sojourn.service.client import ask_status
from sojourn.service.entry import Entry
from sojourn.service.status import Status

__all__ = ["application_json", "applications_view"]


def application_json(folder: Path, entry: Entry) -> dict[str, Any]:
    """Return what `ps --json` prints for an application, which is asked for its status."""
    try:
        status: Status | None = ask_status(folder, entry)
        silent = ""
    except EngineError as error:
        status, silent = None, f"does not answer: {error}"
    return {
        **picked(entry, "name", "pid", "address", "started_at", "state"),
        "allocation": {} if status is None else status.allocation,
        "deciding": silent if status is None else status.deciding,
        "policy": "" if status is None else status.policy,
        "notices": [] if status is None else _notices(status),
    }


def applications_view(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table with a row for each."""
    warned = ["warnings"] if any(row["notices"] for row in rows) else []
    heads = ("application", "pid", "since", "processors", "loop", "policy", "state", *warned)
    made = table(*heads, wrapped=["policy", "state", *warned])
    for row in rows:
        cells = (row["name"], row["pid"], row["started_at"], processors_text(row["allocation"]),
                 row["deciding"], row["policy"], row["state"],
                 "; ".join(row["notices"]))  # fmt: skip
        made.add_row(*(Text(str(cell)) for cell in cells[: len(heads)]))
    return made


def _notices(status: Status) -> list[str]:
    """Return the warnings of an application."""
    health, away_s = status.health, status.health.no_broker_s
    away = "" if away_s is None else f"no broker has answered for {clock(away_s)}"
    known = (health.failure, away, *health.notices, status.warning)
    return [notice for notice in known if notice]
