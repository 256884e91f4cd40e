"""What happened in an interval, worked out: what the loop decides on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import nan

from sojourn.measure.sketch import Sketch

__all__ = ["Moments", "Observation", "ObservedOperator"]

# However much else runs on a machine, so much of it goes to who asks for it: schedulers share
# cores out, and what others had while nobody else asked is not theirs.
_LEAST_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Moments:
    """How many times were taken, their sum and the sum of their squares.

    The number is whole until smoothing counts old samples for less than new ones.

    >>> waits = Moments(3, 6.0, 14.0) + Moments(1, 4.0, 16.0)  # 1, 2, 3 and 4 seconds
    >>> waits.mean_s, waits.scv
    (2.5, 0.2)
    """

    number: float = 0.0
    sum_s: float = 0.0
    sum_ss: float = 0.0

    def __add__(self, other: "Moments") -> "Moments":
        return Moments(
            self.number + other.number, self.sum_s + other.sum_s, self.sum_ss + other.sum_ss
        )

    def __mul__(self, weight: float) -> "Moments":
        return Moments(self.number * weight, self.sum_s * weight, self.sum_ss * weight)

    @property
    def mean_s(self) -> float | None:
        """Their mean; None of none."""
        return self.sum_s / self.number if self.number > 0 else None

    @property
    def scv(self) -> float | None:
        """Their variance over the squared mean; None of fewer than two.

        The variance is that of the samples themselves, so that merging is exact.
        """
        if self.number < 2:
            return None
        squared = (self.sum_s / self.number) ** 2
        if squared == 0:
            return 0.0
        return max(0.0, self.sum_ss / self.number / squared - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedOperator:
    """What happened at one operator.

    *arrival_scv* is None where too few bins, or too little in them, tell it, and *bins* is
    how many did. *wanted* and *running* processors and the *backlog* are those at the end.
    *utilisation* is the share of the time that processors were busy; a record counts where
    it is done, so one that took long may bring it above 1. *cpu_s* are the mean CPU seconds
    of a record, None where nothing was served or nobody counts them; *memory_bytes* is what
    all its processors hold, *bytes_per_s* goes through each stream. *transfer* are the waits
    of those that found a processor idle; they are part of *wait* as well. *hottest* is the
    part of its records that have the most frequent key, 0 where it reads none by key;
    *missing* says why fewer processors run than are wanted, if some cannot start.
    """

    name: str
    wanted: int
    running: int
    backlog: int
    arrivals_per_s: float
    served_per_s: float
    served: float
    service: Moments
    wait: Moments
    arrival_scv: float | None = None
    bins: float = 0
    utilisation: float | None = None
    cpu_s: float | None = None
    memory_bytes: int = 0
    bytes_per_s: Mapping[str, float] = field(default_factory=dict)
    transfer: Moments = Moments()
    hottest: float = 0.0
    missing: str = ""

    @property
    def samples(self) -> float:
        """How many records' times were taken."""
        return self.service.number

    @property
    def service_s(self) -> float | None:
        """The mean time one processor is busy with one record; None where none was timed."""
        return self.service.mean_s

    @property
    def service_scv(self) -> float | None:
        """How irregular it is; None of fewer than two samples."""
        return self.service.scv

    @property
    def wait_s(self) -> float | None:
        """The mean time a record waits for a processor; None where none was timed."""
        return self.wait.mean_s

    @property
    def sojourn_s(self) -> float | None:
        """The mean time a record waits and is served; None where none was timed."""
        if self.wait_s is None or self.service_s is None:
            return None
        return self.wait_s + self.service_s


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observation:
    """What happened from *since_s* until *at_s*.

    One that is not *usable* says why in its *reason*; the loop then holds still. *notes* say
    what was tolerated: lost reports, processors that were left out. *arrivals_per_s* are the
    roots from outside, λ₀, *streams* the same for each stream where that is known. *cores*
    are those of the machine, *busy_cores* how many of them all that runs there kept busy.
    While it is *warming* the application has just started, and no times are told. *commits*
    batches ended in it, which every record that came meanwhile had to wait for.

    >>> Observation.unusable(0, 10, "split: service_s of p1 is nan").usable
    False
    """

    since_s: float
    at_s: float
    usable: bool = True
    reason: str = ""
    notes: tuple[str, ...] = ()
    operators: Mapping[str, ObservedOperator] = field(default_factory=dict)
    arrivals_per_s: float = nan
    completed_per_s: float = nan
    streams: Mapping[str, float] = field(default_factory=dict)
    completions: Sketch = field(default_factory=Sketch.empty)
    sums: Sketch = field(default_factory=Sketch.empty)
    cores: float | None = None
    busy_cores: float | None = None
    warming: bool = False
    commits: int = 0

    @classmethod
    def unusable(cls, since_s: float, at_s: float, reason: str) -> "Observation":
        """Return the observation of an interval that nothing is known of."""
        return cls(since_s=since_s, at_s=at_s, usable=False, reason=reason)

    @property
    def lasted_s(self) -> float:
        """How long the interval was."""
        return self.at_s - self.since_s

    @property
    def computing_cores(self) -> float:
        """The cores that records kept busy, of those operators that tell."""
        return sum(o.served_per_s * (o.cpu_s or 0.0) for o in self.operators.values())

    @property
    def free_cores(self) -> float | None:
        """The cores that nothing but records could have; None where nobody looked.

        What else runs on the machine is what is busy beyond those that compute records.
        """
        if self.cores is None:
            return None
        others = max(0.0, (self.busy_cores or 0.0) - self.computing_cores)
        return max(self.cores - others, _LEAST_SHARE * self.cores)

    @property
    def mean_s(self) -> float:
        """The sojourns of all records of a root's tree added up, E[T]; NaN of none."""
        return self.sums.mean_s

    def percentile_s(self, ratio: float) -> float:
        """Return the completion that *ratio* of the roots stay below; NaN of none."""
        return self.completions.percentile_s(ratio)
