"""Calibration: correction of the model, fitted to measurements.

Three forms, each fitted to pairs of an estimate and a measurement:

- `factor`      measured = f · estimate
- `per_hop`     measured = estimate + h · hops (transfer time that is not in the model)
- `polynomial`  measured = c₀ + c₁ · estimate + c₂ · estimate² …, of low degree (DRS-15 V-C)

A calibrated prediction carries its calibration, and a flag if it lies outside the fitted range.
A polynomial is not valid outside that range, and raises an error.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf, isfinite

import numpy as np

from sojourn.errors import BadInput, CannotBeDone
from sojourn.topology import Topology

# Estimates are reproducible; this is a tolerance for values rounded in a file.
_EDGE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    estimate_s: float
    measured_s: float
    hops: float = 1.0
    """Number of records of a root's tree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A function from estimated to measured latency.

    >>> late = Calibration(coefficients=(0.0, 1.25))
    >>> late(0.8)
    1.0
    """

    coefficients: tuple[float, ...] = (0.0, 1.0)
    """Coefficients of a polynomial of the estimate, the constant first."""
    per_hop_s: float = 0.0
    """Time added per hop, before the polynomial is applied."""
    low_s: float = 0.0
    """Lower end of the range of estimates that this was fitted to."""
    high_s: float = inf
    """Upper end of that range."""

    def __post_init__(self) -> None:
        if len(self.coefficients) < 2 or not all(isfinite(c) for c in self.coefficients):
            problem = f"the coefficients {self.coefficients} are not two or more finite numbers"
        elif self.is_factor and self.coefficients[1] <= 0:
            problem = f"the factor {self.coefficients[1]} is not above 0"
        elif not 0 <= self.per_hop_s < inf:
            problem = f"{self.per_hop_s} s per hop is not 0 or more"
        elif not 0 <= self.low_s <= self.high_s:
            problem = f"{self.low_s} s to {self.high_s} s is not a range"
        else:
            return
        raise BadInput(f"{problem}; fit it again with `sojourn calibrate`")

    def __call__(self, estimate_s: float) -> float:
        """Return the expected measurement for an estimate that includes the time of the hops.

        Raise `CannotBeDone` if this is a polynomial and the estimate is outside its range.
        """
        if not self.is_factor and not self.covers(estimate_s):
            raise _extrapolated(estimate_s, self.low_s, self.high_s)
        return sum(c * estimate_s**power for power, c in enumerate(self.coefficients))

    @property
    def is_factor(self) -> bool:
        """Whether the correction multiplies all times by one factor."""
        return len(self.coefficients) == 2 and self.coefficients[0] == 0

    def covers(self, estimate_s: float) -> bool:
        """Return whether *estimate_s* is in the range that this was fitted to."""
        return self.low_s * (1 - _EDGE) <= estimate_s <= self.high_s * (1 + _EDGE)

    def topology(self, topology: Topology) -> Topology:
        """Return *topology* with the time per hop added to its transfer times."""
        slower = tuple(
            replace(operator, transfer_s=operator.transfer_s + self.per_hop_s)
            for operator in topology.operators
        )
        return replace(topology, operators=slower)

    def estimate_s(self, measured_s: float) -> float:
        """Return the estimate whose expected measurement is *measured_s*: the inverse.

        Plans use it to translate a target. Raise `CannotBeDone` if a polynomial does not reach
        *measured_s* in its range.
        """
        if self.is_factor:
            return measured_s / self.coefficients[1]
        low, high = self.low_s, self.high_s
        if not self(low) <= measured_s <= self(high):
            raise _extrapolated(measured_s, self(low), self(high))
        while high - low > _EDGE * high:
            middle = (low + high) / 2
            low, high = (middle, high) if self(middle) <= measured_s else (low, middle)
        return low


def _extrapolated(estimate_s: float, low_s: float, high_s: float) -> CannotBeDone:
    return CannotBeDone(
        f"the calibration was fitted to estimates from {low_s:.6g} s to {high_s:.6g} s, "
        f"which does not include {estimate_s:.6g} s; measure there and fit again, "
        "or leave the calibration out"
    )


def fit(pairs: Sequence[Pair], *, form: str, degree: int = 2) -> Calibration:
    """Return the calibration of this *form* with the least relative error over *pairs*.

    Raise `BadInput` if there are too few pairs, or they are invalid.

    >>> run = [Pair(estimate_s=1.0, measured_s=1.2), Pair(estimate_s=2.0, measured_s=2.4)]
    >>> fit(run, form="factor").coefficients
    (0.0, 1.2)
    """
    if form not in FORMS:
        raise BadInput(f"unknown form {form!r}; write one of {', '.join(FORMS)}")
    for pair in pairs:
        if not all(0 < value < inf for value in (pair.estimate_s, pair.measured_s, pair.hops)):
            raise BadInput(f"{pair} has a number that is not positive; remove it")
    if not pairs:
        raise BadInput("there are no pairs of an estimate and a measurement; give at least one")
    return FORMS[form](pairs, degree)


def _factor(pairs: Sequence[Pair], _: int) -> Calibration:
    estimates = [pair.estimate_s for pair in pairs]
    measured = [pair.measured_s for pair in pairs]
    (factor,) = _solve([[estimate] for estimate in estimates], measured)
    return Calibration(coefficients=(0.0, factor), low_s=min(estimates), high_s=max(estimates))


def _per_hop(pairs: Sequence[Pair], _: int) -> Calibration:
    rest = [pair.measured_s - pair.estimate_s for pair in pairs]
    (per_hop_s,) = _solve([[p.hops] for p in pairs], rest, [p.measured_s for p in pairs])
    if per_hop_s < 0:
        raise BadInput(
            f"measured times are {-per_hop_s:.6g} s per hop below the estimates; "
            "fit a factor instead"
        )
    estimates = [pair.estimate_s + per_hop_s * pair.hops for pair in pairs]
    return Calibration(per_hop_s=per_hop_s, low_s=min(estimates), high_s=max(estimates))


def _polynomial(pairs: Sequence[Pair], degree: int) -> Calibration:
    if not 1 <= degree <= 3:
        raise BadInput(f"the degree of the polynomial is {degree}; write 1, 2 or 3")
    estimates = {pair.estimate_s for pair in pairs}
    measured = [pair.measured_s for pair in pairs]
    if len(estimates) <= degree:
        raise BadInput(
            f"{len(estimates)} different estimates are not enough for a polynomial of degree "
            f"{degree}; measure {degree + 1} or more allocations, or lower the degree"
        )
    powers = [[pair.estimate_s**power for power in range(degree + 1)] for pair in pairs]
    coefficients, low_s, high_s = _solve(powers, measured), min(estimates), max(estimates)
    fitted = Calibration(coefficients=coefficients, low_s=low_s, high_s=high_s)
    along = [fitted(estimate_s) for estimate_s in np.linspace(low_s, high_s, 200).tolist()]
    if any(after <= before for before, after in pairwise(along)):
        raise BadInput(
            f"the polynomial of degree {degree} decreases somewhere in the range of the "
            "estimates, so a faster plan would seem slower; lower the degree, or measure more"
        )
    return fitted


FORMS: Mapping[str, Callable[[Sequence[Pair], int], Calibration]] = {
    "factor": _factor,
    "per_hop": _per_hop,
    "polynomial": _polynomial,
}
"""The fit of each form of calibration, by name."""


def _solve(
    columns: list[list[float]], measured: list[float], scale: list[float] | None = None
) -> tuple[float, ...]:
    """Return the coefficients with the least squared error, relative to *scale*."""
    weights = np.array(scale or measured)
    left, right = np.array(columns) / weights[:, None], np.array(measured) / weights
    return tuple(np.linalg.lstsq(left, right, rcond=None)[0].tolist())
