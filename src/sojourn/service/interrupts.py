"""Ctrl-C and SIGTERM for a command that must finish its work."""

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Never, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def interrupt(_number: int, _frame: FrameType | None) -> Never:
    """Raise KeyboardInterrupt, and silence the libraries whose calls it interrupts."""
    logging.getLogger().addHandler(logging.NullHandler())
    raise KeyboardInterrupt


class Interrupts:
    """Handles signals while it is open: the first requests a clean end, the second forces it.

    The first calls *breaks*, and raises KeyboardInterrupt only if that returns True: no work
    in progress must be completed. All others raise. *times* counts them.
    """

    def __init__(self) -> None:
        self.times = 0
        self.breaks: Callable[[], bool] = lambda: True
        self._deaf = self._now = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._before = {number: signal.getsignal(number) for number in _SIGNALS}
        self.listen()
        return self

    def __exit__(self, *_exception: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def send(self, *, now: bool) -> None:
        """Interrupt the command from another thread; *now*, as a second signal does.

        To repeat a call has no effect.
        """
        if not self.times or (now and self.times == 1):
            self._now = now
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)

    def listen(self) -> None:
        """Install the handlers, and replace those that a library has installed since."""
        for number in _SIGNALS:
            signal.signal(number, self._heard)

    @contextmanager
    def deaf_afterwards(self) -> Iterator[None]:
        """Ignore signals after this block, so that the shutdown is not interrupted."""
        try:
            yield
        finally:
            self._deaf = True

    def _heard(self, number: int, frame: FrameType | None) -> None:
        if self._deaf:
            return
        self.times += 2 if self._now and not self.times else 1
        if self.times > 1 or self.breaks():
            interrupt(number, frame)
