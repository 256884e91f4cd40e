"""The tables of `sojourn reproduce`, made from its JSON."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

__all__ = ["show_listing", "show_verdicts"]


def show_listing(listing: Mapping[str, Any], console: Console) -> None:
    """Print the experiments and their claims."""
    table = _table("experiment", "source", "claim")
    for one in listing["experiments"]:
        table.add_row(one["name"], one["source"], one["claim"])
    console.print(table, highlight=False)


def show_verdicts(report: Mapping[str, Any], page: Path, console: Console) -> None:
    """Print the verdict on each point of each claim, and the path of the *page*."""
    table, done = _table("experiment", "claim", "verdict", "numbers"), report["experiments"]
    for one in done:
        name = one["name"]
        for verdict in one["verdicts"]:
            holds = "holds" if verdict["holds"] else "does not hold"
            table.add_row(name, verdict["point"], holds, verdict["numbers"])
            name = ""
        if one["caveat"]:
            table.add_row("", "", "", one["caveat"])
        table.add_section()
    console.print(table, highlight=False)
    held = sum(one["holds"] for one in done)
    console.print(f"{held} of {len(done)} hold", highlight=False)
    console.print(f"report  {page}", soft_wrap=True, highlight=False)


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=column in {"experiment", "source"})
    return table
