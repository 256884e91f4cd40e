"""Building the simulated world from a topology."""

from collections.abc import Mapping
from math import ceil, log, sqrt

import numpy as np
from numpy.typing import NDArray

from sojourn.errors import BadWorkload
from sojourn.simulate import draws
from sojourn.simulate.kernel import ARRIVE
from sojourn.simulate.layout import (
    ENTRY,
    KEY,
    OPERATOR,
    RATE,
    RECORD,
    ROOT,
    SLOT,
    STREAM,
    TARGET,
    WRITTEN_ROOT,
    World,
)
from sojourn.simulate.rescale import resize
from sojourn.simulate.room import scheduled, with_room
from sojourn.simulate.workload import Gaps, Keys, Rates, Service, Workload
from sojourn.topology import Operator, Topology

__all__ = ["build", "room_for"]

_SHAPES = {
    "exponential": draws.EXPONENTIAL,
    "constant": draws.CONSTANT,
    "gamma": draws.GAMMA,
    "lognormal": draws.LOGNORMAL,
    "hyperexponential": draws.HYPEREXPONENTIAL,
    "measured": draws.MEASURED,
}
_GAPS = {
    "renewal": draws.RENEWAL,
    "uniform": draws.UNIFORM,
    "on_off": draws.ON_OFF,
    "batches": draws.BATCHES,
}
_DISPATCH = {
    "shared": draws.SHARED,
    "round_robin": draws.ROUND_ROBIN,
    "by_key": draws.BY_KEY,
    "shortest": draws.SHORTEST,
}
# Records, roots and events for a start; whatever is in flight, arrays grow to hold it.
_START = 1024
# A processor takes about a hundred bytes.
_MOST_PROCESSORS = 10_000_000


def room_for(topology: Topology, workload: Workload) -> int:
    """Return the most records that one event may add."""
    most = max(sum(ceil(m) for m in o.emits.values()) for o in topology.operators)
    if workload.spread:
        most = 10 * most + 50  # beyond ten times its mean a Poisson number does not get
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
) -> World:
    """Return the world at time 0, with the first arrivals on their way.

    Raise `BadWorkload` if it is too large, or a distribution does not fit an operator.
    """
    workload.check(topology)
    if sum(allocation.values()) > _MOST_PROCESSORS:
        raise BadWorkload(
            f"{sum(allocation.values())} processors are too many to simulate; "
            f"the limit is {_MOST_PROCESSORS}"
        )
    index = {name: i for i, name in enumerate(topology.operator)}
    operators = np.zeros(len(index), OPERATOR)
    targets, keys, samples_s = (
        list[tuple[int, float]](),
        list[NDArray[np.void]](),
        list[float](),
    )
    first_slot = 0
    for operator, row in zip(topology.operators, operators, strict=True):
        _serve(
            row, topology, operator, workload.service.get(operator.name, Service()), samples_s
        )
        row["first_slot"], row["slots"] = first_slot, allocation[operator.name]
        first_slot += allocation[operator.name]
        how = workload.dispatch.get(operator.name, operator.dispatch)
        row["dispatch"], row["wire_s"] = _DISPATCH[how], operator.transfer_s
        row["one_of"], row["spread"] = operator.route == "one_of", workload.spread
        row["first_target"] = len(targets)
        targets += [(index[t], mean) for t, mean in topology.gains[operator.name].items()]
        row["end_target"] = len(targets)
        if how == "by_key":
            row["first_key"] = sum(map(len, keys))
            keys.append(_alias(workload.keys.get(operator.name, Keys())))
            row["end_key"] = sum(map(len, keys))
    streams, entries, rates = _streams(topology, workload, index)
    room = room_for(topology, workload)
    world = World(
        clock_s=np.zeros(1),
        tally=np.zeros(8, np.int64),
        event_s=np.zeros(_START),
        event=np.zeros(_START, np.int64),
        records=_linked(_START, RECORD),
        roots=_linked(_START, ROOT),
        operators=operators,
        slots=np.zeros(first_slot, SLOT),
        targets=np.array(targets or [(0, 0.0)], TARGET),
        streams=streams,
        entries=np.array(entries, ENTRY),
        rates=np.array(rates, RATE),
        keys=np.concatenate(keys) if keys else np.zeros(1, KEY),
        samples_s=np.array(samples_s or [0.0]),
        arrived=np.zeros((len(index), 1), np.int64),
        window=np.array([0.0, 1.0]),
        written=np.zeros(buffer, WRITTEN_ROOT),
        children=np.zeros(room, np.int64),
        sample_every=np.array([sample_every]),
    )
    world = with_room(world, room)
    for i in range(len(index)):
        world = resize(world, i, int(operators[i]["slots"]))
    for i, stream in enumerate(streams):
        first_s = draws.next_arrival_s(stream, world.rates, rng)
        if first_s < np.inf:
            world = scheduled(world, first_s, 4 * i + ARRIVE)
    return world


