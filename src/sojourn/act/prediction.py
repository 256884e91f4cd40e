"""Predictions for an allocation that may not keep up."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, inf, sqrt

from sojourn.errors import EndlessLoop, HotKey, TooFewCores, UnstableStation
from sojourn.model.network import mean_s, operator_figures, predict, stations
from sojourn.topology import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """The predicted latency of an allocation."""

    seconds: float
    """The requested statistic."""
    mean_s: float
    sojourns_s: Mapping[str, float]
    """Mean sojourn time at each operator."""


def figures(
    topology: Topology, allocation: Mapping[str, int], *, model: str, statistic: str
) -> Outlook | None:
    """Return the prediction for *allocation*, or None if it does not keep up."""
    try:
        operators = operator_figures(topology, allocation, stations(topology, model))
        mean = seconds = mean_s(topology, allocation, model=model)
        if statistic != "mean":  # a percentile takes about ten times as long to compute
            seconds = predict(topology, allocation, model=model).percentiles_s[statistic]
    except (UnstableStation, HotKey, TooFewCores, EndlessLoop):
        return None
    return Outlook(
        seconds=seconds,
        mean_s=mean,
        # with the transfer, because measured waits include it
        sojourns_s={
            name: o.transfer_s + o.wait_s + o.service_s for name, o in operators.items()
        },
    )


def floor_s(topology: Topology, *, model: str, statistic: str) -> float:
    """Return the statistic with practically unlimited processors; inf if that fails."""
    # square-root staffing with a wide margin, so that nothing waits for a processor
    plenty = {
        name: load.min_processors + ceil(10 * sqrt(load.erlangs)) + 10
        for name, load in topology.loads.items()
    }
    reached = figures(topology, plenty, model=model, statistic=statistic)
    return inf if reached is None else reached.seconds
