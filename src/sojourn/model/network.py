"""The prediction for the whole network under an allocation.

It has two latencies. `mean_s` is DRS's E[T] = Σ visitsᵢ · sojournᵢ (DRS-15 eq. 3): the sum of
the sojourns of all records of a root, including parallel branches. Plans for a mean optimise
it. Completion is the latency that users see: the time until the last record of the root's tree
is processed. If no record has two children, both have the same mean.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, floor, log2

import numpy as np

from sojourn.errors import BadAllocation, HotKey, UnstableStation
from sojourn.model.calibration import Calibration
from sojourn.model.completion import Completion
from sojourn.model.cores import Computing, computing, stretched
from sojourn.model.keyed import Keyed
from sojourn.model.lattice import Lattice, Masses
from sojourn.model.station import Station, station
from sojourn.text import shown
from sojourn.topology import Operator, Topology

PERCENTILES: Mapping[str, float] = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99}
"""The percentiles of completion in a prediction."""

# Points of the lattice for completion, and the part of the roots that it leaves out. A coarse
# lattice finds its horizon.
_POINTS, _COARSE_POINTS = 4096, 512
_LEFT_OUT = 1e-6
# Points of the lattice for a percentile, which ends just after it: it is exact to about a
# thousandth, even if half of the roots take a millisecond and some take minutes.
_PERCENTILE_POINTS = 1024
# The first lattice ends after at least this multiple of the mean.
_FIRST = 3
# Times below this part of the mean count as 0.
_SHORTEST = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorFigures:
    """The prediction, or the measurement, of an operator."""

    processors: int
    arrivals_per_s: float
    utilisation: float
    wait_s: float
    service_s: float
    transfer_s: float
    visits: float

    @property
    def sojourn_s(self) -> float:
        """Transfer, wait and service: from output upstream until served here."""
        return self.transfer_s + self.wait_s + self.service_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The predicted latency of an allocation."""

    name: str
    """The name of the topology."""
    model: str
    mean_s: float
    """E[T]: the mean sum of the sojourns of a root's tree."""
    completion_mean_s: float
    std_s: float
    """Standard deviation of completion."""
    percentiles_s: Mapping[str, float]
    """Percentiles of completion."""
    operators: Mapping[str, OperatorFigures]
    calibration: Calibration | None = None
    extrapolated: bool = False
    """Whether the mean is outside the range of the calibration."""
    computing: Computing | None = None
    """The effect of shared cores; None if cores are not known."""

    @property
    def allocation(self) -> Mapping[str, int]:
        return {name: operator.processors for name, operator in self.operators.items()}

    @property
    def processors(self) -> int:
        return sum(operator.processors for operator in self.operators.values())


def stations(topology: Topology, model: str) -> dict[str, Station]:
    """Return the station model of each operator.

    An operator with `dispatch: round_robin` has that model, whatever *model* is. For one with
    a hottest key, *model* is wrapped in `Keyed`, which adds the wait for that key.
    """
    chosen, dealt = station(model), station("round_robin")

    def of(operator: Operator) -> Station:
        if operator.dispatch == "round_robin":
            return dealt
        return Keyed(chosen, operator.hottest_key) if operator.hottest_key > 0 else chosen

    return {operator.name: of(operator) for operator in topology.operators}


def served_s(topology: Topology) -> float:
    """Return the mean of service and transfer, without any waiting.

    It is weighted by visits: an operator that is reached by one root in ten counts a tenth.
    """
    return sum(
        topology.visits[o.name] * (o.transfer_s + topology.loads[o.name].service_s)
        for o in topology.operators
    )


def mean_floor_s(topology: Topology, *, model: str = "gigk") -> float:
    """Return the mean with unlimited processors: records only wait for others of their key."""
    return served_s(topology) + sum(_key_waits_s(topology, model).values())


def hot_key(topology: Topology, *, model: str = "gigk") -> HotKey | None:
    """Return the key with the longest wait with unlimited processors, if any."""
    waits_s = _key_waits_s(topology, model)
    name = max(waits_s, key=lambda name: waits_s[name], default="")
    return _hot_key(topology, name) if waits_s.get(name, 0.0) > 0 else None


def _key_waits_s(topology: Topology, model: str) -> dict[str, float]:
    """Return the mean wait of a root's records for others of their key, by operator."""
    return {
        name: topology.visits[name] * station.least_wait_s(topology.loads[name])
        for name, station in stations(topology, model).items()
        if isinstance(station, Keyed) and topology.visits[name] > 0
    }


