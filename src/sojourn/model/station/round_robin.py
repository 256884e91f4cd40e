"""k separate GI/G/1 queues filled round-robin, as with several feeds or a repartition.

Each queue gets every k-th record, so its arrivals are more regular with more queues (scv a/k),
but a record may wait while another processor is idle. The wait is that of Kraemer and
Langenbach-Belz, as used in Whitt's Queueing Network Analyzer (1983, eq. 44), with one
difference: the correction for regular arrivals starts with the second queue, not with the first
whose scv is below 1. Otherwise gains would grow at that point.
"""

from collections.abc import Iterator
from itertools import count
from math import exp

from sojourn.model.lattice import Lattice, Masses
from sojourn.topology.load import StationLoad


def wait_s(load: StationLoad, processors: int) -> float:
    """Return the mean wait.

    >>> wait_s(StationLoad(arrivals_per_s=8, service_s=0.1), 1)  # M/M/1
    0.4
    """
    return next(waits_s(load, processors))


def waits_s(load: StationLoad, first: int) -> Iterator[float]:
    erlangs, s = load.erlangs, load.service_scv
    for processors in count(first):
        a = load.arrival_scv / processors
        spare = processors - erlangs
        mean_s = load.service_s * erlangs * (a + s) / (2 * spare)
        if mean_s > 0:
            # 1 - a if the whole stream is as regular as Poisson or more; else rising from 0
            regular = 1 - load.arrival_scv / (processors + max(load.arrival_scv, 1.0) - 1)
            mean_s *= exp(-2 * spare * regular**2 / (3 * erlangs) / (a + s))
        yield mean_s


def wait(load: StationLoad, processors: int, lattice: Lattice) -> Masses:
    """Return the distribution of the wait.

    The wait of records that wait is exponential; its mean is the remaining service plus the
    mean wait, as in M/G/1 and GI/M/1. The probability of waiting follows from that. (With the
    formula of the Queueing Network Analyzer, eq. 49, more processors make parts of the tail
    grow.)
    """
    mean_s, rest_s = wait_s(load, processors), _rest_s(load, processors)
    waits = mean_s / (mean_s + rest_s) if mean_s > 0 else 0.0
    return lattice.wait(waits, mean_s)


def service(load: StationLoad, lattice: Lattice) -> Masses:
    return lattice.service(load.service_s, load.service_scv)


def _rest_s(load: StationLoad, processors: int) -> float:
    """Return the remaining service that a waiting record finds at the processor.

    It is (1 + s)/2 services for random arrivals, and less for regular ones, which arrive
    towards its end.
    """
    a, s = min(load.arrival_scv / processors, 1.0), load.service_scv
    return load.service_s * ((1 + s) / 2 if s >= 1 else s + a * (1 - s) / 2)
