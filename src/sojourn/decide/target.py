"""Targets: a latency, or a number of processors, and their validation."""

from dataclasses import dataclass

from sojourn.errors import BadTarget
from sojourn.model.network import PERCENTILES, Prediction
from sojourn.text import shown

MOST_PROCESSORS = 10_000_000
"""A larger number is a typing error, or a target that cannot reasonably be met."""

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


def check_processors(processors: int) -> None:
    """Raise `BadTarget` unless *processors* is a whole number from 1 to the maximum."""
    if isinstance(processors, bool) or not isinstance(processors, int) or processors < 1:
        raise BadTarget(
            f"{shown(processors)} is not a valid number of processors; write 1 or more"
        )
    if processors > MOST_PROCESSORS:
        raise BadTarget(
            f"{processors} processors are too many; write {MOST_PROCESSORS} at most"
        )


def reached_s(prediction: Prediction, target: Target) -> float:
    return {"mean": prediction.mean_s, **prediction.percentiles_s}[target.statistic]
