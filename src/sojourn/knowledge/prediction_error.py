"""The error of predictions, compared with the measurements that followed."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionError:
    """The error of predictions, relative to the sum of the measured times.

    Relative to the sum because single times, of few records, may be close to 0.

    >>> PredictionError.over([(1.0, 2.0), (3.0, 2.0)])
    PredictionError(number=2, measured_s=4.0, mean=0.0, spread=0.5)
    """

    number: int
    """The number of predictions."""
    measured_s: float
    """The sum of the measured times."""
    mean: float
    """The mean error; above 0 if predictions were too high."""
    spread: float
    """The mean absolute error."""

    @classmethod
    def over(cls, pairs: Sequence[tuple[float, float]]) -> "PredictionError | None":
        """Return the error of pairs (predicted, measured); None if there are none."""
        told = [(predicted, measured) for predicted, measured in pairs if measured > 0]
        if not told:
            return None
        total_s = sum(measured for _, measured in told)
        errors_s = [predicted - measured for predicted, measured in told]
        return cls(
            number=len(told),
            measured_s=total_s,
            mean=sum(errors_s) / total_s,
            spread=sum(map(abs, errors_s)) / total_s,
        )

    def __add__(self, other: "PredictionError") -> "PredictionError":
        total_s = self.measured_s + other.measured_s
        part = self.measured_s / total_s
        return PredictionError(
            number=self.number + other.number,
            measured_s=total_s,
            mean=part * self.mean + (1 - part) * other.mean,
            spread=part * self.spread + (1 - part) * other.spread,
        )
