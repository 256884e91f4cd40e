"""`sojourn ps`: the applications that run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sojourn.cli.options.output import JsonOption
from sojourn.errors import EngineError
from sojourn.report.json.plans import print_json
from sojourn.report.terminal.history import clock, processors_text
from sojourn.service.client import ask
from sojourn.service.entry import Entry, running

__all__ = ["ps"]


def ps(json: JsonOption = False) -> None:
    """List the running applications of this user.

    Example: sojourn ps
    """
    listed = [_row(folder, entry) for folder, entry in running().values()]
    if json:
        print_json({"applications": listed})
        return
    if not listed:
        typer.echo("no application runs")
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in ("application", "pid", "since", "processors", "loop", "policy", "state"):
        table.add_column(name, no_wrap=name not in ("policy", "state"))
    if any(row["notices"] for row in listed):
        table.add_column("what to know")
    for row in listed:
        cells = (row["name"], row["pid"], row["started_at"], processors_text(row["allocation"]),
                 row["deciding"], row["policy"], row["state"],
                 "; ".join(row["notices"]))  # fmt: skip
        table.add_row(*(Text(str(cell)) for cell in cells[: len(table.columns)]))
    console = Console()
    if not console.is_terminal:
        console = Console(width=200)
    console.print(table)


def _row(folder: Path, entry: Entry) -> dict[str, Any]:
    try:
        told = ask(folder, entry, {"ask": "status"})
    except EngineError as error:
        told = {"deciding": f"does not answer: {error}"}
    return {
        "name": entry.name,
        "pid": entry.pid,
        "address": entry.address,
        "started_at": entry.started_at,
        "state": entry.state,
        "allocation": told.get("allocation", {}),
        "deciding": told.get("deciding", ""),
        "policy": told.get("policy", ""),
        "notices": _notices(told),
    }


def _notices(told: Mapping[str, Any]) -> list[str]:
    """Return what somebody should know; an earlier version may not tell all of it."""
    health = told.get("health") or {}
    away_s = health.get("no_broker_s")
    away = "" if away_s is None else f"no broker answers since {clock(away_s)}"
    known = (health.get("failure"), away, *(health.get("notices") or ()), told.get("warning"))
    return [notice for notice in known if notice]
