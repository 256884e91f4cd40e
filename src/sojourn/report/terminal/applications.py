"""The running applications, as a table and as JSON."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from sojourn.report.text import clock, processors_text
from sojourn.service.entry import Entry
from sojourn.service.status import Status

__all__ = ["Listed", "applications_view", "listed_json"]


@dataclass(frozen=True, slots=True)
class Listed:
    """A running application and its status; if it has none, *why_not*."""

    entry: Entry
    status: Status | None
    why_not: str = ""


def listed_json(listed: Listed) -> dict[str, Any]:
    """Return what `ps --json` prints for an application."""
    entry, status = listed.entry, listed.status
    silent = f"does not answer: {listed.why_not}"
    return {
        "name": entry.name,
        "pid": entry.pid,
        "address": entry.address,
        "started_at": entry.started_at,
        "state": entry.state,
        "allocation": {} if status is None else dict(status.allocation),
        "deciding": silent if status is None else status.deciding,
        "policy": "" if status is None else status.policy,
        "notices": [] if status is None else _notices(status),
    }


def applications_view(listed: Iterable[Listed]) -> Table:
    """Return a table with a row for each."""
    rows = [listed_json(each) for each in listed]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in ("application", "pid", "since", "processors", "loop", "policy", "state"):
        table.add_column(name, no_wrap=name not in ("policy", "state"))
    if any(row["notices"] for row in rows):
        table.add_column("warnings")
    for row in rows:
        cells = (row["name"], row["pid"], row["started_at"], processors_text(row["allocation"]),
                 row["deciding"], row["policy"], row["state"],
                 "; ".join(row["notices"]))  # fmt: skip
        table.add_row(*(Text(str(cell)) for cell in cells[: len(table.columns)]))
    return table


def _notices(status: Status) -> list[str]:
    """Return the warnings of an application."""
    health, away_s = status.health, status.health.no_broker_s
    away = "" if away_s is None else f"no broker has answered for {clock(away_s)}"
    known = (health.failure, away, *health.notices, status.warning)
    return [notice for notice in known if notice]
