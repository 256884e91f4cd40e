"""What the model says of an allocation."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, inf, sqrt

from sojourn.errors import EndlessLoop, HotKey, TooFewCores, UnstableStation
from sojourn.model.network import mean_s, operator_figures, predict, stations
from sojourn.topology import Topology

__all__ = ["Outlook", "figures", "floor_s"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What an allocation would do: the statistic asked for, the mean, times at operators."""

    seconds: float
    mean_s: float
    sojourns_s: Mapping[str, float]


def figures(
    topology: Topology, allocation: Mapping[str, int], *, model: str, statistic: str
) -> Outlook | None:
    """Return what *allocation* would do; None where it does not keep up."""
    try:
        operators = operator_figures(topology, allocation, stations(topology, model))
        mean = seconds = mean_s(topology, allocation, model=model)
        if statistic != "mean":  # a percentile takes some ten times as long to work out
            seconds = predict(topology, allocation, model=model).percentiles_s[statistic]
    except (UnstableStation, HotKey, TooFewCores, EndlessLoop):
        return None
    return Outlook(
        seconds=seconds,
        mean_s=mean,
        # the way there is measured as a part of the wait
        sojourns_s={
            name: o.transfer_s + o.wait_s + o.service_s for name, o in operators.items()
        },
    )


def floor_s(topology: Topology, *, model: str, statistic: str) -> float:
    """Return what the statistic is when nothing waits."""
    plenty = {
        name: load.min_processors + ceil(10 * sqrt(load.erlangs)) + 10
        for name, load in topology.loads.items()
    }
    reached = figures(topology, plenty, model=model, statistic=statistic)
    return inf if reached is None else reached.seconds
