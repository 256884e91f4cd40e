"""Dead letters: a table, and one with all that it has."""

from typing import TYPE_CHECKING

import typer
from rich.text import Text

from sojourn.report.json.listings import letter_json, utc_text
from sojourn.report.terminal.console import TABLE_WIDTH, table, wide_console
from sojourn.text import escaped

if TYPE_CHECKING:  # Kafka's client is optional
    from sojourn.spark.driver.kafka.dead_letters import DeadLetter

__all__ = ["print_letter", "print_letters"]

_COLUMNS = ("position", "at", "operator", "stream", "tries", "came from", "error")


def print_letters(letters: "list[DeadLetter]") -> None:
    """Print a table with a row for each."""
    made = table(*_COLUMNS, wrapped=["error"])
    for letter in letters:
        error = (letter.error.splitlines() or [""])[0]
        cells = (letter.position, utc_text(letter.at_s), letter.operator, letter.stream,
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
