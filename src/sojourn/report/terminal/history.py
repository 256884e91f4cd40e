"""A history for people: turns as lines, and what they came to in all."""

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite, isnan

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sojourn.knowledge import PredictionError, allocation_text
from sojourn.report.terminal.tables import duration
from sojourn.report.turns import Line, Tally

__all__ = ["clock", "processors_text", "say", "show_lines", "show_tally"]

_RULED = 100
_MOST_OPERATORS = 8
_STYLES = {"up": "bold", "down": "bold", "move": "bold", "told": "bold"}
# What is no change, and no wish for one.
_NONE = ("hold", "told")


def show_lines(console: Console, shown: Sequence[Line]) -> None:
    """Print turns as a table, one line each."""
    statistic = shown[-1].statistic
    table = _table(
        left=["time"],
        right=["turns", "per s", statistic, "expected"],
        after=["processors", "done"],
    )
    table.add_column("why")
    for line in shown:
        other = f"{line.statistic} " if line.statistic != statistic else ""
        cells = (
            clock(line.at_s),
            str(line.number) if line.number > 1 else "",
            _number(line.arrivals_per_s),
            _known(line.measured_s, other),
            _known(line.expected_s),
            processors_text(line.allocation),
            line.done,
            line.reason,
        )
        table.add_row(*map(Text, cells), style=_STYLES.get(line.done))
    _print(console, table)


def show_tally(console: Console, tally: Tally) -> None:
    """Print what turns came to in all."""
    unusable = f", {tally.unusable} of them not usable" if tally.unusable else ""
    say(console, f"turns       {tally.turns} in {clock(tally.lasted_s)}{unusable}")
    kinds = ", ".join(f"{n} {done}" for done, n in tally.done.items() if done not in _NONE)
    say(console, f"changes     {tally.changes}{f': {kinds}' if kinds else ''}")
    if tally.changes:
        again = f", {tally.replayed} records came again" if tally.replayed else ""
        say(console, f"their cost  paused for {tally.pause_s:.4g} s in all{again}")
    for number, (target, judged) in enumerate(tally.judged.items()):
        above = f"above it in {judged.above} of {judged.measured} turns"
        say(console, f"{'' if number else 'target':<11} {target}: {above}")
    if tally.error is None and not tally.errors:
        say(console, "expected    nothing that could be compared with what then happened")
        return
    table = _table(left=["predicted"], right=["times", "mean error", "off by"])
    whole = {"latency": tally.error} if tally.error else {}
    for name, error in {**whole, **tally.errors}.items():
        table.add_row(Text(name), *_error(error))
    say(console)
    _print(console, table)


def _error(error: PredictionError) -> tuple[str, str, str]:
    return str(error.number), f"{error.mean:+.1%}", f"{error.spread:.1%}"


def _table(left: Iterable[str], right: Iterable[str], after: Iterable[str] = ()) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in left:
        table.add_column(name, no_wrap=True)
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    for name in after:
        table.add_column(name, no_wrap=True)
    return table


def _print(console: Console, table: Table) -> None:
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        ruled = line.strip("─") == "" and not console.is_terminal
        typer.echo(line[:_RULED] if ruled else line.rstrip())
    say(console)


def say(console: Console, text: str = "", style: str | None = None) -> None:
    """Print a line as it is, however long."""
    console.print(text, soft_wrap=True, highlight=False, markup=False, style=style)


def processors_text(allocation: Mapping[str, int]) -> str:
    """Return those of each operator; of many operators, all of them."""
    if len(allocation) > _MOST_OPERATORS:
        return str(sum(allocation.values()))
    return allocation_text(allocation)


def clock(seconds: float) -> str:
    """Return the time since the engine's clock was 0.

    >>> clock(3725), clock(2 * 86400 + 5)
    ('1:02:05', '48:00:05')
    """
    if not isfinite(seconds):
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def _known(seconds: float, before: str = "") -> str:
    return "" if isnan(seconds) else f"{before}{duration(seconds)}"


def _number(value: float) -> str:
    return f"{value:.4g}" if isfinite(value) else ""
