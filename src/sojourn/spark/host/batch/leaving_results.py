"""Results that leave a part, and those handed over since the last commit.

If a batch fails, all results since the last commit leave again. They are kept in memory up to
a bound; beyond it they are replayed from the log, in portions.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from sojourn.spark.host.batch.host_log import Entry, Leaving


class LeavingResults:
    """Results in order of completion.

    At most *most* results and *most_bytes* that were handed over are kept in memory. A replay
    from the log leaves in portions of a quarter of that.
    """

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._logged: Iterator[Leaving] = iter(())
        self.in_log = False
        """Whether results must be replayed from the log before others leave."""
        self._waiting: deque[Leaving] = deque()
        self._handed_over: list[Leaving] | None = []  # None if there are too many
        self.kept_bytes = 0
        """Bytes of results that were handed over and are kept in memory."""

    def __bool__(self) -> bool:
        return self.in_log or bool(self._waiting)

    def add(self, leaving: Leaving) -> None:
        self._waiting.append(leaving)

    def hand_over(self) -> list[Leaving]:
        """Take all results that wait, or the next portion of a replay from the log."""
        if self.in_log:
            handed = self._portion()
        else:
            handed = list(self._waiting)
            self._waiting.clear()
        self.handed(handed)
        return handed

    def handed(self, results: list[Leaving]) -> None:
        """Keep results that were handed over, by this host or its predecessor."""
        if self._handed_over is not None:
            self._handed_over += results
            for each in results:
                self.kept_bytes += each.size_bytes
            if len(self._handed_over) > self._most or self.kept_bytes > self._most_bytes:
                self._handed_over, self.kept_bytes = None, 0

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
        """Replay all results handed over since the last commit: Spark may not have them.

        The entries *logged* since then are read only if memory does not have all results.
        """
        if self._handed_over is not None and not self.in_log:
            self._waiting.extendleft(reversed(self._handed_over))
            return
        entries = (entry for group in logged() for entry in group)
        self._logged = (each for each in entries if isinstance(each, Leaving))
        self.in_log = True
        self._waiting.clear()  # the log also has the results that wait

    def committed(self) -> None:
        """Forget results that were handed over: Spark has written them."""
        self._handed_over, self.kept_bytes = [], 0

    def clear(self) -> None:
        self.in_log = False
        self._waiting.clear()
        self.committed()
