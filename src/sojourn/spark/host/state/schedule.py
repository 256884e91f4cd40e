"""Timers: kept as states of keys, so that they are in every cut and in the log.

The keys of these states begin with the due time, and are kept in order. So the next timers are
found without reading the rest, of which there may be millions.
"""

from heapq import heappop, heappush

from sojourn.spark.host.state.keyed_state import KeyedState

# Entries due within this time are loaded into memory, up to `_MOST` of them.
_WINDOW_US = 10_000_000
# The next entries are loaded this long before the end of the window.
_AHEAD_US = 1_000_000
# Entries loaded at a time: the event loop of the host waits meanwhile.
_MOST = 1000
_DIGITS = 17


def entry(due_us: int, name: str) -> str:
    """Return the key of an entry that is due at a time.

    >>> entry(1_700_000_000_000_000, "a")
    '01700000000000000 a'
    """
    return f"{due_us:0{_DIGITS}d} {name}"


def due_of(due: str) -> int:
    """Return the time at which an entry is due."""
    return int(due[:_DIGITS])


class Schedule:
    """The entries under one *name*, with those that are due next in memory.

    The caller adds and removes entries in the state of that name. So each entry is returned
    as due once, and survives a crash until its removal is logged.
    """

    def __init__(self, state: KeyedState, name: str, *, most: int = _MOST) -> None:
        self._state, self.name, self._most = state, name, most
        self._near: list[tuple[str, bytes]] = []
        self._upto = ""  # all entries before this one are in memory

    @property
    def next_us(self) -> int:
        """When to call `due` next: at the first entry in memory, or to load more of them."""
        if self._near:
            return due_of(self._near[0][0])
        return due_of(self._upto) if self._upto else 0

    def forget(self) -> None:
        """Drop the entries in memory, to load them from the state again."""
        self._near, self._upto = [], ""

    def added(self, due: str, content: bytes) -> None:
        """Keep a new entry in memory if it is due within the window."""
        if due < self._upto:
            heappush(self._near, (due, content))

    def due(self, now_us: int) -> tuple[str, bytes] | None:
        """Take an entry that is due, the earliest first, and load more if necessary.

        None if no loaded entry is due; more may be due if `next_us` is not in the future.
        """
        if not self._is_due(now_us) and self._upto <= entry(now_us + _AHEAD_US, ""):
            self._look_ahead(now_us)
        return heappop(self._near) if self._is_due(now_us) else None

    def _is_due(self, now_us: int) -> bool:
        return bool(self._near) and due_of(self._near[0][0]) <= now_us

    def _look_ahead(self, now_us: int) -> None:
        wanted = entry(now_us + _WINDOW_US, "")
        found, self._upto = self._state.ordered(self.name, self._upto, wanted, most=self._most)
        for near in found:
            heappush(self._near, near)