def _linked(size: int, dtype: np.dtype[np.void]) -> NDArray[np.void]:
    """Return records that are all free, each leading to the next."""
    array = np.zeros(size, dtype)
    array["next"] = np.arange(1, size + 1)
    return array


def _serve(
    row: np.void,
    topology: Topology,
    operator: Operator,
    service: Service,
    samples_s: list[float],
) -> None:
    """Fill in how long services take."""
    load = topology.loads[operator.name]
    mean_s, scv, shape = load.service_s, load.service_scv, service.shape
    if shape == "auto":
        shape = "constant" if scv == 0 else "exponential" if scv == 1 else "gamma"
    if mean_s == 0 or (scv == 0 and shape in ("gamma", "lognormal")):
        shape = "constant"
    row["service"], row["a"] = _SHAPES[shape], mean_s
    if shape == "gamma":
        row["a"], row["b"] = 1 / scv, mean_s * scv
    elif shape == "lognormal":
        row["a"], row["b"] = log(mean_s) - log(1 + scv) / 2, sqrt(log(1 + scv))
    elif shape == "hyperexponential":
        if scv < 1:
            raise BadWorkload(
                f"{operator.name}: scv is {scv}, but that of a hyperexponential time is 1 or "
                "more; choose gamma or lognormal"
            )
        # balanced means: both kinds of records bring the same work
        often = (1 + sqrt((scv - 1) / (scv + 1))) / 2
        row["a"], row["b"], row["c"] = mean_s / (2 * often), mean_s / (2 * (1 - often)), often
    elif shape == "measured":
        row["first_sample"] = len(samples_s)
        samples_s += service.times_s
        row["end_sample"] = len(samples_s)
        row["a"] = mean_s * len(service.times_s) / sum(service.times_s)


def _streams(
    topology: Topology, workload: Workload, index: Mapping[str, int]
) -> tuple[NDArray[np.void], list[tuple[int, float]], list[tuple[float, float]]]:
    streams = np.zeros(len(topology.arrivals), STREAM)
    entries, rates = list[tuple[int, float]](), list[tuple[float, float]]()
    for arrival, row in zip(topology.arrivals, streams, strict=True):
        gaps = workload.gaps.get(arrival.name, Gaps())
        row["gaps"], row["a"] = _GAPS[gaps.shape], arrival.scv
        if gaps.shape == "uniform":
            middle = (gaps.low + gaps.high) / 2
            row["a"], row["b"] = gaps.low / middle, gaps.high / middle
        elif gaps.shape == "on_off":
            # lengths in gaps of mean 1, at the rate the topology gives, if it does
            per_s = arrival.per_s or 1.0
            row["a"], row["b"] = gaps.on_s * per_s, gaps.off_s * per_s
            row["left"] = row["a"]
        elif gaps.shape == "batches":
            row["a"] = gaps.size
        row["first_entry"] = len(entries)
        entries += [(index[target], share) for target, share in arrival.shares.items()]
        row["end_entry"] = len(entries)
        row["rate"] = len(rates)
        rates += workload.rates.get(arrival.name, Rates(((0.0, arrival.per_s),))).points
        row["end_rate"] = len(rates)
    return streams, entries, rates


def _alias(keys: Keys) -> NDArray[np.void]:
    """Return Walker's alias table: any key in two draws, however many there are."""
    table = np.zeros(keys.number, KEY)
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
