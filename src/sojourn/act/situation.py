"""What was measured, as a load to plan for: how high, how sure, and what lies waiting."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor, sqrt

from sojourn.act.holt import Holt
from sojourn.decide.plan import MOST_PROCESSORS
from sojourn.knowledge import Knowledge
from sojourn.measure.observation import Observation
from sojourn.measure.observed import LEAST_SAMPLES, measured
from sojourn.measure.smooth import Window
from sojourn.measure.steady import timed_longer
from sojourn.model.cores import demand, slowed
from sojourn.model.network import stations
from sojourn.topology import Topology
from sojourn.topology.traffic import rates

__all__ = ["Situation", "situation"]

# A forecast is off by less than so many standard errors of a single count, mostly.
_TREND = 3.0
# And it takes so many counts before there is a trend to speak of.
_LEAST_COUNTS = 6
# So many observations tell what arrives at the moment.
_LATELY = 2
# A queue in balance is shorter than so many times its mean, but for one time in a thousand.
_NOW_AND_THEN = 7.0
# Records that compute can have so much of the cores; with more, all take forever.
_MOST_OF_CORES = 0.95
# Operators with less than this part of all the work do not make the whole less certain.
_MATTERS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The load now.

    *topology* has service times on a core of one's own; all else is as cores are shared now.
    *noise* is the standard error of the work of each operator, in parts of it. *offered* are
    the processors that the load keeps busy on average, over as long as it stayed the same,
    with the standard error of that; right after a step both are as short. *behind* are
    operators with more waiting than a queue in balance has, and how much more; *needs* the
    processors to work that off in time while the load goes on, empty where nothing is behind.
    """

    seen: Observation
    topology: Topology
    noise: Mapping[str, float]
    offered: Mapping[str, float]
    offered_noise: Mapping[str, float]
    behind: Mapping[str, float]
    needs: Mapping[str, int]

    @property
    def uncertainty(self) -> float:
        """The standard error of the whole load, in parts of it: that of the least certain."""
        erlangs = {name: load.erlangs for name, load in self.topology.loads.items()}
        matter = [n for n, e in erlangs.items() if e >= _MATTERS * sum(erlangs.values())]
        return max((self.noise[name] for name in matter), default=0.0)


def situation(
    knowledge: Knowledge,
    seen: Observation,
    *,
    drain_s: float,
    forecast: Holt | None = None,
    model: str = "gigk",
) -> Situation:
    """Return the load now, *seen* being the average of what was observed lately.

    With a *forecast* it is the load when a change will have taken effect.
    """
    history, arriving = knowledge.observations, seen
    topology = steady = measured(knowledge.topology, seen)
    if _falling_behind(knowledge, steady, model):
        # More than the average must be arriving, or the queues would not grow.
        lately = timed_longer(Window(_LATELY)(history), history)
        arriving = max((seen, lately), key=lambda o: o.arrivals_per_s)
        topology = measured(knowledge.topology, arriving)
    if forecast is not None:
        topology = topology.scaled(_growth(knowledge, forecast, topology))
    shared = slowed(topology, knowledge.allocation)
    now = slowed(steady, knowledge.allocation)
    behind = _behind(shared, history[-1], knowledge.allocation, model)
    return Situation(
        seen=seen,
        topology=topology,
        noise=_noise(topology, arriving),
        offered={name: load.erlangs for name, load in now.loads.items()},
        offered_noise=_noise(steady, seen),
        behind=behind,
        needs=_needs(topology, behind, drain_s) if behind else {},
    )


def _falling_behind(knowledge: Knowledge, topology: Topology, model: str) -> bool:
    """Tell whether more waits than in balance, and more and more."""
    usable = [o for o in knowledge.observations if o.usable][-_LATELY:]
    topology = slowed(topology, knowledge.allocation)
    behind = _behind(topology, usable[-1], knowledge.allocation, model)
    return any(
        o.backlog > usable[0].operators[name].backlog
        for name, o in usable[-1].operators.items()
        if name in behind
    )


def _noise(topology: Topology, seen: Observation) -> dict[str, float]:
    noise = {}
    for name, operator in seen.operators.items():
        arrived = operator.arrivals_per_s * seen.lasted_s
        counted = topology.loads[name].arrival_scv / max(arrived, 1.0)
        timed = topology.loads[name].service_scv / max(operator.samples, LEAST_SAMPLES)
        noise[name] = sqrt(max(counted, 1 / max(arrived, 1.0)) + timed)
    return noise


def _growth(knowledge: Knowledge, forecast: Holt, topology: Topology) -> float:
    """Return how many times as high the load will be.

    What chance may have made of a steady load is no growth, and for a fall we wait until it
    is there.
    """
    counted = [(o.at_s, o.arrivals_per_s) for o in knowledge.observations if o.usable]
    if len(counted) < _LEAST_COUNTS:
        return 1.0
    lasted_s = knowledge.observations[-1].lasted_s
    expected = forecast(counted, knowledge.at_s + lasted_s + knowledge.pause_s)
    growth = expected / topology.arrivals_per_s
    scv = max(topology.loads[name].arrival_scv for name in topology.operator)
    chance = sqrt(max(1.0, scv) / (topology.arrivals_per_s * lasted_s))
    return growth if growth > 1 + _TREND * chance else 1.0


def _behind(
    topology: Topology, last: Observation, allocation: Mapping[str, int], model: str
) -> dict[str, float]:
    behind, models = {}, stations(topology, model)
    for name, load in topology.loads.items():
        ordinary = float(allocation[name])
        if allocation[name] >= load.min_processors:
            wait_s = models[name].wait_s(load, allocation[name])
            ordinary += _NOW_AND_THEN * load.arrivals_per_s * wait_s
        if last.operators[name].backlog >= ordinary + 1:
            behind[name] = last.operators[name].backlog - ordinary
    return behind


def _needs(topology: Topology, behind: Mapping[str, float], drain_s: float) -> dict[str, int]:
    """Return the processors that also work off what waits, and all that it will send on.

    Who works off a backlog is never idle. So as long as there are cores, a processor is done
    with a record in what it takes on a core of its own; and no more of the backlog is worked
    off at once than there are cores for.
    """
    entering = {name: behind.get(name, 0.0) / drain_s for name in topology.operator}
    waiting = rates(entering, topology.gains)
    part = _runnable(topology, waiting)
    return {
        name: floor(min((per_s + part * waiting[name]) * service_s, MOST_PROCESSORS)) + 1
        for name, per_s in topology.rates.items()
        for service_s in (topology.loads[name].service_s,)
    }


def _runnable(topology: Topology, waiting: Mapping[str, float]) -> float:
    """Return the part of the records *waiting* that there are cores for, beside the load."""
    computes = demand(topology, waiting)
    if topology.cores is None or computes == 0:
        return 1.0
    return min(1.0, max(0.0, _MOST_OF_CORES * topology.cores - demand(topology)) / computes)
