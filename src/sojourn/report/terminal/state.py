"""States of keys, as tables and as JSON."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.text import Text

from sojourn.report.terminal.console import print_table, say, table
from sojourn.text import escaped

if TYPE_CHECKING:  # the store is optional
    from sojourn.spark.driver.state.key_states import KeyState, StateSummary
    from sojourn.spark.driver.state.state_form import StateForm

__all__ = [
    "key_json", "print_key", "print_summaries", "print_summary",
    "summary_json",
]  # fmt: skip

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


def summary_json(summary: "StateSummary") -> dict[str, Any]:
    """Return how much an operator keeps as JSON."""
    at_s = summary.committed_s
    return {
        "key": ", ".join(map(str, summary.form.key)),
        "fields": str(summary.form.fields),
        "keys": summary.keys,
        "bytes": summary.bytes,
        "reminders": summary.reminders,
        "batch": summary.batch if summary.batch >= 0 else None,
        "committed": at_s and datetime.fromtimestamp(at_s, UTC).isoformat(timespec="seconds"),
        "largest": [{"key": json.loads(key), "bytes": size} for key, size in summary.largest],
    }


def key_json(form: "StateForm", found: "KeyState") -> dict[str, Any]:
    """Return the state of a key as JSON."""
    from sojourn.spark.driver.state.state_form import json_values  # noqa: PLC0415 - optional

    return {
        "key": json.loads(found.key),
        "bytes": found.bytes,
        "state": json_values(form.fields.schema, found.values),
    }


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
