"""The workload of a simulation: distributions of times, changing rates, dispatch and keys.

And the other settings of a simulation beside the topology.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil, isfinite
from typing import Literal, cast, get_args

from sojourn.errors import BadTarget, BadWorkload
from sojourn.measure.duration import read_duration_s
from sojourn.simulate.nodes import NodeSettings
from sojourn.text import shown
from sojourn.topology import Arrival, Topology

ServiceShape = Literal[
    "auto", "exponential", "constant", "gamma", "lognormal", "hyperexponential", "measured"
]
GapShape = Literal["renewal", "uniform", "on_off", "batches"]
Dispatching = Literal["shared", "round_robin", "by_key", "shortest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The distribution of service times; the operator has its mean and scv.

    `auto` is constant for an scv of 0, exponential for 1, and gamma otherwise.
    """

    shape: ServiceShape = "auto"
    times_s: tuple[float, ...] = ()
    """Samples for `measured`, scaled to the mean of the operator; their own scv applies."""

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

    - `renewal`: gamma distributed with the `scv` of the arrival (Poisson at 1)
    - `uniform`: uniformly distributed
    - `on_off`: a Poisson stream that is on and off in turn, for exponential times
    - `batches`: Poisson batches of roots that arrive together
    """

    shape: GapShape = "renewal"
    low: float = 0.0
    """Shortest gap for `uniform`, as a multiple of the mean."""
    high: float = 2.0
    """Longest gap for `uniform`, as a multiple of the mean."""
    on_s: float = 1.0
    """Mean duration of bursts for `on_off`."""
    off_s: float = 1.0
    """Mean duration of pauses for `on_off`."""
    size: int = 1
    """Roots in each batch for `batches`."""

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
        """Parse gaps such as `uniform`, `on_off:2s:5s` or `batches:10`.

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
    """A rate that is interpolated linearly between points, and constant after the last one.

    >>> Rates.steps((0, 6), (360, 12)).points
    ((0.0, 6.0), (360.0, 6.0), (360.0, 12.0))
    """

    points: tuple[tuple[float, float], ...]
    """Pairs of a time and a rate per second, in order of time, from 0 on."""

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
        """Return a rate that jumps to each value at its time, and is constant in between."""
        points: list[tuple[float, float]] = []
        for at_s, per_s in changes:
            if points:
                points.append((float(at_s), points[-1][1]))
            points.append((float(at_s), float(per_s)))
        return cls(tuple(points))

    @property
    def mean_per_s(self) -> float:
        """The mean rate until the last point."""
        until_s = self.points[-1][0]
        if until_s == 0:
            return self.points[-1][1]
        roots = sum(
            (later_s - at_s) * (per_s + later_per_s) / 2
            for (at_s, per_s), (later_s, later_per_s) in pairwise(self.points)
        )
        return roots / until_s

    def times(self, factor: float) -> "Rates":
        return Rates(tuple((at_s, per_s * factor) for at_s, per_s in self.points))

    def repeated(self, until_s: float) -> "Rates":
        """Return these rates, again and again until a time.

        >>> Rates.steps((0, 6), (10, 12), (20, 12)).repeated(30).points[-2:]
        ((20.0, 6.0), (30, 6.0))
        """
        period_s = self.points[-1][0]
        if not (0 < until_s < float("inf") and period_s > 0):
            raise BadWorkload(
                f"rates of {period_s:g} s cannot be repeated until {until_s:g} s; give two "
                "points or more, and a time above 0"
            )
        points = [
            (number * period_s + at_s, per_s)
            for number in range(ceil(until_s / period_s) + 1)
            for at_s, per_s in self.points
        ]
        within = [point for point in points if point[0] < until_s]
        before, after = points[len(within) - 1 : len(within) + 1]
        # of a jump at the end, the rate before it
        part = (until_s - before[0]) / (after[0] - before[0]) if after[0] > before[0] else 0.0
        return Rates((*within, (until_s, before[1] + part * (after[1] - before[1]))))

    def among(self, arrivals: Sequence[Arrival]) -> dict[str, "Rates"]:
        """Return these rates divided among *arrivals*, in proportion to their own rates."""
        all_per_s = sum(arrival.per_s for arrival in arrivals)
        return {arrival.name: self.times(arrival.per_s / all_per_s) for arrival in arrivals}

    def at(self, second: float) -> float:
        """Return the rate at a time; at a jump, the rate after it."""
        before = self.points[0]
        for point in self.points[1:]:
            if point[0] > second:
                part = (second - before[0]) / (point[0] - before[0])
                return before[1] + part * (point[1] - before[1])
            before = point
        return before[1]


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys of records, for dispatch by key, with a Zipf distribution."""

    number: int = 1000
    zipf: float = 0.0
    """Exponent: the n-th key has a weight of n to the minus *zipf*; 0 is uniform."""

    def __post_init__(self) -> None:
        if self.number < 1 or not 0 <= self.zipf < float("inf"):
            raise BadWorkload(
                f"{self.number} keys with exponent {self.zipf}; write 1 key or more, and an "
                "exponent of 0 or more"
            )

    @property
    def weights(self) -> Sequence[float]:
        raw = [rank**-self.zipf for rank in range(1, self.number + 1)]
        total = sum(raw)
        return [weight / total for weight in raw]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Distributions by operator and by arrival, which replace defaults from the topology."""

    service: Mapping[str, Service] = field(default_factory=dict)
    """Service times, by operator."""
    gaps: Mapping[str, Gaps] = field(default_factory=dict)
    """Gaps, by arrival."""
    rates: Mapping[str, Rates] = field(default_factory=dict)
    """Rates over time, by arrival."""
    dispatch: Mapping[str, Dispatching] = field(default_factory=dict)
    """Dispatch, by operator."""
    keys: Mapping[str, Keys] = field(default_factory=dict)
    """Keys, by operator, for dispatch by key."""
    spread: bool = False
    """If True, the number of records sent is Poisson distributed; otherwise it is the mean,
    rounded down or up at random."""

    @classmethod
    def everywhere(cls, topology: Topology, *, service: Service, gaps: Gaps) -> "Workload":
        """Return the workload with the same distributions for all operators and arrivals."""
        return cls(
            service=dict.fromkeys(topology.operator, service),
            gaps={arrival.name: gaps for arrival in topology.arrivals},
        )

    def check(self, topology: Topology) -> None:
        """Raise `BadWorkload` if it names an operator or arrival that is not in *topology*."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorSettings:
    """Settings of the simulator in addition to the topology."""

    workload: Workload = field(default_factory=Workload)
    seed: int = 1
    """Seed of all random draws."""
    pause_s: float = 0.0
    """Pause of each operator that a plan changes."""
    sample_every: int = 1
    """One record in this many is timed."""
    nodes: NodeSettings | None = None
    """Nodes that plans can request and release; None simulates a single machine."""


def _known(what: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise BadWorkload(f"{shown(value)} is not {what}; write one of {', '.join(choices)}")
