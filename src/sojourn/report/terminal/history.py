"""The history of a run on the terminal: turns as lines, and totals."""

from collections.abc import Sequence
from math import isfinite, isnan

from rich.text import Text

from sojourn.history import Run
from sojourn.report.terminal.console import print_table, say, table
from sojourn.report.text import clock, duration, number, processors_text
from sojourn.report.turns import Line, Totals

__all__ = ["show_lines", "show_run", "show_totals"]

_STYLES = dict.fromkeys(("up", "down", "move", "nodes", "note"), "bold")


def show_run(run: Run, number: int, of: int, source: str = "") -> None:
    """Print the heading of a run; *source* is the history file, if the user named none."""
    say(f"{run.topology.name} · run {number} of {of}", "bold")
    say(f"{run.policy}; started {run.started_at:%Y-%m-%d %H:%M:%S %Z}")
    say(f"from {source}\n" if source else "")


def show_lines(shown: Sequence[Line], before: int) -> None:
    """Print a table of lines; *before* is the number of earlier lines that are left out."""
    if before:
        say(f"{before} earlier lines; --last 0 shows all")
    if not shown:
        return
    statistic = shown[-1].statistic
    right = ("turns", "per s", statistic, "expected")
    made = table("time", *right, "processors", "done", "why", right=right, wrapped=["why"])
    for line in shown:
        other = f"{line.statistic} " if line.statistic != statistic else ""
        cells = (
            clock(line.at_s),
            str(line.number) if line.number > 1 else "",
            number(line.arrivals_per_s) if isfinite(line.arrivals_per_s) else "",
            _known(line.measured_s, other),
            _known(line.expected_s),
            processors_text(line.allocation),
            line.done,
            line.reason,
        )
        made.add_row(*map(Text, cells), style=_STYLES.get(line.done))
    print_table(made)


def show_totals(totals: Totals) -> None:
    unusable = f", {totals.unusable} of them unusable" if totals.unusable else ""
    say(f"turns       {totals.turns} in {clock(totals.lasted_s)}{unusable}")
    kinds = f": {totals.kinds}" if totals.kinds else ""
    say(f"changes     {totals.changes}{kinds}")
    if totals.changes:
        again = f", {totals.replayed} records replayed" if totals.replayed else ""
        say(f"their cost  {totals.pause_s:.4g} s of pauses in all{again}")
    head = "target"
    for target, judged in totals.judged.items():
        above = f"above it in {judged.above} of {judged.measured} turns"
        say(f"{head:<11} {target}: {above}")
        head = ""
    if not totals.all_errors:
        say("expected    no prediction could be compared with a measurement")
        return
    right = ("times", "mean error", "absolute error")
    made = table("predicted", *right, right=right)
    for name, error in totals.all_errors.items():
        made.add_row(Text(name), str(error.number), f"{error.mean:+.1%}", f"{error.spread:.1%}")
    say()
    print_table(made)


def _known(seconds: float, before: str = "") -> str:
    return "" if isnan(seconds) else f"{before}{duration(seconds)}"
