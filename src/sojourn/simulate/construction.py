"""Construction of the simulated world from a topology."""

from collections.abc import Mapping
from math import ceil, log, sqrt

import numpy as np
from numpy.typing import NDArray

from sojourn.errors import BadWorkload
from sojourn.simulate import draws, world
from sojourn.simulate.kernel import ARRIVE
from sojourn.simulate.workload import Gaps, Keys, Rates, Service, Workload
from sojourn.topology import Topology
from sojourn.topology.load import StationLoad

# Initial room for records, roots and events; arrays grow with the records in flight.
_START = 512
# A processor takes about a hundred bytes.
_MOST_PROCESSORS = 10_000_000


def room_for(topology: Topology, workload: Workload) -> int:
    """Return the maximum number of records that one event may add."""
    most = max(sum(ceil(m) for m in o.emits.values()) for o in topology.operators)
    if workload.spread:
        most = 10 * most + 50  # a Poisson number practically never exceeds this
    batch = max((gaps.size for gaps in workload.gaps.values()), default=1)
    return max(most, batch) + 2


def build(
    topology: Topology,
    allocation: Mapping[str, int],
    workload: Workload,
    rng: np.random.Generator,
    *,
    sample_every: int,
    buffer: int,
) -> world.World:
    """Return the world at time 0, with the first arrivals scheduled.

    Raise `BadWorkload` if it is too large, or a distribution does not suit an operator.
    """
    workload.check(topology)
    if sum(allocation.values()) > _MOST_PROCESSORS:
        raise BadWorkload(
            f"{sum(allocation.values())} processors are too many to simulate; "
            f"the limit is {_MOST_PROCESSORS}"
        )
    index = {name: i for i, name in enumerate(topology.operator)}
    operators = np.zeros(len(index), world.OPERATOR)
    targets, keys = list[tuple[float, int]](), list[NDArray[np.void]]()
    samples_s, first_slot = list[float](), 0
    for operator, row in zip(topology.operators, operators, strict=True):
        service = workload.service.get(operator.name, Service())
        _serve(row, operator.name, topology.loads[operator.name], service, samples_s)
        row["first_slot"], row["slots"] = first_slot, allocation[operator.name]
        first_slot += allocation[operator.name]
        how = workload.dispatch.get(operator.name, operator.dispatch)
        row["dispatch"], row["wire_s"] = _number(how), operator.transfer_s
        row["one_of"], row["spread"] = operator.route == "one_of", workload.spread
        row["first_target"] = len(targets)
        targets += [(mean, index[t]) for t, mean in topology.gains[operator.name].items()]
        row["end_target"] = len(targets)
        if how == "shared":
            row["hottest"] = operator.hottest_key
        if how == "by_key":
            row["first_key"] = sum(map(len, keys))
            keys.append(_alias(workload.keys.get(operator.name, Keys())))
            row["end_key"] = sum(map(len, keys))
    streams, entries, rates = _streams(topology, workload, index)
    room = room_for(topology, workload)
    # the arrays of records, roots and events are allocated by `with_room` below
    built = world.World(
        clock_s=np.zeros(1),
        tally=np.zeros(8, np.int64),
        event_s=np.zeros(0),
        event=np.zeros(0, np.int64),
        records=np.zeros(0, world.RECORD),
        roots=np.zeros(0, world.ROOT),
        operators=operators,
        slots=np.zeros(first_slot, world.SLOT),
        targets=np.array(targets or [(0.0, 0)], world.TARGET),
        streams=streams,
        entries=np.array(entries, world.ENTRY),
        rates=np.array(rates, world.RATE),
        keys=np.concatenate(keys) if keys else np.zeros(1, world.KEY),
        samples_s=np.array(samples_s or [0.0]),
        arrived=np.zeros((len(index), 1), np.int64),
        window=np.array([0.0, 1.0]),
        written=np.zeros(buffer, world.WRITTEN_ROOT),
        children=np.zeros(room, np.int64),
        sample_every=np.array([sample_every]),
    )
    built = world.with_room(built, max(room, _START))
    for i in range(len(index)):
        built = world.resize(built, i, int(operators[i]["slots"]))
    for i, stream in enumerate(streams):
        first_s = draws.next_arrival_s(stream, built.rates, rng)
        if first_s < np.inf:
            built = world.scheduled(built, first_s, 4 * i + ARRIVE)
    return built


