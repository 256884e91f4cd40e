"""A distribution of times in bounded memory, that can be merged: percentiles to 0.2 %.

Times are counted in buckets that grow by a constant factor, so the *relative* error of a
percentile is bounded whatever the times are (the idea of DDSketch, Masson et al. 2019). Two
sketches merge by adding their counts, exactly.
"""

from dataclasses import dataclass
from math import ceil, log, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Sketch"]

_GROWTH = 1.004
_SHORTEST_S, _LONGEST_S = 1e-9, 1e9
_BUCKETS = ceil(log(_LONGEST_S / _SHORTEST_S) / log(_GROWTH)) + 2


@dataclass(frozen=True, slots=True)
class Sketch:
    """How many times fell in each bucket, their sum and sum of squares."""

    counts: NDArray[np.int64]
    sum_s: float = 0.0
    sum_ss: float = 0.0

    @classmethod
    def of(cls, times_s: ArrayLike) -> "Sketch":
        """Return the sketch of some times, 0 or more.

        >>> sketch = Sketch.of(range(1, 1001))
        >>> sketch.number, sketch.mean_s
        (1000, 500.5)
        >>> abs(sketch.percentile_s(0.95) / 950 - 1) < 0.003
        True
        """
        times = np.asarray(times_s, dtype=np.float64)
        # the first bucket is for all that is too short to tell from 0
        with np.errstate(divide="ignore"):
            place = np.log(times / _SHORTEST_S) / log(_GROWTH)
        bucket = np.clip(np.ceil(place), 0, _BUCKETS - 1).astype(np.int64)
        counts = np.bincount(bucket, minlength=_BUCKETS).astype(np.int64)
        return cls(counts, float(times.sum()), float((times * times).sum()))

    @classmethod
    def empty(cls) -> "Sketch":
        """Return the sketch of no times at all."""
        return cls(np.zeros(_BUCKETS, np.int64))

    def __add__(self, other: "Sketch") -> "Sketch":
        return Sketch(
            self.counts + other.counts, self.sum_s + other.sum_s, self.sum_ss + other.sum_ss
        )

    @property
    def number(self) -> int:
        """How many times there are."""
        return int(self.counts.sum())

    @property
    def mean_s(self) -> float:
        """Their mean; NaN of none."""
        return self.sum_s / self.number if self.number else float("nan")

    @property
    def std_s(self) -> float:
        """Their standard deviation; NaN of none."""
        if not self.number:
            return float("nan")
        return sqrt(max(0.0, self.sum_ss / self.number - self.mean_s**2))

    def percentile_s(self, ratio: float) -> float:
        """Return the time below which *ratio* of all fall; NaN of none."""
        if not self.number:
            return float("nan")
        bucket = int(np.searchsorted(np.cumsum(self.counts), ratio * self.number))
        if bucket == 0:
            return 0.0
        # the middle of the bucket: between its bounds the error is the same to either side
        return float(_SHORTEST_S * _GROWTH**bucket * 2 / (1 + _GROWTH))
