"""Dead letters, as a table and as JSON."""

import base64
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from sojourn.report.json.output import picked
from sojourn.report.terminal.console import TABLE_WIDTH, table, wide_console
from sojourn.text import escaped

if TYPE_CHECKING:  # Kafka's client is optional
    from sojourn.spark.driver.kafka.dead_letters import DeadLetter

__all__ = ["letter_json", "print_letter", "print_letters"]

_COLUMNS = ("position", "at", "operator", "stream", "tries", "came from", "error")


def print_letters(letters: "list[DeadLetter]") -> None:
    """Print a table with a row for each."""
    made = table(*_COLUMNS, wrapped=["error"])
    for letter in letters:
        error = (letter.error.splitlines() or [""])[0]
        cells = (letter.position, _time(letter.at_s), letter.operator, letter.stream,
                 letter.tries, letter.came_from, error)  # fmt: skip
        made.add_row(*(Text(escaped(str(cell))) for cell in cells))
    wide_console(TABLE_WIDTH).print(made)


def print_letter(letter: "DeadLetter") -> None:
    """Print one with its traceback, headers and payload."""
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


def letter_json(letter: "DeadLetter") -> dict[str, Any]:
    """Return one as JSON."""
    return {
        "position": letter.position,
        "at": _time(letter.at_s),
        **picked(letter, "operator", "stream", "tries", "came_from", "record"),
        **picked(letter, "error", "traceback"),
        "key": _content(letter.key),
        "payload": _content(letter.value),
        "cut": letter.cut,
        "headers": {
            name: _content(value)
            for name, value in letter.headers
            if name not in ("sojourn-error", "sojourn-traceback")
        },
    }


def _content(value: bytes | None) -> str | None:
    """Return UTF-8 text as it is, anything else in base64."""
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"base64:{base64.b64encode(value).decode()}"


def _time(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="seconds")
