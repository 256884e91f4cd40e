"""How far away nodes are, and so how many records their processors have at a time."""

from math import ceil

__all__ = ["Distances"]

# Of a way that took longer than those before, what it counts for: most often the way is as it
# was, and something else was waited for.
_LONGER = 0.1
# No network of one cluster is slower, and what was seen once may not be seen again for long.
_MOST_WAY_S = 0.1
# A service that takes longer than so many ways loses little to them, and a record that was
# given away can no longer be taken by whoever is idle first.
_LONG_WAYS = 5
_MOST = 50


class Distances:
    """The time to each node and back, as far as it was *seen*: near the least.

    >>> distances = Distances()
    >>> distances.seen("executor-1", 0.004)
    >>> [distances.at_a_time("executor-1", service_s) for service_s in (0.001, 0.01, 0.1)]
    [5, 2, 1]
    >>> distances.at_a_time("executor-2", 0.001)
    1
    >>> distances.seen("executor-1", 3.0)  # the host had other things to do
    >>> distances.at_a_time("executor-1", 0.01)
    2
    """

    def __init__(self) -> None:
        self._ways_s: dict[str, float] = {}

    def __bool__(self) -> bool:
        return bool(self._ways_s)

    def seen(self, node: str, way_s: float) -> None:
        """Take note how long a record was on its way to a *node* and back."""
        seen_s = min(way_s, _MOST_WAY_S)
        before_s = self._ways_s.get(node, seen_s)
        longer_s = max(0.0, seen_s - before_s)
        self._ways_s[node] = min(seen_s, before_s + _LONGER * min(longer_s, before_s + 1e-3))

    def forget(self, node: str) -> None:
        """Forget a node that is gone."""
        self._ways_s.pop(node, None)

    def at_a_time(self, node: str, service_s: float | None) -> int:
        """Return how many records a processor has to have so as not to wait for the next."""
        way_s = self._ways_s.get(node, 0.0)
        if not service_s or service_s >= _LONG_WAYS * way_s:
            return 1
        return min(_MOST, 1 + ceil(way_s / service_s))
