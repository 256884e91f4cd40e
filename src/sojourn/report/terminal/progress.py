"""The progress line of a command that takes longer than a second."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic

import typer

from sojourn.errors import BadInput
from sojourn.registry import optional

__all__ = ["loading_simulator", "working"]

# A line shown sooner would flicker during short commands.
_SOON_S, _EVERY_S = 1.0, 0.5


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
