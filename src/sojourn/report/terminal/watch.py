"""Output while a loop runs: a line per change, live charts, or only progress."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from time import monotonic, sleep

import typer
from rich.console import Console
from rich.live import Live

from sojourn.knowledge import Episode, News
from sojourn.report.terminal.live import View, change_text
from sojourn.report.terminal.progress import working
from sojourn.report.text import clock
from sojourn.report.turns import Turn

__all__ = ["Watch", "chosen", "lines", "picture", "progress"]

# The minimum time between two refreshes: drawing may take longer than a turn.
_BETWEEN_S = 0.08

Watch = AbstractContextManager[Callable[[Episode], None]]
"""A context manager that yields a function to call with each turn."""


@contextmanager
def progress(text: str, lasts_s: float) -> Iterator[Callable[[Episode], None]]:
    """Show *text* and how much of *lasts_s* has passed."""
    with working(text) as far:
        yield lambda episode: far(f"{clock(episode.observation.at_s)} of {clock(lasts_s)}")


@contextmanager
def lines() -> Iterator[Callable[[Episode], None]]:
    """Print a line for each change, and one for a repeated recommendation."""
    news = News()

    def show(episode: Episode) -> None:
        if news(episode):
            # not through a rich console: it would repeat the line after an interrupt
            typer.echo(change_text(episode).plain)

    yield show


def chosen(
    view: View, *, live: bool | None, as_json: bool, speed: float, instead: Watch
) -> Watch:
    """Return live charts if *live*, otherwise *instead*.

    If *live* is None, charts are chosen on a terminal, unless the output is JSON. With JSON,
    charts are drawn on standard error.
    """
    by_itself = Console().is_terminal and not as_json
    if by_itself if live is None else live:
        return picture(view, speed, Console(stderr=as_json))
    return instead


@contextmanager
def picture(view: View, speed: float, console: Console) -> Iterator[Callable[[Episode], None]]:
    """Draw the view, at no more than *speed* simulated seconds per second; 0 is no limit."""
    news, live = News(), Live(view, console=console, auto_refresh=False)
    begun_s = drawn_s = monotonic()

    def show(episode: Episode) -> None:
        nonlocal drawn_s
        view.add(Turn(episode=episode), told=news(episode))
        now_s = monotonic()
        if now_s - drawn_s >= _BETWEEN_S:
            live.refresh()
            drawn_s = now_s
        if speed > 0:
            due_s = begun_s + episode.observation.at_s / speed
            sleep(max(0.0, due_s - monotonic()))

    with live:
        try:
            yield show
        finally:
            live.refresh()
