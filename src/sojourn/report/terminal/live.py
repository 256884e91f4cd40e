"""A loop as it is watched in a terminal: operators, the course so far, the last decisions."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from math import isfinite, isnan, nan
from statistics import fmean

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from sojourn.decide.target import Target
from sojourn.knowledge import Episode, measured_s
from sojourn.report.terminal.chart import columns, draw_columns
from sojourn.report.terminal.history import clock, processors_text
from sojourn.report.terminal.tables import duration
from sojourn.report.turns import Turn, failed_text
from sojourn.topology import Topology

__all__ = ["View", "change_text"]

_MOST_OPERATORS, _MOST_CHANGES = 8, 5
_LABEL, _LEAST_WIDTH, _WIDEST_BAR = 18, 20, 24
# From so many lines on, charts may be higher.
_HIGH = 38
# A latency many times the target says no more than that it is.
_TIMES_TARGET = 2.5
_FULL = 0.95
_LATELY = 6
# Of a loop without an end, so much is drawn from the beginning on.
_SHORTEST_S = 60.0


class View:
    """What is drawn of a loop, at any time: it changes as turns are added.

    Of one without an end, *rolling*, the last *lasts_s* are drawn, or what there is of them.
    *note* stands beside the time.
    """

    def __init__(
        self, topology: Topology, target: Target, lasts_s: float, *, rolling: bool = False
    ) -> None:
        self._topology, self._target, self._lasts_s = topology, target, lasts_s
        self._rolling, self.note = rolling, ""
        self._load: deque[tuple[float, float]] = deque()
        self._latency: deque[tuple[float, float]] = deque()
        self._processors: deque[tuple[float, float]] = deque()
        self._changes: deque[Text] = deque(maxlen=_MOST_CHANGES)
        self._lately: deque[Turn] = deque(maxlen=_LATELY)
        self._last: Episode | None = None

    def add(self, turn: Turn, *, told: bool) -> None:
        """Take in the next turn; *told* are those that change something, or would have."""
        if told:
            self._changes.append(change_text(turn))
        episode = turn.episode
        seen = episode.observation
        if not seen.lasted_s > 0:
            return  # by hand, between two looks: nothing was seen
        self._last = episode
        self._lately.append(turn)
        self._load.append((seen.at_s, seen.arrivals_per_s))
        self._latency.append((seen.at_s, measured_s(seen, self._target.statistic)))
        self._processors.append((seen.at_s, float(episode.running.processors)))
        for points in (self._load, self._latency, self._processors):
            while points and points[0][0] < self._begin_s:
                points.popleft()

    def aim_at(self, target: Target) -> None:
        """Draw the latency against another target from now on."""
        if target.statistic != self._target.statistic:
            self._latency.clear()
        self._target = target

    @property
    def _begin_s(self) -> float:
        """Where what is drawn begins."""
        return max(0.0, self._at_s - self._lasts_s) if self._rolling else 0.0

    @property
    def _span_s(self) -> float:
        """How long it lasts."""
        if not self._rolling:
            return self._lasts_s
        return min(self._lasts_s, max(_SHORTEST_S, self._at_s))

    @property
    def _at_s(self) -> float:
        return self._last.observation.at_s if self._last else 0.0

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """Draw it as wide as the terminal is."""
        until = "" if self._rolling else f" of {clock(self._lasts_s)}"
        yield _line(
            f"{clock(self._at_s)}{until}{f'  {self.note}' if self.note else ''}", "bold"
        )
        yield Text()
        yield self._operators()
        yield Text()
        width = max(_LEAST_WIDTH, options.max_width - _LABEL - 1)
        yield self._charts(width, 4 if console.size.height >= _HIGH else 2)
        yield Text()
        if self._last is not None:
            yield _line(f"now    {self._last.decision.reason}")
        yield from self._changes

    def _operators(self) -> Table:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        table.add_column("operator", no_wrap=True)
        for name in ("processors", "busy", "waiting"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("", no_wrap=True)
        table.add_column("sends to", no_wrap=True)
        names = list(self._topology.operator)
        if self._last is not None and len(names) > _MOST_OPERATORS:
            most = self._last.running.allocation
            names = sorted(names, key=lambda name: -most[name])
        for name in names[:_MOST_OPERATORS]:
            table.add_row(*self._cells(name))
        if len(names) > _MOST_OPERATORS:
            table.add_row(Text(f"and {len(names) - _MOST_OPERATORS} more"))
        return table

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
            Text()
            if busy is None
            else Text(f"{busy:.0%}", style="red" if busy >= _FULL else ""),
            Text("" if seen is None else str(seen.backlog)),
            _bar(processors, busy),
            sends,
        ]

    def _busy(self, name: str) -> float | None:
        """Return the part of the time that processors were busy lately, since they changed.

        Few records are timed in one turn, so it is the mean of several.
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
        load = columns(self._since_begin(self._load), self._span_s, width, fmean)
        latency = columns(self._since_begin(self._latency), self._span_s, width, fmean)
        processors = columns(self._since_begin(self._processors), self._span_s, width, max)
        target_s = self._target.seconds
        shown = draw_columns(load, height=height, top=_top(load), style="cyan")
        now = self._now(self._load)
        _add(grid, "load", "" if isnan(now) else f"{now:.4g} per s", shown)
        now = self._now(self._latency)
        shown = draw_columns(
            latency,
            height=height + 1,
            top=min(_top([*latency, 1.3 * target_s]), _TIMES_TARGET * target_s),
            style="green",
            limit=target_s,
        )
        _add(grid, str(self._target), "" if isnan(now) else duration(now), shown)
        now = self._now(self._processors)
        shown = draw_columns(processors, height=height, top=_top(processors), style="blue")
        _add(grid, "processors", "" if isnan(now) else f"{now:.0f}", shown)
        begin, end = clock(self._begin_s), clock(self._begin_s + self._span_s)
        grid.add_row(Text(), Text(f"{begin}{end:>{width - len(begin)}}", style="dim"))
        return grid

    def _since_begin(self, points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
        return [(at_s - self._begin_s, value) for at_s, value in points]

    @staticmethod
    def _now(points: Sequence[tuple[float, float]]) -> float:
        return points[-1][1] if points else nan


def change_text(turn: Turn) -> Text:
    """Return a line of what was changed, or would have been, and why."""
    decision = turn.episode.decision
    failed = failed_text(turn.episode)
    if turn.done == "told":
        return _line(f"{clock(decision.at_s)}  told  {_printable(decision.reason)}")
    before, after = decision.before.allocation, decision.after.allocation
    text = (
        f"{clock(decision.at_s)}  {turn.done:<4}  {processors_text(before)} -> "
        f"{processors_text(after)}  {decision.reason}{failed}"
    )
    return _line(_printable(text))


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _line(text: str, style: str = "") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _bar(processors: int, busy: float | None) -> Text:
    """Return a block for each processor, those that are busy filled; of many, to scale."""
    wide = min(processors, _WIDEST_BAR)
    filled = round(wide * min(1.0, busy or 0.0))
    bar = Text("█" * filled, style="red" if (busy or 0.0) >= _FULL else "blue")
    return bar.append("░" * (wide - filled), style="dim")


def _add(grid: Table, label: str, value: str, lines: list[Text]) -> None:
    for number, line in enumerate(lines):
        grid.add_row(Text((label, value)[number] if number < 2 else ""), line)


def _top(values: list[float]) -> float:
    return max((v for v in values if isfinite(v)), default=0.0) or 1.0
