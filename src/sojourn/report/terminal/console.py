"""The console, tables and lines that all reports share."""

from collections.abc import Collection

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sojourn.escaped import escaped_lines
from sojourn.report.text import printable

__all__ = [
    "FULL", "TABLE_WIDTH", "busy_text", "line", "print_table", "say", "table", "wide_console",
]  # fmt: skip

# Without a terminal lines are not wrapped: tools search them.
_WIDEST = 10_000
# Tables with long text are wrapped at this width.
TABLE_WIDTH = 200
_RULED = 100
# A utilisation above this is shown in red.
FULL = 0.95


def wide_console(width: int = _WIDEST) -> Console:
    """Return a console as wide as the terminal; without a terminal, of *width*."""
    console = Console()
    return console if console.is_terminal else Console(width=width)


def say(text: str = "", style: str | None = None) -> None:
    """Print a line, or several, without wrapping."""
    said = escaped_lines(text)
    Console().print(said, soft_wrap=True, highlight=False, markup=False, style=style)


def line(text: str, style: str = "") -> Text:
    """Return a line that is cut at the width of the terminal."""
    return Text(printable(text), style=style, no_wrap=True, overflow="ellipsis")


def busy_text(utilisation: float | None) -> Text:
    """Return the part of the time that processors are busy, in red if they are full."""
    if utilisation is None:
        return Text()
    return Text(f"{min(utilisation, 1.0):.0%}", style="red" if utilisation >= FULL else "")


def table(*names: str, right: Collection[str] = (), wrapped: Collection[str] = ()) -> Table:
    """Return an empty table; the columns *right* have numbers, *wrapped* ones long text."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in names:
        made.add_column(
            name, justify="right" if name in right else "left", no_wrap=name not in wrapped
        )
    return made


def print_table(made: Table) -> None:
    """Print a table without trailing spaces, and with a short rule on a wide console."""
    console = wide_console()
    with console.capture() as captured:
        console.print(made)
    for text in captured.get().splitlines():
        ruled = text.strip("─") == "" and not console.is_terminal
        typer.echo(text[:_RULED] if ruled else text.rstrip())
    say()
