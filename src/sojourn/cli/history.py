"""`sojourn history`: what a loop saw, what it did about it and why, and what came of it."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite, isnan
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sojourn.cli.completion import histories
from sojourn.cli.history_found import find_history
from sojourn.cli.history_report import history_report
from sojourn.cli.options import JsonOption
from sojourn.cli.report import print_json
from sojourn.cli.show import duration
from sojourn.cli.turns import Line, Tally, lines, turns
from sojourn.cli.working import working
from sojourn.errors import BadInput
from sojourn.knowledge import Episode, PredictionError, allocation_text
from sojourn.knowledge_file import read_episodes, read_run, read_runs

__all__ = ["clock", "history", "processors_text", "show_tally"]

# Where there is no terminal there is no width to keep to, and one line each is best to search.
_WIDEST, _RULED = 10_000, 100
_MOST_OPERATORS, _OFTEN = 8, 100
_STYLES = {"up": "bold", "down": "bold", "move": "bold", "told": "bold"}
# What is no change, and no wish for one.
_NONE = ("hold", "told")


def history(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="The history: a file that a loop wrote. Without it, that of the application "
            "that runs, or ran last.",
        ),
    ] = None,
    app: Annotated[
        str | None,
        typer.Option(
            "--app",
            metavar="NAME",
            help="That of this application, running or not.",
            autocompletion=histories,
        ),
    ] = None,
    run: Annotated[int | None, typer.Option(help="Which run; the last without it.")] = None,
    last: Annotated[int, typer.Option(min=0, help="Lines to show; 0 for all.")] = 50,
    every: Annotated[
        bool, typer.Option("--all", help="Give every turn its own line: fold nothing.")
    ] = False,
    decisions: Annotated[
        bool, typer.Option("--decisions", help="Leave out the turns that change nothing.")
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="OUT.png", help="Draw the whole run: PNG, SVG or PDF."),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="OUT.html", help="Write the whole run as a page for a browser."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show what a loop did, turn by turn, and what came of it.

    Turns that follow each other and change nothing for the same kind of reason are one line.
    The loop may still be writing to the file.

    Examples: sojourn history · sojourn history vld.history --last 20 --plot vld.png
    """
    if file is not None and app is not None:
        raise BadInput(f"{file} and --app {app} are both given; write one of them")
    found, file = file is None, find_history(app) if file is None else file
    number, begun = read_run(file, run)
    tally = Tally(begun.topology, begun.target)
    statistic = begun.target.statistic if begun.target else "mean"
    with working(f"reading {file}") as far:
        if plot is not None:
            from sojourn.cli.draw_history import draw_history  # noqa: PLC0415 - slow to import

            title = f"{begun.topology.name}, run {number}: {begun.policy}"
            drawn = _counted(read_episodes(file, run=number), far, "for the picture")
            draw_history(drawn, plot, begun.target, title)
        if html is not None:
            from sojourn.cli.page import write_page  # noqa: PLC0415 - it needs our clock

            drawn = _counted(read_episodes(file, run=number), far, "for the page")
            write_page(drawn, begun, html, number=number)
        told = _counted(read_episodes(file, run=number), far)
        passing = tally.counting(turns(told, statistic))
        kept = (turn for turn in passing if not decisions or turn.done != "hold")
        report = history_report(number, begun, passing, tally) if json else {}
        shown, before = _last(lines(kept, every=every), last)
    if json:
        print_json({"file": str(file), **report})
        return
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDEST)
    _say(console, f"{begun.topology.name} · run {number} of {max(read_runs(file))}", "bold")
    _say(console, f"{begun.policy}; started {begun.started_at:%Y-%m-%d %H:%M:%S %Z}")
    _say(console, f"from {file}\n" if found else "")
    if before:
        _say(console, f"{before} lines before these; --last 0 shows all")
    if shown:
        _show_lines(console, shown)
    show_tally(console, tally)


def _counted(
    episodes: Iterable[Episode], far: Callable[[str], None], what: str = ""
) -> Iterator[Episode]:
    for number, episode in enumerate(episodes, 1):
        if number % _OFTEN == 0:
            far(f"{number} turns {what}".rstrip())
        yield episode


def _last(every: Iterable[Line], last: int) -> tuple[Sequence[Line], int]:
    """Return the last lines, and how many there are before them."""
    shown: deque[Line] = deque(maxlen=last or None)
    number = 0
    for line in every:
        shown.append(line)
        number += 1
    return shown, number - len(shown)


def _show_lines(console: Console, shown: Sequence[Line]) -> None:
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
    _say(console, f"turns       {tally.turns} in {clock(tally.lasted_s)}{unusable}")
    kinds = ", ".join(f"{n} {done}" for done, n in tally.done.items() if done not in _NONE)
    _say(console, f"changes     {tally.changes}{f': {kinds}' if kinds else ''}")
    if tally.changes:
        again = f", {tally.replayed} records came again" if tally.replayed else ""
        _say(console, f"their cost  paused for {tally.pause_s:.4g} s in all{again}")
    for number, (target, judged) in enumerate(tally.judged.items()):
        above = f"above it in {judged.above} of {judged.measured} turns"
        _say(console, f"{'' if number else 'target':<11} {target}: {above}")
    if tally.error is None and not tally.errors:
        _say(console, "expected    nothing that could be compared with what then happened")
        return
    table = _table(left=["predicted"], right=["times", "mean error", "off by"])
    whole = {"latency": tally.error} if tally.error else {}
    for name, error in {**whole, **tally.errors}.items():
        table.add_row(Text(name), *_error(error))
    _say(console)
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
    _say(console)


def _say(console: Console, text: str = "", style: str | None = None) -> None:
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
