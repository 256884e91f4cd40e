"""What a command is at, on a terminal, once it takes more than a moment."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TextIO

__all__ = ["working"]

# Nobody waits for less, and a line that comes and goes at once only flickers.
_SOON_S, _EVERY_S = 1.0, 0.5


@contextmanager
def working(text: str) -> Iterator[Callable[[str], None]]:
    """Show *text* and the seconds since on standard error, if that is a terminal.

    What it yields takes how far it is. The line is gone when this is left.
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
        """Take how far it is."""
        self._far = f", {text}"

    def show(self) -> None:
        """Write the line again and again until it is ended, and wipe it out."""
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
