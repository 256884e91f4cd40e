"""Batch sizes of processors: one record at a time, or several where services are short."""

from collections.abc import Mapping, Sequence
from math import ceil

from sojourn.decide.plan import HERE
from sojourn.spark.host.desk.processors import Processor
from sojourn.spark.wire.processor import Result

# Bounds on the work that is prefetched from relays, and on the batch of one processor: enough
# to hide the round trip to a relay or a processor, too little to delay other records.
_AHEAD_S = 0.005
_AT_ONCE_S = 0.001
_MOST_AHEAD = 500
# Weight of the latest record in the moving average of service times.
_NEWEST = 0.05
# Weight of a round trip longer than the estimate: most often the network is as fast as before,
# and the record waited for something else.
_LONGER = 0.1
# No network within a cluster is slower; one outlier would otherwise last for a long time.
_MOST_WAY_S = 0.1
# A service longer than this many round trips loses little to them, and a record that was sent
# ahead can no longer go to the first idle processor.
_LONG_WAYS = 5
_MOST_AT_A_TIME = 50


class Portions:
    """Batch sizes by measured service times and round trips to nodes.

    At least *ahead* records are prefetched beyond one for each processor.

    >>> portions = Portions(ahead=2)
    >>> portions.at_once(waiting=100, running=4), portions.ahead({"": 4})
    (1, 2)
    >>> portions.served(0.0001)
    >>> portions.at_once(waiting=100, running=4), portions.ahead({"": 4})
    (10, 200)
    """

    def __init__(self, *, ahead: int) -> None:
        self._ahead = ahead
        self._service_s: float | None = None
        # Estimated round-trip time to each other node, close to the minimum that was measured.
        self._ways_s: dict[str, float] = {}

    def served(self, took_s: float) -> None:
        """Add a service time to the moving average."""
        before_s = took_s if self._service_s is None else self._service_s
        self._service_s = before_s + _NEWEST * (took_s - before_s)

    def returned(self, processor: Processor, results: Sequence[Result], now_s: float) -> None:
        """Measure the round trip of records to another node."""
        if processor.node != HERE and processor.waits_for_first:
            worked_s = sum(result.took_s for result in results)
            self.took(processor.node, max(0.0, now_s - processor.since_s - worked_s))

    def took(self, node: str, way_s: float) -> None:
        """Add a measured round trip to *node*: a shorter one counts in full, a longer less.

        >>> portions = Portions(ahead=2)
        >>> portions.served(0.01)
        >>> portions.took("executor-1", 0.004)
        >>> portions.took("executor-1", 3.0)  # the host had other things to do
        >>> portions.at_a_time("executor-1"), portions.at_a_time("executor-2")
        (2, 1)
        """
        seen_s = min(way_s, _MOST_WAY_S)
        before_s = self._ways_s.get(node, seen_s)
        longer_s = max(0.0, seen_s - before_s)
        # An outlier counts at most as twice the estimate, plus 1 ms for one near zero.
        self._ways_s[node] = min(seen_s, before_s + _LONGER * min(longer_s, before_s + 1e-3))

    def forget(self, node: str) -> None:
        """Forget the round trips to a node that is gone."""
        self._ways_s.pop(node, None)

    def ahead(self, running: Mapping[str, int]) -> int:
        """Return the number of records to prefetch beyond one for each processor.

        *running* has the processors of each node. Distant nodes need more: the records that
        fill the round trip, and one more for each processor, so that an idle one finds work.
        """
        if not self._service_s:
            return self._ahead
        number = sum(running.values())
        ahead = max(self._ahead, min(_MOST_AHEAD, int(number * _AHEAD_S / self._service_s)))
        if not self._ways_s:
            return ahead
        on_the_way = sum(k * (self.at_a_time(node) - 1) for node, k in running.items())
        return ahead + on_the_way + number if on_the_way else ahead

    def at_once(self, *, waiting: int, running: int) -> int:
        """Return the batch size of an idle processor, at most its share of the queue."""
        most = 1 if not self._service_s else int(_AT_ONCE_S / self._service_s)
        share = -(-(waiting - 1) // max(1, running))
        return max(1, min(most, share))

    @property
    def has_far_nodes(self) -> bool:
        """Whether round trips to other nodes have been measured."""
        return bool(self._ways_s)

    def at_a_time(self, node: str) -> int:
        """Return the records that a processor on *node* needs so that it never waits.

        >>> for service_s in (0.001, 0.01, 0.1):
        ...     portions = Portions(ahead=2)
        ...     portions.served(service_s)
        ...     portions.took("executor-1", 0.004)
        ...     portions.at_a_time("executor-1")
        5
        2
        1
        """
        way_s = self._ways_s.get(node, 0.0)
        if not self._service_s or self._service_s >= _LONG_WAYS * way_s:
            return 1
        return min(_MOST_AT_A_TIME, 1 + ceil(way_s / self._service_s))
