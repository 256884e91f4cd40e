"""Backlogs: queues longer than in steady state, and the processors that clear them."""

from collections.abc import Mapping, Sequence
from math import floor

from sojourn.decide.target import MOST_PROCESSORS
from sojourn.measure.observation import Observation
from sojourn.model.cores import all_cores, demand
from sojourn.model.network import stations
from sojourn.topology import Topology
from sojourn.topology.traffic import rates

# A queue in steady state exceeds this multiple of its mean with a probability of 0.001.
_NOW_AND_THEN = 7.0
# Maximum utilisation of cores: waits grow without bound as it approaches 1.
_MOST_OF_CORES = 0.95


def behind(
    topology: Topology, last: Observation, allocation: Mapping[str, int], model: str
) -> dict[str, float]:
    """Return the records in excess of steady state at each operator with a backlog."""
    waiting, models = {}, stations(topology, model)
    for name, load in topology.loads.items():
        ordinary = float(allocation[name])
        if allocation[name] >= load.min_processors:
            wait_s = models[name].wait_s(load, allocation[name])
            ordinary += _NOW_AND_THEN * load.arrivals_per_s * wait_s
        if last.operators[name].backlog >= ordinary + 1:
            waiting[name] = last.operators[name].backlog - ordinary
    return waiting


def falling_behind(
    topology: Topology,
    history: Sequence[Observation],
    allocation: Mapping[str, int],
    model: str,
) -> bool:
    """Return whether an operator has a backlog that grew during *history*."""
    usable = [o for o in history if o.usable]
    waiting = behind(topology, usable[-1], allocation, model)
    return any(
        o.backlog > usable[0].operators[name].backlog
        for name, o in usable[-1].operators.items()
        if name in waiting
    )


def drain_needs(
    topology: Topology, waiting: Mapping[str, float], drain_s: float
) -> dict[str, int]:
    """Return the processors that serve the load and clear the backlog in *drain_s*.

    The backlog also loads the operators downstream. The cores limit how fast it is cleared.
    """
    entering = {name: waiting.get(name, 0.0) / drain_s for name in topology.operator}
    draining = rates(entering, topology.gains)
    part = _runnable(topology, draining)
    return {
        name: floor(min((per_s + part * draining[name]) * service_s, MOST_PROCESSORS)) + 1
        for name, per_s in topology.rates.items()
        for service_s in (topology.loads[name].service_s,)
    }


def _runnable(topology: Topology, draining: Mapping[str, float]) -> float:
    """Return the part of *draining* that the cores can serve in addition to the load."""
    computes = demand(topology, draining)
    cores = all_cores(topology)
    if cores is None or computes == 0:
        return 1.0
    return min(1.0, max(0.0, _MOST_OF_CORES * cores - demand(topology)) / computes)
