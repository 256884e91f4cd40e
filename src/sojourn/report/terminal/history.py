"""A history on the terminal: turns as lines, and a summary."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, isnan

from rich.console import Console
from rich.text import Text

from sojourn.history import Run
from sojourn.knowledge import PredictionError
from sojourn.report.tally import Tally
from sojourn.report.terminal.console import print_table, say, table
from sojourn.report.text import clock, duration, number, processors_text
from sojourn.report.turns import Line

__all__ = ["Shown", "show_history", "show_lines", "show_tally"]

_STYLES = {"up": "bold", "down": "bold", "move": "bold", "told": "bold"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What is shown of a history: the run, its last lines, and a summary."""

    run: Run
    number: int
    of: int
    lines: Sequence[Line]
    before: int
    tally: Tally


def show_history(shown: Shown, console: Console, source: str = "") -> None:
    """Print the history; *source* is its file, if the user did not name it."""
    run = shown.run
    say(console, f"{run.topology.name} · run {shown.number} of {shown.of}", "bold")
    say(console, f"{run.policy}; started {run.started_at:%Y-%m-%d %H:%M:%S %Z}")
    say(console, f"from {source}\n" if source else "")
    if shown.before:
        say(console, f"{shown.before} earlier lines; --last 0 shows all")
    if shown.lines:
        show_lines(console, shown.lines)
    show_tally(console, shown.tally)


def show_lines(console: Console, shown: Sequence[Line]) -> None:
    """Print a table of lines."""
    statistic = shown[-1].statistic
    made = table(
        left=["time"],
        right=["turns", "per s", statistic, "expected"],
        after=["processors", "done"],
    )
    made.add_column("why")
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
    print_table(console, made)


def show_tally(console: Console, tally: Tally) -> None:
    """Print the summary of turns."""
    unusable = f", {tally.unusable} of them unusable" if tally.unusable else ""
    say(console, f"turns       {tally.turns} in {clock(tally.lasted_s)}{unusable}")
    kinds = f": {tally.kinds}" if tally.kinds else ""
    say(console, f"changes     {tally.changes}{kinds}")
    if tally.changes:
        again = f", {tally.replayed} records replayed" if tally.replayed else ""
        say(console, f"their cost  {tally.pause_s:.4g} s of pauses in all{again}")
    head = "target"
    for target, judged in tally.judged.items():
        above = f"above it in {judged.above} of {judged.measured} turns"
        say(console, f"{head:<11} {target}: {above}")
        head = ""
    if not tally.all_errors:
        say(console, "expected    no prediction could be compared with a measurement")
        return
    made = table(left=["predicted"], right=["times", "mean error", "absolute error"])
    for name, error in tally.all_errors.items():
        made.add_row(Text(name), *_error(error))
    say(console)
    print_table(console, made)


def _error(error: PredictionError) -> tuple[str, str, str]:
    return str(error.number), f"{error.mean:+.1%}", f"{error.spread:.1%}"


def _known(seconds: float, before: str = "") -> str:
    return "" if isnan(seconds) else f"{before}{duration(seconds)}"
