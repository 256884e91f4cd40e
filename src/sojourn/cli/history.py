"""`sojourn history`: what a loop measured, what it did and why, and the effect."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from sojourn.cli.options.completion import histories
from sojourn.cli.options.output import JsonOption
from sojourn.errors import BadInput
from sojourn.history import read_episodes, read_run, read_runs
from sojourn.knowledge import Episode
from sojourn.report.json.history import history_report
from sojourn.report.output import hand_over
from sojourn.report.plot.history import draw_history
from sojourn.report.tally import Tally
from sojourn.report.terminal.history import Shown, show_history
from sojourn.report.terminal.progress import working
from sojourn.report.turns import Line, lines, turns
from sojourn.service.histories import find_history

__all__ = ["history"]

_OFTEN = 100


def history(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="History file (default: that of the application that runs, or ran last).",
        ),
    ] = None,
    app: Annotated[
        str | None,
        typer.Option(
            "--app",
            metavar="NAME",
            help="The history of this application, running or not.",
            autocompletion=histories,
        ),
    ] = None,
    run: Annotated[
        int | None, typer.Option(help="Number of the run (default: the last).")
    ] = None,
    last: Annotated[int, typer.Option(min=0, help="Lines to show; 0 for all.")] = 50,
    every: Annotated[
        bool, typer.Option("--all", help="Print one line per turn, without folding.")
    ] = False,
    decisions: Annotated[
        bool, typer.Option("--decisions", help="Leave out the turns that change nothing.")
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="OUT.png", help="Plot the whole run as PNG, SVG or PDF."),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="OUT.html", help="Write the whole run as an HTML page."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show what a loop did, turn by turn, and why.

    Consecutive turns that change nothing for the same kind of reason are one line. The loop
    may still be running.

    Examples: sojourn history · sojourn history vld.history --last 20 --plot vld.png
    """
    if file is not None and app is not None:
        raise BadInput(f"{file} and --app {app} are both given; write one of them")
    found, file = file is None, find_history(app) if file is None else file
    number, begun = read_run(file, run)
    tally = Tally(begun.topology, begun.target)
    statistic = begun.target.statistic if begun.target else "mean"
    with working(f"reading {file}") as far:

        def episodes(what: str = "") -> Iterator[Episode]:
            return _counted(read_episodes(file, run=number), far, what)

        if plot is not None:
            title = f"{begun.topology.name}, run {number}: {begun.policy}"
            draw_history(episodes("for the plot"), plot, begun.target, title)
        if html is not None:
            from sojourn.report.page.page import write_page  # noqa: PLC0415 - slow to import

            write_page(episodes("for the page"), begun, html, number=number)
        passing = tally.counting(turns(episodes(), statistic))
        kept = (turn for turn in passing if not decisions or turn.done != "hold")
        report = history_report(number, begun, passing, tally) if json else {}
        shown, before = _last(lines(kept, every=every), last)
    told = Shown(
        run=begun,
        number=number,
        of=max(read_runs(file)),
        lines=shown,
        before=before,
        tally=tally,
    )
    hand_over(
        as_json=json,
        report=lambda: {"file": str(file), **report},
        show=lambda console: show_history(told, console, str(file) if found else ""),
        wide=True,
    )


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
