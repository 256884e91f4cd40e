"""What is due when: kept among the states of keys, so that it is in every cut and in the log.

The names of such states begin with the time, and they are kept in that order. So what is due
soon is found without looking at the rest, of which there may be millions.
"""

from heapq import heappop, heappush

from sojourn.spark.host.state.keyed_state import KeyedState

__all__ = ["Schedule", "due_of", "entry"]

# What is due within this time is in memory, if it is not too much.
_WINDOW_US = 10_000_000
# Looked up again so long before the end of what is in memory.
_AHEAD_US = 1_000_000
# Looked up at a time: the event loop of the host waits for it.
_MOST = 1000
_DIGITS = 17


def entry(due_us: int, name: str) -> str:
    """Return the name of a state that is due then.

    >>> entry(1_700_000_000_000_000, "a")
    '01700000000000000 a'
    """
    return f"{due_us:0{_DIGITS}d} {name}"


def due_of(due: str) -> int:
    """Return when an entry is due."""
    return int(due[:_DIGITS])


class Schedule:
    """Entries of one *name*, of which those that are due next are in memory.

    An entry is added, and removed, by whoever changes the state of that name; so each is
    returned once, as being due, and not forgotten before that is on disk.
    """

    def __init__(self, state: KeyedState, name: str, *, most: int = _MOST) -> None:
        self._state, self.name, self._most = state, name, most
        self._near: list[tuple[str, bytes]] = []
        self._upto = ""  # all before that are in memory

    @property
    def next_us(self) -> int:
        """When to ask for what is due: for the first in memory, or for what is after it."""
        if self._near:
            return due_of(self._near[0][0])
        return due_of(self._upto) if self._upto else 0

    def forget(self) -> None:
        """Begin again with what the state has."""
        self._near, self._upto = [], ""

    def added(self, due: str, content: bytes) -> None:
        """Take note of a new entry."""
        if due < self._upto:
            heappush(self._near, (due, content))

    def due(self, now_us: int) -> tuple[str, bytes] | None:
        """Return an entry that is due, the earliest first.

        None if there is no other in memory, and none among those that follow: more may be due,
        if *next_us* says so.
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
