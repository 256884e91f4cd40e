"""Output while a command works: a line of progress, one per change, or live charts."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Event, Thread
from time import monotonic, sleep

import typer
from rich.console import Console
from rich.live import Live

from sojourn.errors import BadInput
from sojourn.knowledge import Episode, News
from sojourn.registry import optional
from sojourn.report.terminal.live import View, change_text
from sojourn.report.text import clock
from sojourn.report.turns import Turn

# A line shown sooner would flicker during short commands.
_SOON_S, _EVERY_S = 1.0, 0.5
# The minimum time between two refreshes: drawing may take longer than a turn.
_BETWEEN_S = 0.08

Watch = AbstractContextManager[Callable[[Episode], None]]
"""A context manager that yields a function to call with each turn."""


@contextmanager
def working(
    text: str, *, soon_s: float = _SOON_S, every_s: float = _EVERY_S
) -> Iterator[Callable[[str], None]]:
    """Show *text* and the elapsed seconds on standard error, if that is a terminal.

    Yield a function that sets the progress. The line appears after *soon_s*, is updated every
    *every_s*, and is erased at the end.
    """
    out, since_s, ended, progress = sys.stderr, monotonic(), Event(), ""
    if not out.isatty():
        yield lambda _far: None
        return

    def far(told: str) -> None:
        nonlocal progress
        progress = f", {told}"

    def show() -> None:
        wait_s = soon_s
        while not ended.wait(wait_s):
            took_s, wait_s = monotonic() - since_s, every_s
            typer.echo(f"\r\x1b[K{text}{progress} … {took_s:.0f} s", out, nl=False)
        if wait_s == every_s:
            typer.echo("\r\x1b[K", out, nl=False)

    thread = Thread(target=show, daemon=True)
    thread.start()
    try:
        yield far
    finally:
        ended.set()
        thread.join()


@contextmanager
def loading_simulator() -> Iterator[None]:
    """Show progress while the block imports the simulator.

    Raise `BadInput` with the package to install if numba is missing.
    """
    needs = optional("the simulator needs", "simulate", BadInput)
    with needs, working("loading the simulator"):
        yield


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
