"""k separate GI/G/1 queues fed in turn: what several feeds, or a repartition, amount to.

Each queue gets every k-th record, so its arrivals are the more regular the more queues
there are (scv a/k), but a record may wait while another processor idles. The wait is
Kraemer and Langenbach-Belz's, as used in Whitt's Queueing Network Analyzer (1983, eq. 44).
"""

from collections.abc import Iterator
from itertools import count
from math import exp

from sojourn.load import StationLoad
from sojourn.model.lattice import Lattice, Masses

__all__ = ["service", "sojourn", "wait_s", "waits_s"]


def wait_s(load: StationLoad, processors: int) -> float:
    """Return the mean wait.

    >>> wait_s(StationLoad(arrivals_per_s=8, service_s=0.1), 1)  # M/M/1
    0.4
    """
    return next(waits_s(load, processors))


def waits_s(load: StationLoad, first: int) -> Iterator[float]:
    """Yield the mean wait for *first* processors, one more, and so on."""
    erlangs, s = load.erlangs, load.service_scv
    for processors in count(first):
        a = load.arrival_scv / processors
        spare = processors - erlangs
        mean_s = load.service_s * erlangs * (a + s) / (2 * spare)
        if mean_s > 0 and a < 1:
            mean_s *= exp(-2 * spare * (1 - a) ** 2 / (3 * erlangs * (a + s)))
        yield mean_s


def sojourn(load: StationLoad, processors: int, lattice: Lattice) -> Masses:
    """Return the distribution of wait and service.

    A record waits with the probability the Queueing Network Analyzer gives (eq. 49), and
    then exponentially long; the service time is gamma distributed.
    """
    wait = lattice.wait(_delay_probability(load, processors), wait_s(load, processors))
    return lattice.add(wait, service(load, lattice))


def service(load: StationLoad, lattice: Lattice) -> Masses:
    """Return the gamma distribution of the service time."""
    return lattice.service(load.service_s, load.service_scv)


def _delay_probability(load: StationLoad, processors: int) -> float:
    busy, a, s = load.erlangs / processors, load.arrival_scv / processors, load.service_scv
    if a < 1:
        weight = (1 + a + busy * s) / (1 + busy * (s - 1) + busy**2 * (4 * a + s))
    else:
        weight = 4 * busy / (a + busy**2 * (4 * a + s))
    return busy + (a - 1) * busy * (1 - busy) * weight
