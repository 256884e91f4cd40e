"""Keys: records of one key are served one after the other, by any number of processors."""

from sojourn.errors import HotKey
from sojourn.topology import Topology

__all__ = ["check_keys"]


def check_keys(topology: Topology) -> None:
    """Raise `HotKey` if one key has more records than one processor can serve.

    These records are a queue with one server, which is stable while λ·p·s < 1.
    """
    for operator in topology.operators:
        busy = operator.hottest_key * topology.loads[operator.name].erlangs
        if busy >= 1:
            raise HotKey(operator.name, busy)
