"""Which failures of queries are explained by the loss of a node.

A batch fails with the node that one of its tasks ran on. Machines that may be taken away at
any time (spot instances) would otherwise end an application that has no fault.
"""

from collections.abc import Mapping

__all__ = ["NodeLosses"]

# Spark gives up a silent executor after 30 s, hosts an agent after 10 s: a batch may fail
# before, and a query that is started again may be sent to the same executor.
_BEFORE_S, _AFTER_S = 45.0, 45.0


class NodeLosses:
    """The nodes that were lost, with the time of each loss.

    >>> losses = NodeLosses()
    >>> losses.saw({}), losses.saw({"executor-1": 100.0}), losses.saw({"executor-1": 100.0})
    (None, 55.0, None)
    >>> losses.lately(120.0), losses.lately(150.0)
    ('executor-1', '')
    """

    def __init__(self) -> None:
        self._lost_s: Mapping[str, float] = {}

    def saw(self, lost_s: Mapping[str, float]) -> float | None:
        """Note when nodes were *lost*; return since when failures are explained by new losses.

        None if there is no new one.
        """
        before, self._lost_s = self._lost_s, dict(lost_s)
        new = [at_s for name, at_s in lost_s.items() if before.get(name) != at_s]
        return min(new) - _BEFORE_S if new else None

    def lately(self, now_s: float) -> str:
        """Return the node whose loss explains a failure now; empty if there is none."""
        recent = {n: at_s for n, at_s in self._lost_s.items() if now_s - at_s < _AFTER_S}
        return max(recent, key=recent.__getitem__, default="")
