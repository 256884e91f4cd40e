"""The progress line of a command that takes longer than a second."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TextIO

__all__ = ["working"]

# A line that disappears sooner only flickers.
_SOON_S, _EVERY_S = 1.0, 0.5


@contextmanager
def working(text: str) -> Iterator[Callable[[str], None]]:
    """Show *text* and the elapsed seconds on standard error, if that is a terminal.

    It yields a function that sets the progress. The line is removed at the end.
    """
    if not sys.stderr.isatty():
        yield lambda _far: None
        return
    line = _Line(text, sys.stderr)
    thread = threading.Thread(target=line.show, daemon=True)
    thread.start()
    try:
        yield line.far
    finally:
        line.ended.set()
        thread.join()


class _Line:
    def __init__(self, text: str, out: TextIO) -> None:
        self._text, self._far, self._out = text, "", out
        self._since_s = monotonic()
        self.ended = threading.Event()

    def far(self, text: str) -> None:
        """Set the progress."""
        self._far = f", {text}"

    def show(self) -> None:
        """Update the line until the end, and remove it."""
        if self.ended.wait(_SOON_S):
            return
        while True:
            took_s = monotonic() - self._since_s
            self._write(f"\r\x1b[K{self._text}{self._far} … {took_s:.0f} s")
            if self.ended.wait(_EVERY_S):
                self._write("\r\x1b[K")
                return

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
