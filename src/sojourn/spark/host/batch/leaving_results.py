"""Results that leave a part, and those that left since the last commit.

A batch that fails runs again, and all results since the last commit leave again. They are kept
in memory up to a bound; beyond it they are read from the log, some at a time.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from sojourn.spark.host.batch.cut import Leaving
from sojourn.spark.host.batch.log_entries import Entry, Left
from sojourn.spark.wire.relay import DeadLetter

__all__ = ["LeavingResults", "as_entry", "as_leaving"]


class LeavingResults:
    """In order; of those handed over at most *most* are kept, and *most_bytes*.

    What is read from the log leaves in portions of a quarter of that.
    """

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._logged: Iterator[Leaving] = iter(())
        self.in_log = False
        """Whether results have to be read from the log, before others leave."""
        self._waiting: deque[Leaving] = deque()
        self._handed_over: list[Leaving] | None = []  # None if there are too many
        self._handed_bytes = 0

    def __bool__(self) -> bool:
        return self.in_log or bool(self._waiting)

    @property
    def kept_bytes(self) -> int:
        """What those take that were handed over and are in memory."""
        return 0 if self._handed_over is None else self._handed_bytes

    def add(self, leaving: Leaving) -> None:
        """Let a result wait for a relay."""
        self._waiting.append(leaving)

    def hand_over(self) -> list[Leaving]:
        """Take all that wait, or the next portion of those in the log."""
        if self.in_log:
            handed = self._portion()
        else:
            handed = list(self._waiting)
            self._waiting.clear()
        self.handed(handed)
        return handed

    def handed(self, results: list[Leaving]) -> None:
        """Keep results that were handed over, by this host or the one before it."""
        if self._handed_over is not None:
            self._handed_over += results
            for each in results:
                self._handed_bytes += each.size_bytes
            if len(self._handed_over) > self._most or self._handed_bytes > self._most_bytes:
                self._handed_over = None

    def _portion(self) -> list[Leaving]:
        handed, size_bytes = [], 0
        for leaving in self._logged:
            handed.append(leaving)
            size_bytes += leaving.size_bytes
            if 4 * size_bytes >= self._most_bytes or 4 * len(handed) >= self._most:
                return handed
        self.in_log = False
        return handed

    def again(self, logged: Callable[[], Iterable[Iterable[Entry]]]) -> None:
        """Let all leave that have left since the last commit: Spark may not have written them.

        What was *logged* since then is read only if not all are kept.
        """
        if self._handed_over is not None and not self.in_log:
            self._waiting.extendleft(reversed(self._handed_over))
        else:
            self._read(logged())

    def _read(self, logged: Iterable[Iterable[Entry]]) -> None:
        """Let what was logged leave, and nothing else: what waits is in the log as well."""
        entries = (entry for group in logged for entry in group)
        self._logged = (as_leaving(each) for each in entries if isinstance(each, Left))
        self.in_log = True
        self._waiting.clear()

    def committed(self) -> None:
        """Forget what was handed over: it is written."""
        self._handed_over, self._handed_bytes = [], 0

    def clear(self) -> None:
        """Forget all."""
        self.in_log = False
        self._waiting.clear()
        self.committed()


def as_entry(leaving: Leaving) -> Left:
    """Return how a result is logged."""
    if isinstance(leaving.result, DeadLetter):
        return Left(leaving.root, None, leaving.result)
    return Left(leaving.root, leaving.result)


def as_leaving(entry: Left) -> Leaving:
    """Return a result that was logged."""
    return Leaving(entry.root, entry.record if entry.letter is None else entry.letter)
