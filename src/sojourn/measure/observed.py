"""The measured topology: the last known one, updated with measurements, for the next plan."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt

from sojourn.errors import BadInput, BadTopology
from sojourn.measure.observation import Observation, ObservedNode, ObservedOperator
from sojourn.queueing.sharing import settled_stretch, stretch
from sojourn.topology import Arrival, Operator, Topology
from sojourn.topology.node_cores import NodeCores

LEAST_SAMPLES = 30
"""The fewest samples for a mean, or a number sent, that replaces the last known one."""
MOST_ERROR = 0.5
"""The largest acceptable relative standard error of a mean service time."""
LEAST_SCV_SAMPLES = 100
"""The fewest samples for a service scv, which needs more than a mean."""

# The smallest number that `sojourn.topology.check` accepts; a shorter time counts as 0.
_SMALLEST = 1e-18
# Standard errors between a measured share and its lower bound.
_SURELY = 3.0
# Utilisation of cores above which processors are busy because they wait for a core.
_FULL = 0.9
# An operator counts as being on full nodes if more than this part of its computing is there.
_MOST = 0.5
# The number of roots assumed for an interval without any.
_UNSEEN_ROOTS = 0.5


def measured(topology: Topology, observation: Observation) -> Topology:
    """Return the last known *topology* with measured values, for policies to plan for.

    This is the result of `observed` if that is a valid topology. It is not if nothing arrived,
    or if by chance a loop seems to send back more than it received. The result is then the last
    known topology scaled to the measured arrivals: never to 0, and without arrivals never to
    more than before. Raise `BadInput` if the observation is not usable.
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
    except BadTopology:  # a rate that is out of range
        return topology


def observed(topology: Topology, observation: Observation) -> Topology:
    """Return the last known *topology* with its values replaced by measured ones.

    - A stream from outside has its measured rate if streams are counted separately, otherwise
      its share of λ₀. The shares of one stream between operators are measured if nothing else
      reaches these operators, and otherwise stay.
    - Service times and scvs are measured if there are enough samples, and no single record
      took most of the time.
    - The numbers sent to a target are scaled by one factor per target: records that reached it
      from inside over those expected from the records *served* upstream. Ratios between the
      sources of a target stay; with one source, the number sent is exactly the measured one.
      Served rather than arrived records count, so an upstream operator that cannot keep up
      does not seem to send less per record.
    - The share of the most frequent key is a lower confidence bound.
    - Transfer times are the waits of records that found an idle processor.
    - `cores` are the cores of the machine, or of each node, without those that other processes
      use. Service times are those on a core of its own, without the effect of sharing, because
      a plan changes how many processors share the cores.

    If every operator serves all its arrivals, the traffic equations of the result reproduce the
    measured rates. Raise `BadInput` if the observation is not usable, and `BadTopology` if the
    result is not a valid topology: nothing arrives, or a loop does not die out.
    """
    if not observation.usable:
        raise BadInput(
            f"the observation is not usable: {observation.reason}; wait for the next one"
        )
    arrivals = tuple(_arrival(topology, arrival, observation) for arrival in topology.arrivals)
    factors = _factors(topology, arrivals, observation.operators)
    cores = topology.cores if observation.free_cores is None else observation.free_cores
    shared = _shared(observation, cores)
    operators = tuple(
        _operator(o, observation.operators[o.name], factors, shared.get(o.name, _Shared()))
        for o in topology.operators
    )
    return replace(topology, arrivals=arrivals, operators=operators, cores=cores)


@dataclass(frozen=True, slots=True)
class _Shared:
    """The effect of shared cores in the interval."""

    stretch: float = 1.0
    """Factor on computing times."""
    full: bool = False
    """Whether cores were full, so that waits for a core look like any other wait."""

    def alone(self, took_s: float, cpu_s: float, waited_s: float | None) -> tuple[float, float]:
        """Return the service time on a core of its own, and its CPU time.

        *waited_s* is the last known wait for anything but a core, such as I/O. CPU time is
        limited to the service time, because a record may use several cores, or the processor
        may do other work.
        """
        computes_s = min(cpu_s, took_s)
        waits_s = max(0.0, took_s - computes_s * self.stretch)
        if self.full and waited_s is not None:
            waits_s = min(waited_s, took_s - computes_s)
        return computes_s + waits_s, computes_s


def _shared(observation: Observation, cores: float | NodeCores | None) -> dict[str, _Shared]:
    """Return the effect of shared cores on operators; it is 1 for operators left out."""
    told = {
        name: o.cpu_s / o.service_s
        for name, o in observation.operators.items()
        if o.cpu_s is not None and o.service_s
    }
    if cores is None or not told:
        return {}
    if not isinstance(cores, NodeCores):
        running = {name: observation.operators[name].running for name in told}
        return dict.fromkeys(told, _pool(running, told, observation.computing_cores, cores))
    pools = {
        name: _pool(node.running, told, sum(node.computing.values()), cores.nodes[name])
        for name, node in observation.nodes.items()
        if name in cores.nodes
    }
    return {operator: _mixed(operator, observation.nodes, pools) for operator in told}


def _pool(
    running: Mapping[str, int], parts: Mapping[str, float], busy: float, cores: float
) -> _Shared:
    """Return the effect of *cores* shared by processors that compute in *parts* of service."""
    told = [(k, parts[name]) for name, k in running.items() if name in parts]
    if busy >= _FULL * cores:
        # All waits count as waits for a core: another processor would not help in either case.
        return _Shared(stretch(busy, cores, sum(k for k, _ in told)), full=True)

    def at_once(longer: float) -> float:
        return sum(k * min(1.0, part * longer) for k, part in told)

    return _Shared(settled_stretch(busy, cores, at_once))


def _mixed(
    operator: str, nodes: Mapping[str, ObservedNode], pools: Mapping[str, _Shared]
) -> _Shared:
    """Return the effect on an operator on all its nodes, weighted by its computing on each."""
    used = {name: nodes[name].computing.get(operator, 0.0) for name in pools}
    total = sum(used.values())
    if total == 0:
        return _Shared()
    parts = {name: each / total for name, each in used.items()}
    return _Shared(
        sum(parts[name] * shared.stretch for name, shared in pools.items()),
        full=sum(parts[name] for name, shared in pools.items() if shared.full) > _MOST,
    )


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
    """Return the ratio of records received from inside to those expected, by operator."""
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
        # the declared value stays if it is not measured
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
        hottest_key_name=seen.hottest_name or operator.hottest_key_name,
    )


def _hottest_key(seen: ObservedOperator) -> float:
    """Return a lower confidence bound of the share of the most frequent key.

    Among few records, the most frequent key has a large share by chance.
    """
    part, number = seen.hottest, max(1.0, seen.served)
    return _number(max(0.0, part - _SURELY * sqrt(part * (1 - part) / number)))


def _waited_s(operator: Operator) -> float | None:
    if operator.cpu_s is None:
        return None
    return max(0.0, operator.service_s - operator.cpu_s) / operator.speed


def _sure(seen: ObservedOperator) -> bool:
    """Return whether the mean service time is reliable, not dominated by a few records."""
    scv = seen.service_scv or 0.0
    return seen.samples >= LEAST_SAMPLES and scv <= MOST_ERROR**2 * seen.samples


def _number(value: float) -> float:
    return value if value >= _SMALLEST else 0.0
