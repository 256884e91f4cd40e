"""An observation: what was measured in an interval. The loop decides on it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import nan

from sojourn.measure.node_costs import NodeCosts
from sojourn.measure.sketch import Sketch
from sojourn.topology.node_cores import NodeCores

__all__ = ["Moments", "Observation", "ObservedNode", "ObservedOperator"]

# Records can always get this part of the cores, whatever else runs on the machine: schedulers
# share cores between all processes that are ready.
_LEAST_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Moments:
    """The number of sampled times, their sum and the sum of their squares.

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
    """What was measured at one operator.

    *arrival_scv* is None if there were too few bins, or too few arrivals in them; *bins* is how
    many were used. *wanted* and *running* processors and the *backlog* are those at the end.
    *utilisation* is the part of the time that processors were busy; a record counts in the
    interval in which it is done, so a long one may bring it above 1. *longest_service_s* is
    that of one record, also at processors that are left out as outliers, and *cpu_s* the mean
    CPU time of a record; None if nothing was served or it is not measured. *memory_bytes* is
    that of all its processors, *bytes_per_s* that of each stream. *transfer* are the waits of
    records that found an idle processor; *wait* includes them. *hottest* is the share of its
    records that have the most frequent key, *hottest_name*, 0 if it reads none by key;
    *missing* says why processors that are wanted do not start. *at_work* processors had
    records at the end of the interval; None if it is not measured.
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
    longest_service_s: float | None = None
    memory_bytes: int = 0
    bytes_per_s: Mapping[str, float] = field(default_factory=dict)
    transfer: Moments = Moments()
    hottest: float = 0.0
    hottest_name: str = ""
    missing: str = ""
    at_work: int | None = None

    @property
    def key_busy(self) -> float | None:
        """The part of one processor's time that the most frequent key takes; None if unknown.

        From 1 on its records wait ever longer, however many processors there are.
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
        """The mean time a record waits and is served; None if none was timed."""
        if self.wait_s is None or self.service_s is None:
            return None
        return self.wait_s + self.service_s


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedNode:
    """What was measured at one node of a cluster.

    *busy_cores* of its *cores* were used by all that runs there; None if it is not known. By
    operator, *running* are its processors, and *computing* the cores that records used.
    """

    cores: float
    busy_cores: float | None = None
    running: Mapping[str, int] = field(default_factory=dict)
    computing: Mapping[str, float] = field(default_factory=dict)

    @property
    def free_cores(self) -> float:
        """The cores that records can use."""
        return _free(self.cores, self.busy_cores, sum(self.computing.values()))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observation:
    """What was measured from *since_s* until *at_s*.

    If it is not *usable*, *reason* says why, and the loop changes nothing. *notes* say what was
    tolerated: lost reports, processors that were ignored. *arrivals_per_s* are the roots from
    outside, λ₀, *streams* the same for each stream if that is known. *cores* are those of the
    machine, *busy_cores* those that all processes on it kept busy; of a cluster, those of all
    *nodes*, of which more come if there are more than *per_node* processors for each, until
    there are *most_nodes*. While it is *warming* up the application has just started, and there
    are no service times. *commits* is the number of batches that ended in the interval; records
    that arrived during a commit had to wait. *node_costs* is how long nodes took to come and to
    go.

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
    nodes: Mapping[str, ObservedNode] = field(default_factory=dict)
    per_node: int = 0
    most_nodes: int = 0
    warming: bool = False
    commits: int = 0
    node_costs: NodeCosts = field(default_factory=NodeCosts)

    @classmethod
    def unusable(cls, since_s: float, at_s: float, reason: str) -> "Observation":
        """Return an observation without measurements."""
        return cls(since_s=since_s, at_s=at_s, usable=False, reason=reason)

    @property
    def lasted_s(self) -> float:
        """How long the interval was."""
        return self.at_s - self.since_s

    @property
    def computing_cores(self) -> float:
        """The cores that records kept busy, at operators that measure it."""
        return sum(o.served_per_s * (o.cpu_s or 0.0) for o in self.operators.values())

    @property
    def free_cores(self) -> float | NodeCores | None:
        """The cores that records can use, by node on a cluster; None if it is not measured.

        The rest is used by other processes: busy cores that do not compute records.
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
        """E[T]: the mean sum of the sojourns of all records of a root's tree; NaN if none."""
        return self.sums.mean_s

    def percentile_s(self, ratio: float) -> float:
        """Return the percentile *ratio* of completion; NaN if no root completed."""
        return self.completions.percentile_s(ratio)


def _free(cores: float, busy: float | None, computing: float) -> float:
    others = max(0.0, (busy or 0.0) - computing)
    return max(cores - others, _LEAST_SHARE * cores)
