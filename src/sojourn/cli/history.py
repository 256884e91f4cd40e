"""`sojourn history`: measurements and decisions of a run, with reasons and effects."""

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from sojourn.cli.options import JsonOption, PlotOption
from sojourn.cli.options.address import AnyAppOption, app_hint
from sojourn.errors import BadInput
from sojourn.history import read_episodes, read_run, read_runs
from sojourn.knowledge import Episode
from sojourn.report.json.output import print_json
from sojourn.report.json.runs import history_report
from sojourn.report.plot.history import draw_history
from sojourn.report.terminal.progress import working
from sojourn.report.terminal.runs import show_lines, show_run, show_slices, show_totals
from sojourn.report.turns import Line, Totals, lines, turns
from sojourn.service.state_folder import find_history

_OFTEN = 100


def history(
    file: Annotated[
        Path | None,
        Argument(
            metavar="FILE",
            help="History file (default: that of the application).",
        ),
    ] = None,
    app: AnyAppOption = None,
    run: Annotated[int | None, Option(help="Number of the run (default: the last).")] = None,
    last: Annotated[int, Option(min=0, help="Lines to show; 0 for all.")] = 50,
    every: Annotated[
        bool, Option("--all", help="Print one line per turn, without folding.")
    ] = False,
    decisions: Annotated[
        bool, Option("--decisions", help="Leave out the turns that change nothing.")
    ] = False,
    plot: PlotOption = None,
    html: Annotated[
        Path | None, Option(metavar="OUT.html", help="Write the whole run as an HTML page.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show what a loop did, turn by turn, and why.

    Consecutive turns that change nothing for the same kind of reason are one line. The loop
    may still be running.

    Examples: sojourn history --app vld · sojourn history vld.history --last 20 --plot vld.png
    """
    if file is not None and app is not None:
        raise BadInput(f"{file} and --app {app} are both given; write one of them")
    if file is not None and not file.exists() and (hint := app_hint(str(file))):
        raise BadInput(f"there is no file {file}{hint}")
    found, file = file is None, find_history(app) if file is None else file
    number, begun = read_run(file, run)
    totals = Totals(begun.topology, begun.target)
    statistic = begun.target.statistic if begun.target else "mean"
    with working(f"reading {file}") as far:

        def episodes(what: str = "") -> Iterator[Episode]:
            for read, episode in enumerate(read_episodes(file, run=number), 1):
                if read % _OFTEN == 0:
                    far(f"{read} turns {what}".rstrip())
                yield episode

        if plot is not None:
            title = f"{begun.topology.name}, run {number}: {begun.policy}"
            draw_history(episodes("for the plot"), plot, begun.target, title)
        if html is not None:
            from sojourn.report.page.page import write_page  # noqa: PLC0415 - slow to import

            write_page(episodes("for the page"), begun, html, number=number)
        passing = totals.counting(turns(episodes(), statistic))
        report = history_report(number, begun, passing, totals) if json else {}
        kept = (turn for turn in passing if not decisions or turn.done != "hold")
        shown, before = deque[Line](maxlen=last or None), 0
        for line in lines(kept, every=every):
            before += len(shown) == shown.maxlen
            shown.append(line)
    if json:
        print_json({"file": str(file), **report})
        return
    show_run(begun, number, max(read_runs(file)), str(file) if found else "")
    show_lines(shown, before)
    show_slices(totals)
    show_totals(totals)
