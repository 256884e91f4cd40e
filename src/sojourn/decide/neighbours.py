"""The allocations one move away, and what they would give (what DRS-15 Fig. 6 plots)."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from sojourn.model.network import operator_figures, predict, stations
from sojourn.topology import Topology

__all__ = ["Neighbour", "neighbours"]


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
    """Return the *nearest* best allocations one move from *allocation*, the best first.

    Moves that an operator's bounds forbid are left out.
    """
    models = stations(topology, model)
    here = operator_figures(topology, allocation, models)

    def change_s(name: str, processors: int) -> float:
        load = topology.loads[name]
        if processors < load.min_processors:
            return inf
        after_s = models[name].wait_s(load, processors)
        return topology.visits[name] * (after_s - here[name].wait_s)

    loss_s = {
        o.name: change_s(o.name, allocation[o.name] - 1)
        for o in topology.operators
        if allocation[o.name] > o.min_processors
    }
    gain_s = {
        o.name: change_s(o.name, allocation[o.name] + 1)
        for o in topology.operators
        if allocation[o.name] < (o.max_processors or inf)
    }
    moves = sorted(
        (loss + gain, giver, taker)
        for giver, loss in loss_s.items()
        for taker, gain in gain_s.items()
        if giver != taker
    )
    return tuple(_moved(topology, allocation, model, *move) for move in moves[:nearest])


def _moved(
    topology: Topology,
    allocation: Mapping[str, int],
    model: str,
    change_s: float,
    giver: str,
    taker: str,
) -> Neighbour:
    moved = dict(allocation)
    moved[giver] -= 1
    moved[taker] += 1
    mean_s = std_s = inf
    if change_s < inf:
        predicted = predict(topology, moved, model=model)
        mean_s, std_s = predicted.mean_s, predicted.std_s
    return Neighbour(giver=giver, taker=taker, allocation=moved, mean_s=mean_s, std_s=std_s)