def mean_s(topology: Topology, allocation: Mapping[str, int], *, model: str = "gigk") -> float:
    """Return E[T] as `predict` does, but without computing the distribution."""
    return mean_of(operator_figures(topology, allocation, stations(topology, model)))


def predict(
    topology: Topology,
    allocation: Mapping[str, int],
    *,
    model: str = "gigk",
    calibration: Calibration | None = None,
) -> Prediction:
    """Return the prediction for *allocation*.

    Raise `BadAllocation` if it does not match the topology, `UnstableStation` if an operator
    cannot keep up, `HotKey` or `TooFewCores` if a key or the cores cannot, `CannotBeDone` if
    the calibration does not cover it.

    >>> from sojourn.topology import Arrival, Operator
    >>> counter = Topology(
    ...     name="counter",
    ...     arrivals=(Arrival(name="lines", per_s=8, into="count"),),
    ...     operators=(Operator(name="count", service_s=0.1),),
    ... )
    >>> predicted = predict(counter, {"count": 1})  # M/M/1: exponential with mean 1/(μ-λ)
    >>> predicted.mean_s, predicted.std_s, predicted.percentiles_s["p95"]
    (0.5, 0.5, 1.498)
    """
    if calibration is not None:
        return _calibrated(topology, allocation, model, calibration)
    check_allocation(topology, allocation)
    shared, topology = computing(topology, allocation), stretched(topology, allocation)
    models = stations(topology, model)
    operators = operator_figures(topology, allocation, models)
    expected_s = mean_of(operators)
    completed = _Completed(topology, models, allocation, expected_s)
    coarse, _ = completed.fitting(1 - _LEFT_OUT, _COARSE_POINTS)
    lattice = Lattice.up_to(coarse.horizon_s, _POINTS)
    masses = completed.on(lattice)
    return Prediction(
        name=topology.name,
        model=model,
        mean_s=expected_s,
        completion_mean_s=lattice.mean_s(masses) if topology.branches else expected_s,
        std_s=lattice.std_s(masses),
        percentiles_s={p: completed.percentile_s(ratio) for p, ratio in PERCENTILES.items()},
        operators=operators,
        computing=shared,
    )


def percentile_s(
    topology: Topology, allocation: Mapping[str, int], statistic: str, *, model: str = "gigk"
) -> float:
    """Return the percentile *statistic* as `predict` does, but no others."""
    check_allocation(topology, allocation)
    topology = stretched(topology, allocation)
    models = stations(topology, model)
    expected_s = mean_of(operator_figures(topology, allocation, models))
    completed = _Completed(topology, models, allocation, expected_s)
    return completed.percentile_s(PERCENTILES[statistic])


def least_s(topology: Topology, statistic: str, *, model: str = "gigk") -> float:
    """Return the mean or a percentile with unlimited processors.

    Raise `HotKey` or `TooFewCores` if a key or the cores cannot keep up.
    """
    topology = stretched(topology)
    check_keys(topology)
    mean_s = mean_floor_s(topology, model=model)
    if statistic == "mean":
        return mean_s
    unlimited = dict.fromkeys(topology.operator)
    completed = _Completed(topology, stations(topology, model), unlimited, mean_s)
    return completed.percentile_s(PERCENTILES[statistic])


def late_without_waiting(topology: Topology, seconds: float, *, model: str = "gigk") -> float:
    """Return the part of the roots that take longer than *seconds* with unlimited processors.

    Raise `HotKey` if a key cannot be served.
    """
    check_keys(topology)
    lattice = Lattice.up_to(seconds, _PERCENTILE_POINTS)
    masses = Completion(topology, stations(topology, model), lattice)(
        dict.fromkeys(topology.operator)
    )
    return max(0.0, 1 - float(masses.sum()))


def _calibrated(
    topology: Topology, allocation: Mapping[str, int], model: str, calibration: Calibration
) -> Prediction:
    """Return the prediction with the time per hop added, and all times scaled like the mean."""
    raw = predict(calibration.topology(topology), allocation, model=model)
    ratio = calibration(raw.mean_s) / raw.mean_s if raw.mean_s > 0 else 1.0
    return replace(
        raw,
        mean_s=raw.mean_s * ratio,
        completion_mean_s=raw.completion_mean_s * ratio,
        std_s=raw.std_s * ratio,
        percentiles_s={p: seconds * ratio for p, seconds in raw.percentiles_s.items()},
        operators={
            name: replace(
                operator,
                wait_s=operator.wait_s * ratio,
                service_s=operator.service_s * ratio,
                transfer_s=operator.transfer_s * ratio,
            )
            for name, operator in raw.operators.items()
        },
        calibration=calibration,
        extrapolated=not calibration.covers(raw.mean_s),
    )


