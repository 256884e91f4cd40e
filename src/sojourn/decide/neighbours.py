"""Neighbours: allocations with one processor moved, and their predictions (DRS-15 Fig. 6)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import inf

from sojourn.errors import HotKey, UnstableStation
from sojourn.model.cores import computing
from sojourn.model.network import check_allocation, mean_s, operator_figures, predict, stations
from sojourn.topology import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """An allocation with one processor moved from *giver* to *taker*.

    *mean_s* and *std_s* are infinite where the giver could not keep up.
    """

    giver: str
    taker: str
    allocation: Mapping[str, int]
    mean_s: float
    std_s: float


def neighbours(
    topology: Topology, allocation: Mapping[str, int], *, model: str = "gigk", nearest: int = 5
) -> tuple[Neighbour, ...]:
    """Return the best allocations one move from *allocation*, at most *nearest*, best first.

    Moves outside the bounds of operators are left out.
    """
    moves = moves_s(topology, allocation, model=model)
    return tuple(_moved(topology, allocation, model, *move) for move in moves[:nearest])


def moves_s(
    topology: Topology, allocation: Mapping[str, int], *, model: str = "gigk"
) -> list[tuple[float, str, str]]:
    """Return all moves as (change of the mean, giver, taker), the best first."""
    check_allocation(topology, allocation)
    givers = [o.name for o in topology.operators if allocation[o.name] > o.min_processors]
    takers = [
        o.name for o in topology.operators if allocation[o.name] < (o.most_processors or inf)
    ]
    change_s = mean_change_s(topology, allocation, model=model)
    fewer = {name: allocation[name] - 1 for name in givers}
    more = {name: allocation[name] + 1 for name in takers}
    return sorted(
        (change_s({giver: fewer[giver], taker: more[taker]}), giver, taker)
        for giver in givers
        for taker in takers
        if giver != taker
    )


def mean_change_s(
    topology: Topology, allocation: Mapping[str, int], *, model: str
) -> Callable[[Mapping[str, int]], float]:
    """Return a function from changed processors to the change of the mean.

    Its result is infinite if an operator could not keep up.
    """
    if computing(topology) is not None:
        now_s = mean_s(topology, allocation, model=model)

        # on shared cores each change affects all operators, so the whole mean is computed
        def by_means(changed: Mapping[str, int]) -> float:
            try:
                return mean_s(topology, {**allocation, **changed}, model=model) - now_s
            except (UnstableStation, HotKey):
                return inf

        return by_means

    models = stations(topology, model)
    here = operator_figures(topology, allocation, models)

    @cache
    def by_wait(name: str, processors: int) -> float:  # other operators are not affected
        load = topology.loads[name]
        if processors < load.min_processors:
            return inf
        after_s = models[name].wait_s(load, processors)
        return topology.visits[name] * (after_s - here[name].wait_s)

    return lambda changed: sum(by_wait(name, k) for name, k in changed.items())


def moved(allocation: Mapping[str, int], giver: str, taker: str) -> dict[str, int]:
    """Return *allocation* with one processor moved from *giver* to *taker*."""
    return {**allocation, giver: allocation[giver] - 1, taker: allocation[taker] + 1}


def _moved(
    topology: Topology,
    allocation: Mapping[str, int],
    model: str,
    change_s: float,
    giver: str,
    taker: str,
) -> Neighbour:
    after, mean, std = moved(allocation, giver, taker), inf, inf
    if change_s < inf:
        predicted = predict(topology, after, model=model)
        mean, std = predicted.mean_s, predicted.std_s
    return Neighbour(giver=giver, taker=taker, allocation=after, mean_s=mean, std_s=std)
