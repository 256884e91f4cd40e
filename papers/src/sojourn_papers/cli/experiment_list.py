"""The tables of `sojourn reproduce`, made from its JSON."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from sojourn.report.terminal.console import say, table


def show_listing(listing: Mapping[str, Any]) -> None:
    """Print the experiments and their claims."""
    made = table("experiment", "source", "claim", wrapped=["claim"])
    for one in listing["experiments"]:
        made.add_row(one["name"], one["source"], one["claim"])
    Console().print(made, highlight=False)


def show_verdicts(report: Mapping[str, Any], page: Path) -> None:
    """Print the verdict on each point of each claim, and the path of the *page*."""
    wrapped, done = ("claim", "verdict", "numbers"), report["experiments"]
    made = table("experiment", *wrapped, wrapped=wrapped)
    for one in done:
        name = one["name"]
        for verdict in one["verdicts"]:
            holds = "holds" if verdict["holds"] else "does not hold"
            made.add_row(name, verdict["point"], holds, verdict["numbers"])
            name = ""
        if one["caveat"]:
            made.add_row("", "", "", one["caveat"])
        made.add_section()
    Console().print(made, highlight=False)
    say(f"{sum(one['holds'] for one in done)} of {len(done)} hold")
    say(f"report  {page}")