def _number(choice: str) -> int:
    """Return the constant of compiled code for a shape or a dispatch."""
    number: int = getattr(draws, choice.upper())
    return number


def _serve(
    row: np.void, name: str, load: StationLoad, service: Service, samples_s: list[float]
) -> None:
    """Set the parameters of the service time of an operator."""
    mean_s, scv, shape = load.service_s, load.service_scv, service.shape
    if shape == "auto":
        shape = "constant" if scv == 0 else "exponential" if scv == 1 else "gamma"
    if mean_s == 0 or (scv == 0 and shape in ("gamma", "lognormal")):
        shape = "constant"
    row["service"], row["a"] = _number(shape), mean_s
    if shape == "gamma":
        row["a"], row["b"] = 1 / scv, mean_s * scv
    elif shape == "lognormal":
        row["a"], row["b"] = log(mean_s) - log(1 + scv) / 2, sqrt(log(1 + scv))
    elif shape == "hyperexponential":
        if scv < 1:
            raise BadWorkload(
                f"{name}: scv is {scv}, but a hyperexponential distribution has an scv of 1 "
                "or more; choose gamma or lognormal"
            )
        # "balanced means": both exponential phases contribute the same part of the work
        often = (1 + sqrt((scv - 1) / (scv + 1))) / 2
        row["a"], row["b"], row["c"] = mean_s / (2 * often), mean_s / (2 * (1 - often)), often
    elif shape == "measured":
        row["first_sample"] = len(samples_s)
        samples_s += service.times_s
        row["end_sample"] = len(samples_s)
        row["a"] = mean_s * len(service.times_s) / sum(service.times_s)


def _streams(
    topology: Topology, workload: Workload, index: Mapping[str, int]
) -> tuple[NDArray[np.void], list[tuple[float, int]], list[tuple[float, float]]]:
    streams = np.zeros(len(topology.arrivals), world.STREAM)
    entries, rates = list[tuple[float, int]](), list[tuple[float, float]]()
    for arrival, row in zip(topology.arrivals, streams, strict=True):
        gaps = workload.gaps.get(arrival.name, Gaps())
        row["gaps"], row["a"] = _number(gaps.shape), arrival.scv
        if gaps.shape == "uniform":
            middle = (gaps.low + gaps.high) / 2
            row["a"], row["b"] = gaps.low / middle, gaps.high / middle
        elif gaps.shape == "on_off":
            # durations in units of the mean gap, at the rate of the topology if it has one
            per_s = arrival.per_s or 1.0
            row["a"], row["b"] = gaps.on_s * per_s, gaps.off_s * per_s
            row["left"] = row["a"]
        elif gaps.shape == "batches":
            row["a"] = gaps.size
        row["first_entry"] = len(entries)
        entries += [(share, index[target]) for target, share in arrival.shares.items()]
        row["end_entry"] = len(entries)
        row["rate"] = len(rates)
        rates += workload.rates.get(arrival.name, Rates(((0.0, arrival.per_s),))).points
        row["end_rate"] = len(rates)
    return streams, entries, rates


def _alias(keys: Keys) -> NDArray[np.void]:
    """Return Walker's alias table, from which a key is drawn in constant time."""
    table = np.zeros(keys.number, world.KEY)
    scaled = [weight * keys.number for weight in keys.weights]
    small = [i for i, weight in enumerate(scaled) if weight < 1]
    large = [i for i, weight in enumerate(scaled) if weight >= 1]
    while small and large:
        less, more = small.pop(), large[-1]
        table[less] = (scaled[less], more)
        scaled[more] -= 1 - scaled[less]
        if scaled[more] < 1:
            small.append(large.pop())
    for rest in small + large:
        table[rest] = (1.0, rest)
    return table
