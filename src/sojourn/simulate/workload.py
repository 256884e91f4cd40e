"""The workload of a simulation: distributions of times, rates that change, and settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal, cast, get_args

from sojourn.errors import BadTarget, BadWorkload
from sojourn.measure.duration import read_duration_s
from sojourn.text import shown
from sojourn.topology import Arrival, Topology

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
    """The distribution of service times with the operator's `service_s` and `service_scv`.

    `auto` is constant for an scv of 0, exponential for 1, gamma otherwise. `measured` draws
    from *times_s*, scaled to the mean of the operator, with their own scv.
    """

    shape: ServiceShape = "auto"
    times_s: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        _known("a shape of service times", self.shape, get_args(ServiceShape))
        if self.shape == "measured":
            usable = [isfinite(time_s) and time_s >= 0 for time_s in self.times_s]
            if not any(self.times_s) or not all(usable):
                raise BadWorkload(
                    f"some of {len(self.times_s)} measured service times are negative, NaN or "
                    "infinite, or all are 0; give seconds above 0"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """The distribution of the gaps between arrivals.

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
            raise BadWorkload(
                f"gaps are {self.low} to {self.high} times the mean; write 0 or more, and the "
                "smaller number first"
            )
        if not (0 < self.on_s < float("inf") and 0 <= self.off_s < float("inf")):
            raise BadWorkload(
                f"bursts last {self.on_s} s, with pauses of {self.off_s} s; write more than 0 "
                "s for bursts, and 0 s or more for pauses"
            )
        if self.size < 1:
            raise BadWorkload(f"the size of batches is {self.size}; write 1 or more")

    @classmethod
    def read(cls, text: str) -> "Gaps":
        """Return the gaps in `uniform`, `on_off:2s:5s` or `batches:10`.

        >>> Gaps.read("on_off:2s:5s").off_s, Gaps.read("batches:10").size
        (5.0, 10)
        """
        name, *values = text.split(":")
        if name not in get_args(GapShape) or not values:
            return cls(shape=cast("GapShape", name))  # which refuses an unknown shape
        try:
            if name == "on_off":
                on_s, off_s = map(read_duration_s, values)
                return cls(shape="on_off", on_s=on_s, off_s=off_s)
            if name == "batches":
                (size,) = map(int, values)
                return cls(shape="batches", size=size)
        except (BadTarget, ValueError):
            pass  # refused below
        raise BadWorkload(
            f"{shown(text)} is not a pattern of arrivals; "
            "write on_off:2s:5s, batches:10, or the name alone"
        )


@dataclass(frozen=True, slots=True)
class Rates:
    """A rate that is interpolated between points, and stays at the last one.

    >>> Rates.steps((0, 6), (360, 12)).points
    ((0.0, 6.0), (360.0, 6.0), (360.0, 12.0))
    """

    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        if not self.points or self.points[0][0] != 0:
            raise BadWorkload("the rates do not begin at 0 s; add a point at 0")
        for at_s, per_s in self.points:
            if not (isfinite(at_s) and isfinite(per_s) and per_s >= 0):
                raise BadWorkload(
                    f"the rate at {at_s} s is {per_s} per second; write 0 or more"
                )
        times = [at_s for at_s, _ in self.points]
        if times != sorted(times):
            raise BadWorkload("the times of a rate are not in order; sort them")

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

    def among(self, arrivals: Sequence[Arrival]) -> dict[str, "Rates"]:
        """Return these rates divided among *arrivals*, in proportion to their rates."""
        all_per_s = sum(arrival.per_s for arrival in arrivals)
        return {arrival.name: self.times(arrival.per_s / all_per_s) for arrival in arrivals}

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
    """Keys of records, for dispatch by key: the n-th has a weight of n to the minus *zipf*."""

    number: int = 1000
    zipf: float = 0.0

    def __post_init__(self) -> None:
        if self.number < 1 or not 0 <= self.zipf < float("inf"):
            raise BadWorkload(
                f"{self.number} keys with exponent {self.zipf}; write 1 key or more, and an "
                "exponent of 0 or more"
            )

    @property
    def weights(self) -> Sequence[float]:
        """How often each key occurs, in parts of 1."""
        raw = [rank**-self.zipf for rank in range(1, self.number + 1)]
        total = sum(raw)
        return [weight / total for weight in raw]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Distributions by operator and by arrival; the default is given by the topology.

    With *spread* the number of records sent is Poisson distributed; otherwise it is the mean,
    rounded down or up at random.
    """

    service: Mapping[str, Service] = field(default_factory=dict)
    gaps: Mapping[str, Gaps] = field(default_factory=dict)
    rates: Mapping[str, Rates] = field(default_factory=dict)
    dispatch: Mapping[str, Dispatching] = field(default_factory=dict)
    keys: Mapping[str, Keys] = field(default_factory=dict)
    spread: bool = False

    @classmethod
    def everywhere(cls, topology: Topology, *, service: Service, gaps: Gaps) -> "Workload":
        """Return the workload in which all operators and arrivals have the same ones."""
        return cls(
            service=dict.fromkeys(topology.operator, service),
            gaps={arrival.name: gaps for arrival in topology.arrivals},
        )

    def check(self, topology: Topology) -> None:
        """Raise `BadWorkload` if an operator or arrival is not in *topology*."""
        arrivals = {arrival.name for arrival in topology.arrivals}
        named = (*self.service, *self.dispatch, *self.keys)
        for what, names, known in (
            ("operator", named, set(topology.operator)),
            ("arrival", (*self.gaps, *self.rates), arrivals),
        ):
            for name in names:
                if name not in known:
                    known_are = ", ".join(sorted(known))
                    raise BadWorkload(
                        f"there is no {what} {shown(name)}; write one of {known_are}"
                    )


def _known(what: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise BadWorkload(f"{shown(value)} is not {what}; write one of {', '.join(choices)}")
