"""Roots by the time slice in which they were born.

An objective is judged by them: a root that completes late counts in the slice of its birth, and
so does one that is still open.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.float64]


def _none() -> Times:
    return np.empty(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Births:
    """Roots that were born in one time slice, as far as one interval tells of them."""

    slice: int
    """The number of the slice; it begins at this multiple of its length."""
    completed: int = 0
    """Roots that completed in the interval."""
    in_time: int = 0
    """Those of them that completed within the target."""
    sum_s: float = 0.0
    """The sum of their latencies, as a mean counts them."""
    open: int = 0
    """Roots that had not completed at the end of the interval."""
    open_s: float = 0.0
    """The sum of their ages."""

    @property
    def born(self) -> int:
        return self.completed + self.open

    def __add__(self, later: "Births") -> "Births":
        """Return both together, of one slice or of several that are joined."""
        return Births(
            slice=self.slice,
            completed=self.completed + later.completed,
            in_time=self.in_time + later.in_time,
            sum_s=self.sum_s + later.sum_s,
            open=self.open + later.open,
            open_s=self.open_s + later.open_s,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RootTimes:
    """The roots that completed in an interval, and those that were open at its end."""

    birth_s: Times = field(default_factory=_none)
    completion_s: Times = field(default_factory=_none)
    sum_s: Times = field(default_factory=_none)
    """Sums of the sojourns of all records of a root's tree."""
    weight: Times = field(default_factory=_none)
    """Numbers of roots that a traced one stands for."""
    open_birth_s: Times = field(default_factory=_none)
    open_weight: Times = field(default_factory=_none)

    def in_slices(self, slice_s: float, within_s: float, at_s: float) -> Iterator[Births]:
        """Yield the roots of each slice at *at_s*, the end of the interval.

        Slices last *slice_s*; a root is in time if it completes within *within_s*.

        >>> open_roots = {"open_birth_s": np.array([60.0, 61.0]), "open_weight": np.ones(2)}
        >>> list(RootTimes(**open_roots).in_slices(60.0, 1.0, at_s=62.0))
        [Births(slice=1, completed=0, in_time=0, sum_s=0.0, open=2, open_s=3.0)]
        """
        # the clock of a producer may be ahead of ours
        born_in = np.floor_divide(np.minimum(self.birth_s, at_s), slice_s).astype(np.int64)
        open_birth_s = np.minimum(self.open_birth_s, at_s)
        open_in = np.floor_divide(open_birth_s, slice_s).astype(np.int64)
        for number in np.union1d(born_in, open_in).tolist():
            here, still_open = born_in == number, open_in == number
            weight, open_weight = self.weight[here], self.open_weight[still_open]
            yield Births(
                slice=number,
                completed=round(weight.sum()),
                in_time=round(weight[self.completion_s[here] <= within_s].sum()),
                sum_s=float(weight @ self.sum_s[here]),
                open=round(open_weight.sum()),
                open_s=float(open_weight @ (at_s - open_birth_s[still_open])),
            )
