"""How many records processors have at once: several where services are short."""

from collections.abc import Mapping, Sequence

from sojourn.decide.plan import HERE
from sojourn.spark.host.desk.distances import Distances
from sojourn.spark.host.desk.processors import Processor
from sojourn.spark.wire.processor import Result

__all__ = ["Portions"]

# What comes in hand ahead of processors, and what one is given at once, is at most so much
# work: enough to bridge the way to the relay and to a processor, too little to be noticed.
_AHEAD_S = 0.005
_AT_ONCE_S = 0.001
_MOST_AHEAD = 500
# Of the mean service time, what the latest record counts for.
_NEWEST = 0.05


class Portions:
    """Learns how long services take, and how far away nodes are.

    *ahead* is how many records more than processors are in hand, at least.

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
        self._distances = Distances()

    def served(self, took_s: float) -> None:
        """Take note how long a service took."""
        before_s = took_s if self._service_s is None else self._service_s
        self._service_s = before_s + _NEWEST * (took_s - before_s)

    def returned(self, processor: Processor, results: Sequence[Result], now_s: float) -> None:
        """See how long records were on their way to another node and back."""
        if processor.node != HERE and processor.waits_for_first:
            worked_s = sum(result.took_s for result in results)
            way_s = max(0.0, now_s - processor.since_s - worked_s)
            self._distances.seen(processor.node, way_s)

    def forget(self, node: str) -> None:
        """Forget how far away a node was."""
        self._distances.forget(node)

    def ahead(self, running: Mapping[str, int]) -> int:
        """Return how many records are wanted in hand beyond one for each processor."""
        if not self._service_s:
            return self._ahead
        number = sum(running.values())
        ahead = max(self._ahead, min(_MOST_AHEAD, int(number * _AHEAD_S / self._service_s)))
        if not self._distances:
            return ahead
        on_the_way = sum(k * (self.at_a_time(node) - 1) for node, k in running.items())
        return ahead + on_the_way + number if on_the_way else ahead

    def at_once(self, *, waiting: int, running: int) -> int:
        """Return how many records an idle processor is given: no more than its share."""
        most = 1 if not self._service_s else int(_AT_ONCE_S / self._service_s)
        share = -(-(waiting - 1) // max(1, running))
        return max(1, min(most, share))

    @property
    def has_far_nodes(self) -> bool:
        """Whether records were on their way to other nodes."""
        return bool(self._distances)

    def at_a_time(self, node: str) -> int:
        """Return how many records a processor has to have so as not to wait for the next."""
        return self._distances.at_a_time(node, self._service_s)
