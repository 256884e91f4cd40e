"""What a simulation must know beside the topology: shapes of times, rates that change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal, get_args

from sojourn.errors import BadWorkload
from sojourn.topology import Topology
from sojourn.topology.check import shown

__all__ = [
    "Dispatching",
    "GapShape",
    "Gaps",
    "Keys",
    "Rates",
    "Service",
    "ServiceShape",
    "Workload",
]

ServiceShape = Literal[
    "auto", "exponential", "constant", "gamma", "lognormal", "hyperexponential", "measured"
]
GapShape = Literal["renewal", "uniform", "on_off", "batches"]
Dispatching = Literal["shared", "round_robin", "by_key", "shortest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """How service times are distributed around the operator's `service_s` and `service_scv`.

    `auto` is constant for an scv of 0, exponential for 1, gamma otherwise. `measured` draws
    from *times_s*, scaled to the mean of the operator; their own scv counts.
    """

    shape: ServiceShape = "auto"
    times_s: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        _known("a shape of service times", self.shape, get_args(ServiceShape))
        if self.shape == "measured":
            usable = [isfinite(time_s) and time_s >= 0 for time_s in self.times_s]
            if not any(self.times_s) or not all(usable):
                raise BadWorkload(
                    f"of {len(self.times_s)} measured service times some are negative, NaN or "
                    "infinite, or all of them 0; give seconds above 0"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """How the gaps between arrivals are distributed around their mean.

    `renewal` are gamma distributed with the `scv` of the arrival (Poisson at 1); `uniform`
    between *low* and *high* times the mean; `on_off` a Poisson stream that is on for *on_s*
    and off for *off_s* on average; `batches` *size* roots at once, in Poisson batches.
    """

    shape: GapShape = "renewal"
    low: float = 0.0
    high: float = 2.0
    on_s: float = 1.0
    off_s: float = 1.0
    size: int = 1

    def __post_init__(self) -> None:
        _known("a shape of gaps", self.shape, get_args(GapShape))
        if not 0 <= self.low <= self.high < float("inf") or self.high == 0:
            raise BadWorkload(f"gaps from {self.low} to {self.high} times the mean cannot be")
        if not (0 < self.on_s < float("inf") and 0 <= self.off_s < float("inf")):
            raise BadWorkload(f"bursts of {self.on_s} s with {self.off_s} s between cannot be")
        if self.size < 1:
            raise BadWorkload(f"batches of {self.size} roots cannot be; write 1 or more")


@dataclass(frozen=True, slots=True)
class Rates:
    """A rate that goes in straight lines from point to point, and stays at the last.

    >>> Rates.steps((0, 6), (360, 12)).points
    ((0.0, 6.0), (360.0, 6.0), (360.0, 12.0))
    """

    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        if not self.points or self.points[0][0] != 0:
            raise BadWorkload("a rate needs to be said from 0 s on")
        for at_s, per_s in self.points:
            if not (isfinite(at_s) and isfinite(per_s) and per_s >= 0):
                raise BadWorkload(f"{per_s} per second at {at_s} s is no rate; write 0 or more")
        times = [at_s for at_s, _ in self.points]
        if times != sorted(times):
            raise BadWorkload("the times of a rate go back; sort them")

    @classmethod
    def steps(cls, *changes: tuple[float, float]) -> "Rates":
        """Return a rate that jumps to each value at its time, and stays there."""
        points: list[tuple[float, float]] = []
        for at_s, per_s in changes:
            if points:
                points.append((float(at_s), points[-1][1]))
            points.append((float(at_s), float(per_s)))
        return cls(tuple(points))

    def times(self, factor: float) -> "Rates":
        """Return rates *factor* times as high."""
        return Rates(tuple((at_s, per_s * factor) for at_s, per_s in self.points))

    def at(self, second: float) -> float:
        """Return the rate at a time; at a jump, that from then on."""
        before = self.points[0]
        for point in self.points[1:]:
            if point[0] > second:
                part = (second - before[0]) / (point[0] - before[0])
                return before[1] + part * (point[1] - before[1])
            before = point
        return before[1]


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys of records, for dispatch by key: the n-th as frequent as n to the minus *zipf*."""

    number: int = 1000
    zipf: float = 0.0

    def __post_init__(self) -> None:
        if self.number < 1 or not 0 <= self.zipf < float("inf"):
            raise BadWorkload(f"{self.number} keys with exponent {self.zipf} cannot be")

    @property
    def weights(self) -> Sequence[float]:
        """How often each key occurs, in parts of 1."""
        raw = [rank**-self.zipf for rank in range(1, self.number + 1)]
        total = sum(raw)
        return [weight / total for weight in raw]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Shapes by operator and by arrival; what is not named is as the topology has it.

    With *spread* the number of records sent is Poisson around its mean; otherwise it is the
    whole part of the mean, and at times one more.
    """

    service: Mapping[str, Service] = field(default_factory=dict)
    gaps: Mapping[str, Gaps] = field(default_factory=dict)
    rates: Mapping[str, Rates] = field(default_factory=dict)
    dispatch: Mapping[str, Dispatching] = field(default_factory=dict)
    keys: Mapping[str, Keys] = field(default_factory=dict)
    spread: bool = False

    def check(self, topology: Topology) -> None:
        """Raise `BadWorkload` if a shape is named for what *topology* does not have."""
        arrivals = {arrival.name for arrival in topology.arrivals}
        named = (*self.service, *self.dispatch, *self.keys)
        for what, names, known in (
            ("operator", named, set(topology.operator)),
            ("arrival", (*self.gaps, *self.rates), arrivals),
        ):
            for name in names:
                if name not in known:
                    known_are = ", ".join(sorted(known))
                    raise BadWorkload(f"there is no {what} {shown(name)}, only {known_are}")


def _known(what: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise BadWorkload(f"{shown(value)} is not {what}; write one of {', '.join(choices)}")
