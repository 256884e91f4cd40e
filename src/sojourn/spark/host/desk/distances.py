"""Round trips to nodes, and the records in flight that hide them."""

from math import ceil

__all__ = ["Distances"]

# Weight of a round trip longer than the estimate: most often the network is as fast as before,
# and the record waited for something else.
_LONGER = 0.1
# No network within a cluster is slower; one outlier would otherwise last for a long time.
_MOST_WAY_S = 0.1
# A service longer than this many round trips loses little to them, and a record that was sent
# ahead can no longer go to the first idle processor.
_LONG_WAYS = 5
_MOST = 50


class Distances:
    """Estimated round-trip time to each node, close to the minimum that was measured.

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
        """Add a measured round trip to *node*: a shorter one counts in full, a longer less."""
        seen_s = min(way_s, _MOST_WAY_S)
        before_s = self._ways_s.get(node, seen_s)
        longer_s = max(0.0, seen_s - before_s)
        # An outlier counts at most as twice the estimate, plus 1 ms for one near zero.
        self._ways_s[node] = min(seen_s, before_s + _LONGER * min(longer_s, before_s + 1e-3))

    def forget(self, node: str) -> None:
        """Drop the estimate of a node that is gone."""
        self._ways_s.pop(node, None)

    def at_a_time(self, node: str, service_s: float | None) -> int:
        """Return the records that a processor on *node* needs so that it never waits."""
        way_s = self._ways_s.get(node, 0.0)
        if not service_s or service_s >= _LONG_WAYS * way_s:
            return 1
        return min(_MOST, 1 + ceil(way_s / service_s))
