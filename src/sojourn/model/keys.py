"""Keys: records of one are served one after the other, however many processors there are."""

from sojourn.errors import HotKey
from sojourn.topology import Topology

__all__ = ["check_keys"]


def check_keys(topology: Topology) -> None:
    """Raise `HotKey` if an operator gets more of one key than one processor can do.

    Those records make a queue of their own, with one server: it is stable while λ·p·s < 1.
    """
    for operator in topology.operators:
        busy = operator.hottest_key * topology.loads[operator.name].erlangs
        if busy >= 1:
            raise HotKey(operator.name, busy)
