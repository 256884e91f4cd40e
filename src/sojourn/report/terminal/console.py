"""The console, tables and lines of all terminal output."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import typer
from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from sojourn.text import escaped_lines, printable

# Without a terminal, lines are not wrapped, so that tools can search them.
_WIDEST = 10_000
# Tables with long text are wrapped at this width.
TABLE_WIDTH = 200
_RULED = 100
# A utilisation above this is shown in red.
FULL = 0.95


def wide_console(width: int = _WIDEST) -> Console:
    """Return a console as wide as the terminal, or *width* if there is no terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=width)


def say(text: str = "", style: str | None = None) -> None:
    """Print one line or several, without wrapping."""
    said = escaped_lines(text)
    Console().print(said, soft_wrap=True, highlight=False, markup=False, style=style)


def line(text: str, style: str = "") -> Text:
    """Return a line that is truncated at the width of the terminal."""
    return Text(printable(text), style=style, no_wrap=True, overflow="ellipsis")


def paragraph(text: str, style: str = "") -> Text:
    """Return a text that is wrapped at the width of the terminal."""
    return Text(printable(text), style=style, overflow="fold")


def busy_text(utilisation: float | None) -> Text:
    """Return a utilisation as a percentage, in red if it is nearly full."""
    if utilisation is None:
        return Text()
    return Text(f"{min(utilisation, 1.0):.0%}", style="red" if utilisation >= FULL else "")


def table(*names: str, right: Collection[str] = (), wrapped: Collection[str] = ()) -> Table:
    """Return an empty table; columns in *right* are right-aligned, those in *wrapped* wrap."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in names:
        made.add_column(
            name, justify="right" if name in right else "left", no_wrap=name not in wrapped
        )
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedTable:
    """A table that drops columns where the terminal is too narrow, so that no number is cut."""

    rows: Sequence[Mapping[str, Text]]
    """Cells by column head; there must be at least one row."""
    right: Collection[str]
    """Columns that are right-aligned."""
    wrapped: Collection[str]
    """Columns whose text wraps."""
    optional: Sequence[str]
    """Columns to drop, in this order."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        heads = list(self.rows[0])
        for dropped in (None, *self.optional):
            heads = [head for head in heads if head != dropped]
            made = table(*heads, right=self.right, wrapped=self.wrapped)
            for row in self.rows:
                made.add_row(*(row[head] for head in heads))
            whole = Measurement.get(console, options.update(width=_WIDEST), made).maximum
            if whole <= options.max_width:
                break
        yield made


def print_table(made: Table) -> None:
    """Print a table without trailing spaces; without a terminal, its rule is short."""
    console = wide_console()
    with console.capture() as captured:
        console.print(made)
    for text in captured.get().splitlines():
        ruled = text.strip("─") == "" and not console.is_terminal
        typer.echo(text[:_RULED] if ruled else text.rstrip())
    say()
