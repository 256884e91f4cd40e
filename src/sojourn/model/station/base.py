"""The Protocol of station models.

A station model is a module in this folder; its functions are the model. To add one, add a
file: nothing else changes, and `tests/contract/test_stations.py` tests it.
"""

from collections.abc import Iterator
from typing import Protocol

from sojourn.model.lattice import Lattice, Masses
from sojourn.topology.load import StationLoad


class Station(Protocol):
    """An operator as a queue with processors.

    Functions may assume `processors >= load.min_processors`: callers check it and raise
    `UnstableStation`. They must not keep state, read a clock or draw random numbers.
    """

    def wait_s(self, load: StationLoad, processors: int) -> float:
        """Return the mean wait before service begins.

        It must decrease with each further processor, by less each time (plans are optimal only
        then), be 0 or more, and scale with the unit of time.
        """
        ...

    def waits_s(self, load: StationLoad, first: int) -> Iterator[float]:
        """Yield `wait_s` for *first* processors, one more, and so on without end.

        Plans spend most of their time here: use a recursion with one step per processor, do not
        start over for every number of processors.
        """
        ...

    def wait(self, load: StationLoad, processors: int, lattice: Lattice) -> Masses:
        """Return the distribution of the wait.

        Its mean must be `wait_s`. More processors must not increase any part of its tail:
        searches for percentiles rely on that.
        """
        ...

    def service(self, load: StationLoad, lattice: Lattice) -> Masses:
        """Return the distribution of the service time."""
        ...
