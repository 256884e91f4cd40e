"""The policies and their options, as JSON and as tables."""

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from sojourn.act.options import kind_text, options, value_text
from sojourn.act.policy import policy
from sojourn.decide.target import Target
from sojourn.report.terminal.console import TABLE_WIDTH, table, wide_console

__all__ = ["policy_json", "show_policies"]

# The options of a policy do not depend on its target.
_ANY = Target("mean", 1.0)
_COLUMNS = ("option", "value", "default", "meaning")


def policy_json(name: str) -> dict[str, Any]:
    """Return what `policies --json` prints for a policy."""
    made = policy(name, target=_ANY)
    return {
        "name": name,
        "meaning": next(iter((type(made).__doc__ or "").strip().splitlines()), ""),
        "options": [
            {
                "name": option.name,
                "value": kind_text(option),
                "default": value_text(option, option.default),
                "meaning": option.meaning,
            }
            for option in options(made).values()
        ],
    }


def show_policies(described: Sequence[dict[str, Any]]) -> None:
    """Print each policy and a table of its options."""
    console = wide_console(TABLE_WIDTH)
    for number, each in enumerate(described):
        console.print(Text(f"\n{each['name']}" if number else each["name"], "bold"))
        console.print(Text(each["meaning"]))
        made = table(*_COLUMNS, wrapped=["value", "meaning"])
        for row in each["options"]:
            made.add_row(*map(Text, row.values()))
        if each["options"]:
            console.print(made)
