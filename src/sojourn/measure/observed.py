"""The topology as it was measured: what the next plan is made for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt

from sojourn.errors import BadInput, BadTopology
from sojourn.measure.observation import Observation, ObservedOperator
from sojourn.sharing import settled_stretch, stretch
from sojourn.topology import Arrival, Operator, Topology

__all__ = ["LEAST_SAMPLES", "LEAST_SCV_SAMPLES", "MOST_ERROR", "measured", "observed"]

LEAST_SAMPLES = 30
"""Samples from which on a mean, or a number sent, replaces the last one known."""
MOST_ERROR = 0.5
"""The standard error of a mean service time, in parts of it, up to which it is believed."""
LEAST_SCV_SAMPLES = 100
"""The same for a service scv, which takes more to be known."""

# What `sojourn.topology.check` takes for a number; below, a measured time is as good as 0.
_SMALLEST = 1e-18
# A part that is so many standard errors lower is lower by no chance.
_SURELY = 3.0
# From here on processors are all busy for want of a core.
_FULL = 0.9
# An interval without a root may have had less than one; this many are assumed.
_UNSEEN_ROOTS = 0.5


def measured(topology: Topology, observation: Observation) -> Topology:
    """Return *topology*, the last one known, as it was measured: what policies plan for.

    It is what `observed` returns. Where that is no sound topology, because nothing arrived or
    because by chance a loop seems to send more back than it got, it is the last one known,
    scaled to what arrived: never to nothing, and where nothing arrived never to more than
    was known. Raise `BadInput` if the observation is not usable.
    """
    try:
        return observed(topology, observation)
    except BadTopology:
        known_per_s = topology.arrivals_per_s
    per_s = observation.arrivals_per_s
    if per_s == 0:
        per_s = min(_UNSEEN_ROOTS / observation.lasted_s, known_per_s)
    try:
        return topology.scaled(per_s / known_per_s)
    except BadTopology:  # a rate beyond all measure
        return topology


def observed(topology: Topology, observation: Observation) -> Topology:
    """Return *topology*, the last one known, with what was measured in place of it.

    - A stream from outside has its own measured rate where streams were told apart, and
      otherwise its share of λ₀. Shares of one stream between operators that nothing else
      reaches are those measured; any others stay.
    - Service times and scvs are the measured ones where there are enough samples, and not
      one record took most of the time.
    - What operators send to one target is scaled by one factor per target: records that
      reached it from inside over those that would have, by the records *served* upstream.
      Ratios between the sources of one target stay; of one source the number sent is exactly
      the measured one. Served and not arrived records count, so an upstream operator that
      cannot keep up does not seem to send less per record.
    - The most frequent key has the part of the records that it surely has.
    - Transfer times are the waits of records that found a processor idle.
    - `cores` are those of the machine, without what else runs there. Records that shared
      them took longer for it, which is taken out of the service times: what is left is what
      they take on a core of their own, because a plan changes how many share.

    While every operator serves what arrives, the traffic equations of the result give back
    the measured rates. Raise `BadInput` if the observation is not usable, and a `BadTopology`
    if no sound topology is like that: nothing arrives, or a loop does not die out.
    """
    if not observation.usable:
        raise BadInput(f"nothing was observed: {observation.reason}; wait for the next one")
    arrivals = tuple(_arrival(topology, arrival, observation) for arrival in topology.arrivals)
    factors = _factors(topology, arrivals, observation.operators)
    cores = topology.cores if observation.free_cores is None else observation.free_cores
    shared = _Shared() if cores is None else _shared(observation, cores)
    operators = tuple(
        _operator(operator, observation.operators[operator.name], factors, shared)
        for operator in topology.operators
    )
    return replace(topology, arrivals=arrivals, operators=operators, cores=cores)


@dataclass(frozen=True, slots=True)
class _Shared:
    """How many times as long as alone records took to compute, and whether cores were full.

    Where they are, times do not tell who waits for a core from who waits for something else.
    """

    stretch: float = 1.0
    full: bool = False

    def alone(self, took_s: float, cpu_s: float, waited_s: float | None) -> tuple[float, float]:
        """Return what a record takes on a core of its own, and how much of it computes.

        *waited_s* is how long one waited for something else when that could be told. A core
        computes for a second in a second: what a record uses of several at once, or what
        processors did besides, would not fit into its time.
        """
        computes_s = min(cpu_s, took_s)
        waits_s = max(0.0, took_s - computes_s * self.stretch)
        if self.full and waited_s is not None:
            waits_s = min(waited_s, took_s - computes_s)
        return computes_s + waits_s, computes_s


def _shared(observation: Observation, cores: float) -> _Shared:
    told = [
        (o.running, o.cpu_s / o.service_s)
        for o in observation.operators.values()
        if o.cpu_s is not None and o.service_s
    ]
    busy = observation.computing_cores
    if busy >= _FULL * cores:
        # Taken for those who wait for a core: one more would be of no use to either.
        return _Shared(stretch(busy, cores, sum(running for running, _ in told)), full=True)

    def at_once(longer: float) -> float:
        return sum(running * min(1.0, part * longer) for running, part in told)

    return _Shared(settled_stretch(busy, cores, at_once))


def _arrival(topology: Topology, arrival: Arrival, observation: Observation) -> Arrival:
    share = arrival.per_s / topology.arrivals_per_s
    per_s = observation.streams.get(arrival.name, share * observation.arrivals_per_s)
    into = arrival.into
    reached = {name: observation.operators[name].arrivals_per_s for name in arrival.shares}
    total = sum(reached.values())
    if len(reached) > 1 and total > 0 and _reached_by_nothing_else(topology, arrival):
        into = {name: _number(rate / total) for name, rate in reached.items()}
    return replace(arrival, per_s=_number(per_s), into=into)


def _reached_by_nothing_else(topology: Topology, arrival: Arrival) -> bool:
    elsewhere = {name for a in topology.arrivals if a != arrival for name in a.shares}
    inside = {target for sent in topology.gains.values() for target in sent}
    return not arrival.shares.keys() & (elsewhere | inside)


def _factors(
    topology: Topology, arrivals: tuple[Arrival, ...], seen: Mapping[str, ObservedOperator]
) -> dict[str, float]:
    """Return by how much more each operator got from inside than it would have."""
    inside = {name: seen[name].arrivals_per_s for name in topology.operator}
    for arrival in arrivals:
        for name, share in arrival.shares.items():
            inside[name] -= arrival.per_s * share
    expected, served = dict.fromkeys(inside, 0.0), dict.fromkeys(inside, 0.0)
    for name, sent in topology.gains.items():
        for target, mean in sent.items():
            expected[target] += seen[name].served_per_s * mean
            served[target] += seen[name].served
    return {
        name: max(0.0, inside[name]) / expected[name]
        if served[name] >= LEAST_SAMPLES and expected[name] > 0
        else 1.0
        for name in inside
    }


def _operator(
    operator: Operator, seen: ObservedOperator, factors: Mapping[str, float], shared: _Shared
) -> Operator:
    emits = {name: _number(mean * factors[name]) for name, mean in operator.emits.items()}
    total = sum(emits.values())
    if operator.route == "one_of" and total > 1:
        emits = {name: mean / total for name, mean in emits.items()}
    service_s, scv, cpu_s = operator.service_s, operator.service_scv, operator.cpu_s
    if seen.service_s is not None and _sure(seen):
        service_s = seen.service_s
        if seen.cpu_s is not None:
            service_s, cpu_s = shared.alone(service_s, seen.cpu_s, _waited_s(operator))
            cpu_s = _number(cpu_s * operator.speed)
        service_s = _number(service_s * operator.speed)
        # what was declared stays where nobody counts
        cpu_s = None if cpu_s is None else min(cpu_s, service_s)
    if seen.service_scv is not None and seen.samples >= LEAST_SCV_SAMPLES:
        scv = _number(seen.service_scv)
    arrival_scv = operator.arrival_scv
    if seen.arrival_scv is not None:
        arrival_scv = _number(seen.arrival_scv)
    return replace(
        operator,
        emits=emits,
        service_s=service_s,
        service_scv=scv,
        arrival_scv=arrival_scv,
        cpu_s=cpu_s,
        transfer_s=operator.transfer_s
        if seen.transfer.mean_s is None or seen.transfer.number < LEAST_SAMPLES
        else _number(seen.transfer.mean_s),
        hottest_key=_hottest_key(seen) if seen.hottest > 0 else operator.hottest_key,
    )


def _hottest_key(seen: ObservedOperator) -> float:
    """Return what part of the records surely has the most frequent key.

    Of few records the most frequent key of them has many by chance.
    """
    part, number = seen.hottest, max(1.0, seen.served)
    return _number(max(0.0, part - _SURELY * sqrt(part * (1 - part) / number)))


def _waited_s(operator: Operator) -> float | None:
    if operator.cpu_s is None:
        return None
    return max(0.0, operator.service_s - operator.cpu_s) / operator.speed


def _sure(seen: ObservedOperator) -> bool:
    """Tell whether the mean of the service times is known: not where one made most of it."""
    scv = seen.service_scv or 0.0
    return seen.samples >= LEAST_SAMPLES and scv <= MOST_ERROR**2 * seen.samples


def _number(value: float) -> float:
    return value if value >= _SMALLEST else 0.0
