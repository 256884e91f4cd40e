"""The live view of a loop in a terminal: operators, charts and the last decisions."""

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from math import isfinite
from statistics import fmean

from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from sojourn.decide.target import Target
from sojourn.knowledge import Episode
from sojourn.report.run_panels import latency, load, total
from sojourn.report.series import Course
from sojourn.report.terminal.chart import draw_panel
from sojourn.report.terminal.console import FULL, busy_text, line, table
from sojourn.report.text import clock, duration, number, processors_text
from sojourn.report.turns import Turn, failed_text
from sojourn.topology import Topology

_MOST_OPERATORS, _MOST_CHANGES = 8, 5
_LABEL, _LEAST_WIDTH, _WIDEST_BAR = 18, 20, 24
# Terminals with at least this many lines have higher charts.
_HIGH = 38
_NUMBERS = ("processors", "busy", "waiting")
_LATELY = 6
# The minimum time range of charts of a loop without an end.
_SHORTEST_S = 60.0


class View:
    """The live view of a loop, updated as turns are added.

    *lasts_s* is the length of the run; if *rolling*, the run has no end, and the charts show
    its last *lasts_s* seconds. *note* is printed beside the time.
    """

    def __init__(
        self, topology: Topology, target: Target, lasts_s: float, *, rolling: bool = False
    ) -> None:
        self._topology, self._target, self._lasts_s = topology, target, lasts_s
        self._rolling, self.note = rolling, ""
        self._course = Course(target, window_s=lasts_s if rolling else None)
        self._changes: deque[Text] = deque(maxlen=_MOST_CHANGES)
        self._lately: deque[Turn] = deque(maxlen=_LATELY)

    def add(self, turn: Turn, *, told: bool) -> None:
        """Add the next turn; if *told*, list it among the changes and recommendations."""
        if told:
            self._changes.append(change_text(turn.episode))
        self._course.add(turn)
        if turn.episode.looked:  # an order by hand has no observation
            self._lately.append(turn)

    def aim_at(self, target: Target) -> None:
        """Replace the target."""
        self._course.aim_at(target)
        self._target = target

    @property
    def _begin_s(self) -> float:
        """The time at the left edge of the charts."""
        return max(0.0, self._at_s - self._lasts_s) if self._rolling else 0.0

    @property
    def _span_s(self) -> float:
        """The time range of the charts."""
        if not self._rolling:
            return self._lasts_s
        return min(self._lasts_s, max(_SHORTEST_S, self._at_s))

    @property
    def _last(self) -> Episode | None:
        return self._lately[-1].episode if self._lately else None

    @property
    def _at_s(self) -> float:
        return self._last.observation.at_s if self._last else 0.0

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """Draw the view at the width of the terminal."""
        until = "" if self._rolling else f" of {clock(self._lasts_s)}"
        yield line(f"{clock(self._at_s)}{until}{f'  {self.note}' if self.note else ''}", "bold")
        yield Text()
        yield self._operators()
        yield Text()
        width = max(_LEAST_WIDTH, options.max_width - _LABEL - 1)
        yield self._charts(width, 4 if console.size.height >= _HIGH else 2)
        yield Text()
        if self._last is not None:
            yield line(f"now    {self._last.decision.reason}")
        yield from self._changes

    def _operators(self) -> Table:
        made = table("operator", *_NUMBERS, "", "sends to", right=_NUMBERS)
        names = list(self._topology.operator)
        if self._last is not None and len(names) > _MOST_OPERATORS:
            most = self._last.running.allocation
            names = sorted(names, key=lambda name: -most[name])
        for name in names[:_MOST_OPERATORS]:
            made.add_row(*self._cells(name))
        if len(names) > _MOST_OPERATORS:
            made.add_row(Text(f"and {len(names) - _MOST_OPERATORS} more"))
        return made

    def _cells(self, name: str) -> list[Text]:
        sends = Text(", ".join(self._topology.operator[name].emits))
        if self._last is None:
            return [Text(name), Text(), Text(), Text(), Text(), sends]
        processors = self._last.running.allocation[name]
        seen = self._last.observation.operators.get(name)
        busy = self._busy(name)
        return [
            Text(name),
            Text(str(processors)),
            busy_text(busy),
            Text("" if seen is None else str(seen.backlog)),
            _bar(processors, busy),
            sends,
        ]

    def _busy(self, name: str) -> float | None:
        """Return the mean utilisation of the last turns with the current number of processors.

        One turn times too few records for a stable value.
        """
        known: list[tuple[int, float]] = []
        for turn in reversed(self._lately):
            operator = turn.episode.observation.operators.get(name)
            if operator is None or operator.utilisation is None:
                continue
            if known and operator.running != known[0][0]:
                break
            known.append((operator.running, operator.utilisation))
        return min(1.0, fmean(part for _, part in known)) if known else None

    def _charts(self, width: int, height: int) -> Table:
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_column(width=_LABEL, no_wrap=True)
        grid.add_column(no_wrap=True)
        target = self._target
        levels = {str(target): target.seconds}
        for label, panel, said in (
            ("load", load(self._course), lambda value: f"{number(value)} per s"),
            (str(target), replace(latency(self._course), levels=levels), duration),
            ("processors", total(self._course), lambda value: f"{value:.0f}"),
        ):
            last = panel.series[0].y[-1:]
            now = "".join(said(value) for value in last if isfinite(value))
            drawn = draw_panel(
                panel, since_s=self._begin_s, lasts_s=self._span_s, width=width, height=height
            )
            for row, text in enumerate(drawn):
                grid.add_row(Text((label, now)[row] if row < 2 else ""), text)
        begin, end = clock(self._begin_s), clock(self._begin_s + self._span_s)
        grid.add_row(Text(), Text(f"{begin}{end:>{width - len(begin)}}", style="dim"))
        return grid


def change_text(episode: Episode) -> Text:
    """Return a line for a change, a recommendation or an order, with its reason."""
    decision = episode.decision
    if episode.done == "note":
        return line(f"{clock(decision.at_s)}  note  {decision.reason}")
    before, after = decision.before.allocation, decision.after.allocation
    return line(
        f"{clock(decision.at_s)}  {episode.done:<4}  {processors_text(before)} -> "
        f"{processors_text(after)}  {decision.reason}{failed_text(episode)}"
    )


def _bar(processors: int, busy: float | None) -> Text:
    """Return a bar with a block per processor, or scaled if there are many."""
    wide = min(processors, _WIDEST_BAR)
    filled = round(wide * min(1.0, busy or 0.0))
    bar = Text("█" * filled, style="red" if (busy or 0.0) >= FULL else "blue")
    return bar.append("░" * (wide - filled), style="dim")
