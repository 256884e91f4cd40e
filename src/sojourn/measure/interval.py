"""A measured value with its confidence interval."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, nan, sqrt
from statistics import fmean, stdev

# Student's t for 95 % by degrees of freedom, from 1 on; for more, the normal quantile is used.
_STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_NORMAL = 1.96


@dataclass(frozen=True, slots=True)
class Interval:
    """A measured value and half the width of its 95 % confidence interval.

    >>> Interval.over([1.0, 2.0, 3.0])
    Interval(value=2.0, half_width=2.484)
    >>> Interval.over([1.0])
    Interval(value=1.0, half_width=nan)
    """

    value: float
    half_width: float

    @classmethod
    def over(cls, values: Sequence[float]) -> "Interval":
        """Return the mean of independent *values* with its confidence interval.

        Values that are not finite are ignored. The half width is NaN for fewer than two values.
        """
        known = [value for value in values if isfinite(value)]
        if len(known) < 2:
            return cls(fmean(known) if known else nan, nan)
        freedom = len(known) - 1
        student = _STUDENT[freedom - 1] if freedom <= len(_STUDENT) else _NORMAL
        return cls(fmean(known), student * stdev(known) / sqrt(len(known)))

    def __str__(self) -> str:
        return f"{self.value:.4g} ± {self.half_width:.2g}"
