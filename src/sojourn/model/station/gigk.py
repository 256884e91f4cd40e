"""GI/G/k: any arrivals, any service, k processors, one queue (DRS-17 eq. 5).

The wait is that of M/M/k times (a + s)/2, half the sum of the scv of arrivals and service: the
Allen-Cunneen approximation in Whitt's parametric decomposition. With a = s = 1 it is M/M/k.
"""

from collections.abc import Iterator

from sojourn.model.lattice import Lattice, Masses
from sojourn.queueing import erlang
from sojourn.topology.load import StationLoad


def wait_s(load: StationLoad, processors: int) -> float:
    """Return the mean wait.

    >>> regular = StationLoad(arrivals_per_s=8, service_s=0.1, service_scv=0)
    >>> wait_s(regular, 1)  # M/D/1 waits half as long as M/M/1
    0.2
    """
    return next(waits_s(load, processors))


def waits_s(load: StationLoad, first: int) -> Iterator[float]:
    variability = (load.arrival_scv + load.service_scv) / 2
    # the wait is proportional to the service time, so the factor can be applied to that
    return erlang.waits_s(load.erlangs, load.service_s * variability, first)


def wait(load: StationLoad, processors: int, lattice: Lattice) -> Masses:
    """Return the distribution of the wait: that of M/M/k with a scaled mean."""
    waits = erlang.delay_probability(load.erlangs, processors)
    return lattice.wait(waits, wait_s(load, processors))


def service(load: StationLoad, lattice: Lattice) -> Masses:
    return lattice.service(load.service_s, load.service_scv)
