"""States of keys, as tables."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.text import Text

from sojourn.report.json.listings import key_json, summary_json
from sojourn.report.terminal.console import print_table, say, table
from sojourn.text import escaped

if TYPE_CHECKING:  # the store is optional
    from sojourn.spark.driver.state.key_states import KeyState, StateSummary
    from sojourn.spark.driver.state.state_form import StateForm

__all__ = ["print_key", "print_summaries", "print_summary"]

_COLUMNS = ("operator", "key", "fields", "keys", "bytes", "reminders", "batch", "committed")
_NUMBERS = ("keys", "bytes", "reminders", "batch")


def print_summaries(summaries: Mapping[str, "StateSummary"]) -> None:
    """Print a table with a row for each operator."""
    made = table(*_COLUMNS, right=_NUMBERS, wrapped=["fields"])
    for operator, summary in summaries.items():
        report = summary_json(summary)
        sizes = summary.keys, summary.bytes, summary.reminders
        cells = (operator, report["key"], report["fields"], *sizes)
        committed = (
            (summary.batch, report["committed"] or "unknown")
            if summary.batch >= 0
            else ("", "never")
        )
        made.add_row(*(Text(escaped(str(cell))) for cell in (*cells, *committed)))
    print_table(made)


def print_summary(operator: str, summary: "StateSummary") -> None:
    """Print how much an operator keeps, and the keys with the largest states."""
    print_summaries({operator: summary})
    if summary.largest:
        made = table("largest states", "bytes", right=["bytes"])
        for key, size in summary.largest:
            made.add_row(Text(escaped(_shown_key(key))), Text(str(size)))
        print_table(made)


def print_key(form: "StateForm", found: "KeyState") -> None:
    """Print the fields of a state, one to a line."""
    report = key_json(form, found)
    names = ("key", "bytes", *report["state"])
    wide = max(map(len, names)) + 2
    values = (_shown_key(found.key), found.bytes, *map(_json, report["state"].values()))
    for name, value in zip(names, values, strict=True):
        say(f"{escaped(name):<{wide}}{escaped(str(value))}")


def _shown_key(key: str) -> str:
    """Return a key as `sojourn state` takes it: a value, or a list of several.

    >>> _shown_key('["the"]'), _shown_key("[5]"), _shown_key('["a", 5]')
    ('the', '5', '["a", 5]')
    """
    values = json.loads(key)
    if len(values) > 1:
        return _json(values)
    return values[0] if isinstance(values[0], str) else _json(values[0])


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
