"""Results that leave a part, and those that left since the last commit."""

from collections import deque
from collections.abc import Callable, Iterable

from sojourn.host.batch.cut import Leaving
from sojourn.host.batch.log_entries import Entry, Left
from sojourn.host.batch.relay_messages import DeadLetter

__all__ = ["LeavingResults", "as_entry", "as_leaving"]


class LeavingResults:
    """In order; of those handed over at most *most* are kept: if there are more, in the log."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: deque[Leaving] = deque()
        self._handed_over: list[Leaving] | None = []  # None if there are too many

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, leaving: Leaving) -> None:
        """Let a result wait for a relay."""
        self._waiting.append(leaving)

    def hand_over(self) -> list[Leaving]:
        """Take all that wait."""
        handed = list(self._waiting)
        self._waiting.clear()
        if self._handed_over is not None:
            self._handed_over += handed
            if len(self._handed_over) > self._most:
                self._handed_over = None
        return handed

    def again(self, logged: Callable[[], Iterable[Iterable[Entry]]]) -> None:
        """Let all leave that have left since the last commit: Spark may not have written them.

        What was *logged* since then is read only if not all are kept.
        """
        if self._handed_over is not None:
            self._waiting.extendleft(reversed(self._handed_over))
            return
        entries = (entry for group in logged() for entry in group)
        self._waiting = deque(as_leaving(each) for each in entries if isinstance(each, Left))

    def committed(self) -> None:
        """Forget what was handed over: it is written."""
        self._handed_over = []

    def clear(self) -> None:
        """Forget what waits."""
        self._waiting.clear()


def as_entry(leaving: Leaving) -> Left:
    """Return how a result is logged."""
    if isinstance(leaving.result, DeadLetter):
        return Left(leaving.root, None, leaving.result)
    return Left(leaving.root, leaving.result)


def as_leaving(entry: Left) -> Leaving:
    """Return a result that was logged."""
    return Leaving(entry.root, entry.record if entry.letter is None else entry.letter)
