"""States of keys, dead letters and policies on the terminal."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from sojourn.report.json.listings import key_json, letter_json, summary_json, utc_text
from sojourn.report.terminal.console import TABLE_WIDTH, print_table, say, table, wide_console
from sojourn.text import escaped

if TYPE_CHECKING:  # Kafka's client and the store are optional
    from sojourn.spark.driver.kafka.dead_letters import DeadLetter
    from sojourn.spark.driver.state.key_states import KeyState, StateSummary
    from sojourn.spark.driver.state.state_form import StateForm

_NUMBERS = ("keys", "bytes", "reminders", "batch")


def print_summaries(summaries: Mapping[str, "StateSummary"]) -> None:
    """Print the size of the state of each operator as a table."""
    heads = ("operator", "key", "fields", *_NUMBERS, "committed")
    made = table(*heads, right=_NUMBERS, wrapped=["fields"])
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
    """Print the size of an operator's state, and the keys with the largest states."""
    print_summaries({operator: summary})
    if summary.largest:
        made = table("largest states", "bytes", right=["bytes"])
        for key, size in summary.largest:
            made.add_row(Text(escaped(_shown_key(key))), Text(str(size)))
        print_table(made)


def print_key(form: "StateForm", found: "KeyState") -> None:
    """Print the fields of a key's state, one per line."""
    report = key_json(form, found)
    names = ("key", "bytes", *report["state"])
    wide = max(map(len, names)) + 2
    values = (_shown_key(found.key), found.bytes, *map(_json, report["state"].values()))
    for name, value in zip(names, values, strict=True):
        say(f"{escaped(name):<{wide}}{escaped(str(value))}")


def _shown_key(key: str) -> str:
    """Return a key in the form that `sojourn state` accepts: a value, or a list of values.

    >>> _shown_key('["the"]'), _shown_key("[5]"), _shown_key('["a", 5]')
    ('the', '5', '["a", 5]')
    """
    values = json.loads(key)
    if len(values) > 1:
        return _json(values)
    return values[0] if isinstance(values[0], str) else _json(values[0])


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def print_letters(letters: "list[DeadLetter]") -> None:
    """Print dead letters as a table, with the first line of each error."""
    heads = ("position", "at", "operator", "stream", "tries", "came from", "error")
    made = table(*heads, wrapped=["error"])
    for letter in letters:
        error = (letter.error.splitlines() or [""])[0]
        cells = (letter.position, utc_text(letter.at_s), letter.operator, letter.stream,
                 letter.tries, letter.came_from, error)  # fmt: skip
        made.add_row(*(Text(escaped(str(cell))) for cell in cells))
    wide_console(TABLE_WIDTH).print(made)


def print_letter(letter: "DeadLetter") -> None:
    """Print a dead letter with its traceback, headers and payload."""
    report = letter_json(letter)
    for name in ("position", "at", "operator", "stream", "tries", "came_from", "record", "key"):
        typer.echo(f"{name.replace('_', ' '):<10} {escaped(str(report[name]))}")
    for name, value in report["headers"].items():
        typer.echo(f"{'header':<10} {escaped(f'{name}: {value}')}")
    typer.echo(f"{'error':<10} {escaped(letter.error)}")
    for line in letter.traceback.splitlines():
        typer.echo(f"    {escaped(line)}")
    cut = " (truncated)" if letter.cut else ""
    typer.echo(f"{'payload':<10} {escaped(str(report['payload']))}{cut}")


def show_policies(described: Sequence[dict[str, Any]]) -> None:
    """Print each policy and a table of its options."""
    console = wide_console(TABLE_WIDTH)
    for number, each in enumerate(described):
        console.print(Text(f"\n{each['name']}" if number else each["name"], "bold"))
        console.print(Text(each["meaning"]))
        made = table("option", "value", "default", "meaning", wrapped=["value", "meaning"])
        for row in each["options"]:
            made.add_row(*map(Text, row.values()))
        if each["options"]:
            console.print(made)
