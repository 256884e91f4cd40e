"""M/M/k: Poisson arrivals, exponential service, k processors, one queue (DRS-15 eq. 1).

The real variability of arrivals and service is ignored; `gigk` takes it into account.
"""

from collections.abc import Iterator

from sojourn.model.lattice import Lattice, Masses
from sojourn.queueing import erlang
from sojourn.topology.load import StationLoad


def wait_s(load: StationLoad, processors: int) -> float:
    """Return the mean wait.

    >>> wait_s(StationLoad(arrivals_per_s=8, service_s=0.1), 1)  # ρ/(1-ρ) services
    0.4
    """
    return next(waits_s(load, processors))


def waits_s(load: StationLoad, first: int) -> Iterator[float]:
    return erlang.waits_s(load.erlangs, load.service_s, first)


def wait(load: StationLoad, processors: int, lattice: Lattice) -> Masses:
    """Return the distribution of the wait, which is exact for M/M/k."""
    waits = erlang.delay_probability(load.erlangs, processors)
    return lattice.wait(waits, wait_s(load, processors))


def service(load: StationLoad, lattice: Lattice) -> Masses:
    return lattice.service(load.service_s, 1.0)
