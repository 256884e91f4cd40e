"""The console, and what tables and lines on it have in common."""

from collections.abc import Iterable

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sojourn.report.text import printable

__all__ = ["line", "print_table", "say", "table", "wide_console"]

# Where there is no terminal there is no width to keep to, and one line each is best to search.
_WIDEST = 10_000
_RULED = 100


def wide_console() -> Console:
    """Return the console: as wide as the terminal, without one as wide as any line."""
    console = Console()
    return console if console.is_terminal else Console(width=_WIDEST)


def say(console: Console, text: str = "", style: str | None = None) -> None:
    """Print a line as it is, however long."""
    console.print(text, soft_wrap=True, highlight=False, markup=False, style=style)


def line(text: str, style: str = "") -> Text:
    """Return a line that ends where the terminal does."""
    return Text(printable(text), style=style, no_wrap=True, overflow="ellipsis")


def table(left: Iterable[str], right: Iterable[str] = (), after: Iterable[str] = ()) -> Table:
    """Return an empty table: numbers are to the right, and words to either side of them."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in left:
        made.add_column(name, no_wrap=True)
    for name in right:
        made.add_column(name, justify="right", no_wrap=True)
    for name in after:
        made.add_column(name, no_wrap=True)
    return made


def print_table(console: Console, made: Table) -> None:
    """Print a table without the spaces and rules that would fill a wide console."""
    with console.capture() as captured:
        console.print(made)
    for text in captured.get().splitlines():
        ruled = text.strip("─") == "" and not console.is_terminal
        typer.echo(text[:_RULED] if ruled else text.rstrip())
    say(console)
