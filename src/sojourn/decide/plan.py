"""What is asked of a plan, and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass

from sojourn.errors import BadTarget
from sojourn.model.cores import Computing
from sojourn.model.network import PERCENTILES, Prediction
from sojourn.topology.check import shown

__all__ = ["MOST_PROCESSORS", "Nodes", "Plan", "Target", "check_processors", "reached_s"]

MOST_PROCESSORS = 10_000_000
"""More than this is a slip, or a target no sane number of processors reaches."""

_LONGEST_S = 1e18


@dataclass(frozen=True, slots=True)
class Target:
    """A latency that the mean, or a percentile of completion, must not exceed.

    >>> print(Target("p95", 1.0))
    p95 ≤ 1 s
    """

    statistic: str
    seconds: float

    def __post_init__(self) -> None:
        if self.statistic not in ("mean", *PERCENTILES):
            known = ", ".join(("mean", *PERCENTILES))
            raise BadTarget(f"{shown(self.statistic)} cannot be a target; write one of {known}")
        time = isinstance(self.seconds, int | float) and not isinstance(self.seconds, bool)
        if not time or not 0 < self.seconds <= _LONGEST_S:
            raise BadTarget(
                f"{shown(self.seconds)} is not a latency in seconds; write more than 0"
            )

    def __str__(self) -> str:
        return f"{self.statistic} ≤ {self.seconds:g} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """Processors that come by the machine.

    *reserved* of all the slots serve something else: sources, the controller itself.

    >>> machines = Nodes(slots=5, reserved=3)
    >>> machines.processors(4), machines.processors(5), machines.holding(18)
    (17, 22, 5)
    """

    slots: int
    reserved: int = 0

    def __post_init__(self) -> None:
        if self.slots < 1 or self.reserved < 0:
            raise BadTarget(
                f"{self.slots} slots per node with {self.reserved} reserved is not possible; "
                "write at least 1 slot, and 0 or more reserved"
            )

    def processors(self, nodes: int) -> int:
        """Return the processors that *nodes* machines have for the application."""
        return max(0, nodes * self.slots - self.reserved)

    def holding(self, processors: int) -> int:
        """Return the fewest machines that have *processors*."""
        return -(-(processors + self.reserved) // self.slots)

    def within(self, processors: int) -> int:
        """Return the most machines that have no more than *processors*."""
        return (processors + self.reserved) // self.slots


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Processors per operator, and why.

    *least* is a number of processors below which the target is known to be out of reach:
    the plan's own number where it is proved the fewest. *computing* says by how much sharing
    cores lengthens service times, where these are known.
    """

    name: str
    model: str
    allocation: Mapping[str, int]
    mean_s: float
    reason: str
    least: int
    target: Target | None = None
    nodes: int | None = None
    computing: Computing | None = None

    @property
    def processors(self) -> int:
        """All processors."""
        return sum(self.allocation.values())


def check_processors(processors: int) -> None:
    """Raise `BadTarget` unless *processors* is a number of processors."""
    if isinstance(processors, bool) or not isinstance(processors, int) or processors < 1:
        raise BadTarget(f"{shown(processors)} is no number of processors; write 1 or more")
    if processors > MOST_PROCESSORS:
        raise BadTarget(
            f"{processors} processors are too many; write {MOST_PROCESSORS} at most"
        )


def reached_s(prediction: Prediction, target: Target) -> float:
    """Return what is predicted of the statistic that *target* speaks of."""
    return {"mean": prediction.mean_s, **prediction.percentiles_s}[target.statistic]
