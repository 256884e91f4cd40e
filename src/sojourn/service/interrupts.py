"""Ctrl-C and SIGTERM for a command that has something to bring to an end."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

__all__ = ["Interrupts"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Signals while it is open: the first asks for an end, the second for one now.

    The first is a KeyboardInterrupt where *breaks*, which is told of it, says that nothing is
    cut in two by one; every other is one. *times* is how many there were.
    """

    def __init__(self) -> None:
        self.times = 0
        self.breaks: Callable[[], bool] = lambda: True
        self._deaf = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._before = {number: signal.getsignal(number) for number in _SIGNALS}
        self.listen()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def listen(self) -> None:
        """Take the signals over, also from a library that took them meanwhile."""
        for number in _SIGNALS:
            signal.signal(number, self._heard)

    @contextmanager
    def deaf_afterwards(self) -> Iterator[None]:
        """Hear nothing more when this is left: what is stopped then is stopped whole."""
        try:
            yield
        finally:
            self._deaf = True

    def _heard(self, _number: int, _frame: FrameType | None) -> None:
        if self._deaf:
            return
        self.times += 1
        if self.times > 1 or self.breaks():
            raise KeyboardInterrupt