def operator_figures(
    topology: Topology, allocation: Mapping[str, int], models: Mapping[str, Station]
) -> dict[str, OperatorFigures]:
    """Return the prediction for each operator, without that of the network.

    Raise the same errors as `predict`.
    """
    check_allocation(topology, allocation)
    topology = stretched(topology, allocation)
    check_keys(topology)
    predicted = {}
    for name, load in topology.loads.items():
        processors = allocation[name]
        if processors < load.min_processors:
            raise UnstableStation(processors, load.min_processors, name)
        predicted[name] = OperatorFigures(
            processors=processors,
            arrivals_per_s=load.arrivals_per_s,
            utilisation=load.erlangs / processors,
            wait_s=models[name].wait_s(load, processors),
            service_s=load.service_s,
            transfer_s=topology.operator[name].transfer_s,
            visits=topology.visits[name],
        )
    return predicted


def check_keys(topology: Topology) -> None:
    """Raise `HotKey` if one processor cannot serve the hottest key of an operator.

    Its records are a queue with one server, which is stable while λ·p·s < 1.
    """
    for operator in topology.operators:
        if operator.hottest_key > 0:
            found = _hot_key(topology, operator.name)
            if found.busy >= 1:
                raise found


def _hot_key(topology: Topology, name: str) -> HotKey:
    part, key = topology.operator[name].hottest_key, topology.operator[name].hottest_key_name
    return HotKey(name, part * topology.loads[name].erlangs, part, key)


def mean_of(operators: Mapping[str, OperatorFigures]) -> float:
    """Return E[T], given the prediction for each operator."""
    return sum(operator.visits * operator.sojourn_s for operator in operators.values())


class _Completed:
    """The completion of roots under an allocation."""

    def __init__(
        self,
        topology: Topology,
        models: Mapping[str, Station],
        allocation: Mapping[str, int | None],
        expected_s: float,
    ) -> None:
        self._topology, self._models, self._allocation = topology, models, allocation
        self._expected_s = expected_s

    def on(self, lattice: Lattice) -> Masses:
        """Return the distribution on *lattice*."""
        return Completion(self._topology, self._models, lattice)(self._allocation)

    def fitting(self, ratio: float, points: int) -> tuple[Lattice, Masses]:
        """Return the lattice that ends within four times the percentile *ratio*, and masses.

        Horizons are multiples of the time of service by powers of two: allocations with a
        similar latency then share one, and services on the same lattice are computed once.
        """
        expected_s = self._expected_s
        unit_s = served_s(self._topology) or expected_s or 1.0
        power = ceil(log2(_FIRST * expected_s / unit_s)) if expected_s > 0 else 0
        grown = False  # a lattice that has grown does not shrink again, so that this ends
        while True:
            lattice = Lattice.up_to(2.0**power * unit_s, points)
            masses = self.on(lattice)
            before = lattice.first(np.cumsum(masses), ratio)
            short = before < points // 4 and lattice.step_s > _SHORTEST * expected_s > 0
            if before == points:
                power, grown = power + 1, True
            elif short and not grown:
                power -= floor(log2(points / 2 / (before + 1)))
            else:
                return lattice, masses

    def percentile_s(self, ratio: float) -> float:
        lattice, masses = self.fitting(ratio, _PERCENTILE_POINTS)
        return lattice.percentile_s(masses, ratio)


def check_allocation(topology: Topology, allocation: Mapping[str, int]) -> None:
    """Raise `BadAllocation` unless all operators, and no others, have 1 or more processors."""
    names = ", ".join(topology.operator)
    for name, processors in allocation.items():
        if name not in topology.operator:
            raise BadAllocation(f"there is no operator {shown(name)}; operators are {names}")
        if isinstance(processors, bool) or not isinstance(processors, int) or processors < 1:
            raise BadAllocation(
                f"{name}: {shown(processors)} is not a valid number of processors; "
                "write 1 or more"
            )
    forgotten = [name for name in topology.operator if name not in allocation]
    if forgotten:
        raise BadAllocation(
            f"no processors for {', '.join(forgotten)}; give every operator 1 or more"
        )
