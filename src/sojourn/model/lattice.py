"""Distributions of times on a lattice of evenly spaced points.

A distribution is an array of masses, one per point; the tail beyond the last point is cut off.
Continuous times are discretised so that their mean stays exact (local moment matching: mass
between two points is divided between them). A sum of times is a convolution, the maximum of
several times a product of cumulated masses.

Sums are computed in the frequency domain, where they are products. The transform is periodic,
so mass beyond its end would reappear at its beginning; exponential damping makes that part
negligible. Any number of times can therefore be added before the transform back.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray

Masses = NDArray[np.float64]
"""The probability that the time falls on each point of a lattice."""

Spectrum = NDArray[np.complex128]
"""Damped masses in the frequency domain, where times are added by multiplying."""

# Points of the table of a gamma distribution: the error is below a ten-thousandth of its mean.
_GAMMA_POINTS = 4096
# A time with a lower scv counts as constant.
_REGULAR = 1e-10
# A mean below this part of a step counts as 0; it is lost in the precision of a float.
_NOTHING = 1e-20
# The factor by which mass is reduced that wraps around the end of the transform.
_DAMPING = 1e-8
# If exactly half of the times are 0, the median must be 0 in spite of rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Lattice:
    """Points 0, 1, 2 … times *step_s* seconds."""

    step_s: float
    points: int

    @classmethod
    def up_to(cls, horizon_s: float, points: int) -> "Lattice":
        """Return the lattice that ends at *horizon_s*.

        The mass at a point represents half a step to either side, so the cumulated mass at the
        last point is the distribution function half a step later: at the horizon.
        """
        return cls(horizon_s / (points - 0.5), points)

    @property
    def horizon_s(self) -> float:
        return self.step_s * (self.points - 0.5)

    @cached_property
    def times_s(self) -> NDArray[np.float64]:
        """The points, and one more."""
        return np.arange(self.points + 1, dtype=np.float64) * self.step_s

    @cached_property
    def _damping(self) -> NDArray[np.float64]:
        return _DAMPING ** (np.arange(self.points) / (2 * self.points))

    def constant(self, value_s: float) -> Masses:
        """Return the masses of a time that is always *value_s*."""
        return self.masses_of(np.minimum(self.times_s, value_s))

    def service(self, mean_s: float, scv: float) -> Masses:
        """Return the masses of a gamma distributed time (exponential for *scv* 1)."""
        if scv < _REGULAR or mean_s <= _NOTHING * self.step_s:
            return self.constant(mean_s)
        if scv == 1:
            return self.masses_of(mean_s * -np.expm1(-self.times_s / mean_s))
        return _gamma_masses(self, mean_s, scv)

    def wait(self, probability: float, mean_s: float) -> Masses:
        """Return the masses of a wait with a mean of *mean_s* over all records.

        A record waits with *probability*; the wait is then exponentially distributed.
        """
        if mean_s <= _NOTHING * self.step_s or probability == 0:
            return self.constant(0.0)
        given_s = mean_s / probability
        return self.masses_of(mean_s * -np.expm1(-self.times_s / given_s))

    def add(self, one: Masses, other: Masses) -> Masses:
        """Return the masses of the sum of two independent times."""
        return self.masses(self.spectrum(one) * self.spectrum(other))

    def spectrum(self, masses: Masses) -> Spectrum:
        """Return the spectrum of *masses*."""
        return np.fft.rfft(masses * self._damping, 2 * self.points)

    def masses(self, spectrum: Spectrum) -> Masses:
        """Return the masses of a *spectrum*."""
        # rounding yields tiny negative values, which powers of cumulated masses would amplify
        return np.maximum(self.change(spectrum), 0.0)

    def change(self, spectrum: Spectrum) -> NDArray[np.float64]:
        """Return the difference of masses, given that of their spectra."""
        return np.fft.irfft(spectrum, 2 * self.points)[: self.points] / self._damping

    def cumulated(self, masses: Masses) -> Masses:
        """Return the probability that the time is at most that of each point."""
        return np.minimum(np.cumsum(masses), 1.0)

    def differences(self, cumulated: Masses) -> Masses:
        """Return the masses of *cumulated* ones."""
        masses = np.empty(self.points)
        masses[0] = cumulated[0]
        np.subtract(cumulated[1:], cumulated[:-1], out=masses[1:])
        return masses

    def later(self, cumulated: Masses, by_s: float) -> Masses:
        """Return the cumulated masses shifted by *by_s*."""
        if by_s == 0:
            return cumulated
        times_s = self.times_s[:-1]
        return np.interp(times_s - by_s, times_s, cumulated, left=0.0)

    def mean_s(self, masses: Masses) -> float:
        """Return the mean time, without the tail beyond the lattice."""
        return float(masses @ self.times_s[:-1])

    def std_s(self, masses: Masses) -> float:
        """Return the standard deviation, without the tail beyond the lattice."""
        mean_s = self.mean_s(masses)
        return sqrt(float(masses @ (self.times_s[:-1] - mean_s) ** 2))

    def first(self, cumulated: Masses, ratio: float) -> int:
        """Return the first point with at least a part *ratio* at or before it.

        That is the number of points if there is none.
        """
        return int(np.searchsorted(cumulated, ratio - _ROUNDING))

    def percentile_s(self, masses: Masses, ratio: float) -> float:
        """Return the percentile *ratio*, interpolated between points."""
        cumulated = np.cumsum(masses)
        later = self.first(cumulated, ratio)
        if later == 0:
            return 0.0
        before, after = cumulated[later - 1 : later + 1].tolist()
        part = (ratio - _ROUNDING - before) / (after - before)
        return float(later - 0.5 + part) * self.step_s

    def masses_of(self, limited_s: NDArray[np.float64]) -> Masses:
        """Return masses, given the mean of min(time, point) at each point and one more."""
        slopes = (limited_s[1:] - limited_s[:-1]) / self.step_s
        masses = np.empty(self.points)
        masses[0] = 1.0 - slopes[0]
        np.subtract(slopes[:-1], slopes[1:], out=masses[1:])
        return masses


@lru_cache(maxsize=512)
def _gamma_masses(lattice: Lattice, mean_s: float, scv: float) -> Masses:
    times, tail, means = _gamma(scv)
    wanted = np.minimum(lattice.times_s / mean_s, times[-1])
    # between two tabulated times the tail is linear, so the mean of min(T, t) is a parabola
    before = np.minimum(np.searchsorted(times, wanted, side="right"), times.size - 1) - 1
    since = wanted - times[before]
    part = since / (times[before + 1] - times[before])
    fall = tail[before] - tail[before + 1]
    limited = means[before] + since * (tail[before] - fall * part / 2)
    masses = lattice.masses_of(mean_s * limited)
    masses.flags.writeable = False  # it is shared
    return masses


@lru_cache(maxsize=256)
def _gamma(scv: float) -> tuple[NDArray[np.float64], ...]:
    """Return times t, P(T > t) and the mean of min(T, t), for a gamma distributed T of mean 1.

    The density is integrated over v = t^q, where it is smooth even if it has a pole at t = 0.
    (An import of scipy for this would double the start time of `sojourn plan`.)
    """
    shape = 1 / scv
    q = min(shape, 1.0) / 2
    spread = 12 * sqrt(shape) + 40
    low, high = max(0.0, shape - spread) ** q, (shape + spread) ** q
    v = np.linspace(low, high, _GAMMA_POINTS)
    with np.errstate(divide="ignore"):
        log_v = np.log(v)
    t = np.exp(log_v / q)
    log_density = (shape / q - 1) * log_v - t
    density = np.exp(log_density - log_density.max())
    below = np.concatenate(([0.0], np.cumsum(density[1:] + density[:-1])))
    tail = 1 - below / below[-1]
    times = np.concatenate(([0.0], t * scv))
    tail = np.concatenate(([1.0], tail))
    means = np.concatenate(([0.0], np.cumsum(np.diff(times) * (tail[1:] + tail[:-1]) / 2)))
    return times / means[-1], tail, means / means[-1]
