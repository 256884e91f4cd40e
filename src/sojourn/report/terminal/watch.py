"""A loop as it goes on: a line for each change, or drawn in the terminal."""

from time import monotonic, sleep
from types import TracebackType
from typing import Protocol, Self

import typer
from rich.console import Console
from rich.live import Live

from sojourn.knowledge import Episode
from sojourn.report.terminal.live import View, change_text
from sojourn.report.turns import Turn

__all__ = ["Lines", "Picture", "Unseen", "Watch"]

# Drawing takes longer than a turn may: so many seconds lie between two pictures at least.
_BETWEEN_S = 0.08


class Watch(Protocol):
    """Something that is shown each turn while it is open."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def turn(self, episode: Episode) -> None:
        """Show it."""
        ...


class Unseen:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def turn(self, episode: Episode) -> None:
        """Show nothing."""


class Lines(Unseen):
    """Prints each change, and each that would have been made when it is first wished for."""

    def __init__(self) -> None:
        self._news = _News()

    def turn(self, episode: Episode) -> None:
        """Print it if it is new."""
        turn = _turn(episode)
        if self._news(turn):
            # not through a console, which prints again what an interrupt met half way
            typer.echo(change_text(turn).plain)


class Picture(Unseen):
    """Draws the view at most *speed* simulated seconds per second; 0 as fast as it goes."""

    def __init__(self, view: View, speed: float, console: Console) -> None:
        self._view, self._speed, self._news = view, speed, _News()
        self._live = Live(view, console=console, auto_refresh=False)
        self._begun_s = self._drawn_s = monotonic()

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.refresh()
        self._live.__exit__(kind, error, trace)

    def turn(self, episode: Episode) -> None:
        """Draw it when its time has come."""
        turn = _turn(episode)
        self._view.add(turn, told=self._news(turn))
        now_s = monotonic()
        if now_s - self._drawn_s >= _BETWEEN_S:
            self._live.refresh()
            self._drawn_s = now_s
        if self._speed > 0:
            due_s = self._begun_s + episode.observation.at_s / self._speed
            sleep(max(0.0, due_s - monotonic()))


class _News:
    """Tells changes and new wishes from what is wished for again at each turn."""

    def __init__(self) -> None:
        self._wished: tuple[str, dict[str, int]] | None = None

    def __call__(self, turn: Turn) -> bool:
        """Tell whether the turn has something new to say."""
        wish = turn.done, dict(turn.episode.decision.after.allocation)
        again, self._wished = wish == self._wished, wish
        if turn.done == "told":
            return True
        if turn.done == "hold":
            return bool(turn.episode.failure)  # the loop's own
        return not (again and turn.episode.cost is None)


def _turn(episode: Episode) -> Turn:
    return Turn(episode=episode, expected=None, statistic="mean")
