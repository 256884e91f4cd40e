"""An observation: the measurements of an interval, on which the loop bases its decisions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import nan

from sojourn.measure.births import Births
from sojourn.measure.node_costs import NodeCosts
from sojourn.measure.sketch import Sketch
from sojourn.topology.node_cores import NodeCores

# Records can always use this part of the cores, whatever else runs on the machine: schedulers
# share cores fairly between all processes that are ready.
_LEAST_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Moments:
    """The number of sampled times, their sum, and the sum of their squares.

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

    @classmethod
    def total(cls, moments: Iterable["Moments"]) -> "Moments":
        """Return the sum of *moments*."""
        number = sum_s = sum_ss = (
            0.0  # one record for all sums: hundreds are added at each look
        )
        for each in moments:
            number += each.number
            sum_s += each.sum_s
            sum_ss += each.sum_ss
        return cls(number, sum_s, sum_ss)

    @property
    def mean_s(self) -> float | None:
        """The mean; None without samples."""
        return self.sum_s / self.number if self.number > 0 else None

    @property
    def scv(self) -> float | None:
        """The variance over the squared mean; None with fewer than two samples.

        The variance is not corrected for the sample size, so that merging is exact.
        """
        if self.number < 2:
            return None
        squared = (self.sum_s / self.number) ** 2
        if squared == 0:
            return 0.0
        return max(0.0, self.sum_ss / self.number / squared - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedOperator:
    name: str
    wanted: int
    """Processors that should run, at the end of the interval."""
    running: int
    """Processors that run, at the end of the interval."""
    backlog: int
    """Waiting records at the end of the interval."""
    arrivals_per_s: float
    served_per_s: float
    served: float
    """Number of records served."""
    service: Moments
    wait: Moments
    """Waits for a processor, `transfer` included."""
    arrival_scv: float | None = None
    """Variability of arrivals; None if there are too few bins, or too few arrivals in them."""
    bins: float = 0
    """Number of bins used for `arrival_scv`."""
    utilisation: float | None = None
    """Part of the time in which processors were busy. A record counts in the interval in which
    it completes, so a long one may raise this above 1."""
    cpu_s: float | None = None
    """Mean CPU time of a record; None if not measured, or nothing was served."""
    longest_service_s: float | None = None
    """Longest service time of a record, outlier processors included; None as for `cpu_s`."""
    memory_bytes: int = 0
    """Memory of all processors."""
    bytes_per_s: Mapping[str, float] = field(default_factory=dict)
    """Bytes per second of each stream."""
    transfer: Moments = Moments()
    """Waits of records that found an idle processor; `wait` includes them."""
    hottest: float = 0.0
    """Share of the records with the most frequent key; 0 if none are read by key."""
    hottest_name: str = ""
    """The most frequent key, if known."""
    missing: str = ""
    """The reason why wanted processors do not start."""
    at_work: int | None = None
    """Processors with records at the end of the interval; None if not measured."""

    @property
    def key_busy(self) -> float | None:
        """The load of the most frequent key on its one processor; None if unknown.

        From 1 on its queue grows without bound, with any number of processors.
        """
        if self.hottest == 0 or self.service.mean_s is None:
            return None
        return self.hottest * self.arrivals_per_s * self.service.mean_s

    @property
    def samples(self) -> float:
        """The number of records that were timed."""
        return self.service.number

    @property
    def service_s(self) -> float | None:
        """The mean service time of a record; None if none was timed."""
        return self.service.mean_s

    @property
    def service_scv(self) -> float | None:
        """The scv of the service time; None with fewer than two samples."""
        return self.service.scv

    @property
    def wait_s(self) -> float | None:
        """The mean time a record waits for a processor; None if none was timed."""
        return self.wait.mean_s

    @property
    def sojourn_s(self) -> float | None:
        """The mean of wait and service of a record; None if none was timed."""
        if self.wait_s is None or self.service_s is None:
            return None
        return self.wait_s + self.service_s


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedNode:
    cores: float
    busy_cores: float | None = None
    """Cores used by all processes of the node; None if not known."""
    running: Mapping[str, int] = field(default_factory=dict)
    """Processors of each operator."""
    computing: Mapping[str, float] = field(default_factory=dict)
    """Cores used by the records of each operator."""

    @property
    def free_cores(self) -> float:
        return _free(self.cores, self.busy_cores, sum(self.computing.values()))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observation:
    """The measurements of the interval from *since_s* until *at_s*.

    >>> Observation.unusable(0, 10, "split: service_s of p1 is nan").usable
    False
    """

    since_s: float
    at_s: float
    usable: bool = True
    """If False, the loop changes nothing."""
    reason: str = ""
    """The reason why it is not usable."""
    notes: tuple[str, ...] = ()
    """Tolerated faults: lost reports, ignored processors."""
    operators: Mapping[str, ObservedOperator] = field(default_factory=dict)
    arrivals_per_s: float = nan
    """Roots that arrive from outside, λ₀."""
    completed_per_s: float = nan
    streams: Mapping[str, float] = field(default_factory=dict)
    """Roots per second of each stream from outside, if known."""
    completions: Sketch = field(default_factory=Sketch.empty)
    """Completion of roots."""
    sums: Sketch = field(default_factory=Sketch.empty)
    """Sums of the sojourns of a root's tree."""
    cores: float | None = None
    """Cores of the machine, or of all nodes."""
    busy_cores: float | None = None
    """Cores that all processes of the machine, or of all nodes, keep busy."""
    nodes: Mapping[str, ObservedNode] = field(default_factory=dict)
    per_node: int = 0
    """Processors per node; more processors than that add nodes."""
    most_nodes: int = 0
    """Maximum number of nodes."""
    warming: bool = False
    """Whether the application has just started; there are then no service times."""
    births: tuple[Births, ...] = ()
    """Roots by the time slice of their birth; empty unless an objective is followed."""
    commits: int = 0
    """Batches that ended in the interval. Records that arrived during a commit had to wait."""
    node_costs: NodeCosts = field(default_factory=NodeCosts)

    @classmethod
    def unusable(cls, since_s: float, at_s: float, reason: str) -> "Observation":
        """Return an observation without measurements, with the *reason*."""
        return cls(since_s=since_s, at_s=at_s, usable=False, reason=reason)

    @property
    def lasted_s(self) -> float:
        return self.at_s - self.since_s

    @property
    def computing_cores(self) -> float:
        """The cores that records kept busy, at operators that measure CPU time."""
        return sum(o.served_per_s * (o.cpu_s or 0.0) for o in self.operators.values())

    @property
    def free_cores(self) -> float | NodeCores | None:
        """The cores that records can use, by node on a cluster; None if not measured.

        Other processes use the rest: busy cores that do not compute records.
        """
        if self.nodes:
            return NodeCores(
                nodes={name: node.free_cores for name, node in self.nodes.items()},
                per_node=self.per_node,
                most=self.most_nodes,
            )
        if self.cores is None:
            return None
        return _free(self.cores, self.busy_cores, self.computing_cores)

    @property
    def mean_s(self) -> float:
        """E[T]: the mean sum of the sojourns of a root's tree; NaN if no root completed."""
        return self.sums.mean_s

    def percentile_s(self, ratio: float) -> float:
        """Return the percentile *ratio* of completion; NaN if no root completed."""
        return self.completions.percentile_s(ratio)


def _free(cores: float, busy: float | None, computing: float) -> float:
    others = max(0.0, (busy or 0.0) - computing)
    return max(cores - others, _LEAST_SHARE * cores)
