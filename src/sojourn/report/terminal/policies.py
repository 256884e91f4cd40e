"""The policies and their options, as tables."""

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from sojourn.report.terminal.console import TABLE_WIDTH, table, wide_console

__all__ = ["show_policies"]

_COLUMNS = ("option", "value", "default", "meaning")


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
