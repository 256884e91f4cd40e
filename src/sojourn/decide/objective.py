"""Objectives: a target, and the part of all time slices in which it must be kept.

A root counts in the slice in which it was born, and a slice keeps p95 if 95 % of its roots
complete in time. Of few roots chance alone makes too many late: if 1 % are late without any
waiting, then two or more of 39 are in 6 % of the slices. Slices with too few roots are joined
with the next ones.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil, exp, isfinite, lgamma, log, log1p

from sojourn.decide.target import Target
from sojourn.errors import BadTarget, EndlessLoop, HotKey
from sojourn.model.network import PERCENTILES, late_without_waiting
from sojourn.text import shown
from sojourn.topology import Topology

# Allowance for rounding when a part of a number of roots is a whole number.
_ROUNDING = 1e-9
# Smaller parts of a probability are left out.
_NOTHING = 1e-9
# A loop looks at least this often, and for a mean as often as for this percentile.
_SELDOM_S, _MEAN = 10.0, 0.95
# A loop cannot look more often.
_OFTEN_S = 0.1
# If a slice needs more roots than this, the target is too close to the latency without waiting.
_MOST_ROOTS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """A target that must be kept in a part of all time slices.

    >>> print(Objective(target=Target("p95", 3.5)))
    p95 ≤ 3.5 s in 99% of 60 s slices
    """

    target: Target
    slice_s: float = 60.0
    """The length of a time slice."""
    kept: float = 0.99
    """The part of all slices in which the target must be kept."""

    def __post_init__(self) -> None:
        if not (isfinite(self.slice_s) and self.slice_s > 0):
            raise BadTarget(
                f"{shown(self.slice_s)} s is not a time slice; write more than 0, such as 60s"
            )
        if not 0 < self.kept < 1:
            raise BadTarget(
                f"no number of processors keeps a target in {percent(self.kept)} of all time "
                "slices; write more than 0% and less than 100%, such as 99%"
            )
        if self.every_s < _OFTEN_S:
            least_s = self.slice_s * _OFTEN_S / self.every_s
            raise BadTarget(
                f"slices of {self.slice_s:g} s need a look every {self.every_s:g} s, because "
                f"the roots between two looks may all miss {self.target}; write {least_s:.3g}s "
                "or more"
            )

    @property
    def every_s(self) -> float:
        """The longest time between two looks of a loop: its roots may all be late.

        >>> Objective(target=Target("p95", 3.5)).every_s
        3.0
        """
        ratio = PERCENTILES.get(self.target.statistic, _MEAN)
        return min(_SELDOM_S, float(f"{(1 - ratio) * self.slice_s:.6g}"))

    def change_every_s(self, pause_s: float) -> float:
        """Return how far apart changes must be that pause operators for *pause_s*.

        A long pause delays the roots that arrive in it by too much, so it misses a slice.

        >>> objective = Objective(target=Target("p95", 3.5))
        >>> round(objective.change_every_s(5.0)), objective.change_every_s(1.0)
        (6000, 0.0)
        """
        return 0.0 if pause_s <= self.every_s else self.slice_s / (1 - self.kept)

    def pause_note(self, pause_s: float) -> str:
        """Return the note on changes that miss slices; empty if they do not."""
        every_s = self.change_every_s(pause_s)
        if every_s == 0:
            return ""
        return (
            f"a change pauses operators for {pause_s:g} s and misses a slice of "
            f"{self.slice_s:g} s; {percent(self.kept)} permit that once in {every_s:.0f} s, so "
            "processors that are not needed are kept for as long"
        )

    def too_seldom(self, every_s: float) -> str:
        """Return the warning for a loop that looks every *every_s*; empty if that is enough."""
        if every_s <= self.every_s * (1 + _ROUNDING):
            return ""
        return (
            f"looks {every_s:g} s apart are too long for slices of {self.slice_s:g} s: roots "
            f"that arrive between two looks may already miss {self.target}; write "
            f"--every {self.every_s:g}s, or make the slices longer"
        )

    def __str__(self) -> str:
        return f"{self.target} in {percent(self.kept)} of {self.slice_s:g} s slices"

    def permits(self, late: float) -> bool:
        """Return whether a part of the roots may be *late*, whatever the percentile."""
        ratio = PERCENTILES.get(self.target.statistic)
        return ratio is None or late <= 1 - ratio + _ROUNDING

    def keeps(self, judged: "Slice") -> bool:
        """Return whether the roots of a slice meet the target."""
        if self.target.statistic == "mean":
            return judged.sum_s <= self.target.seconds * judged.born
        allowed = (1 - PERCENTILES[self.target.statistic]) * judged.born + _ROUNDING
        return judged.born - judged.in_time <= allowed


@dataclass(frozen=True, slots=True)
class Slice:
    """The roots that were born in a time slice, or in several that were joined."""

    since_s: float
    until_s: float
    born: int = 0
    in_time: int = 0
    """Roots that completed within the target."""
    sum_s: float = 0.0
    """The sum of their latencies, for a mean; infinite while one is open."""

    def __add__(self, later: "Slice") -> "Slice":
        return Slice(
            self.since_s,
            later.until_s,
            self.born + later.born,
            self.in_time + later.in_time,
            self.sum_s + later.sum_s,
        )


def joined(slices: Iterable[Slice], least: float) -> Iterator[Slice]:
    """Yield *slices*, each joined with the next ones until it has *least* roots.

    The last ones are left out if they have fewer together.

    >>> minutes = [Slice(60 * n, 60 * n + 60, born) for n, born in enumerate((80, 50, 0, 20))]
    >>> [(each.since_s, each.until_s, each.born) for each in joined(minutes, 60)]
    [(0, 60, 80), (60, 240, 70)]
    """
    open_slice: Slice | None = None
    for each in slices:
        open_slice = each if open_slice is None else open_slice + each
        if open_slice.born >= max(least, 1):
            yield open_slice
            open_slice = None


def late_alone(topology: Topology, target: Target, *, model: str = "gigk") -> float:
    """Return the part of the roots that miss a percentile without any waiting; 0 if unknown."""
    if target.statistic == "mean":
        return 0.0
    try:
        return late_without_waiting(topology, target.seconds, model=model)
    except (HotKey, EndlessLoop):
        return 0.0


def least_roots(objective: Objective, late: float) -> int:
    """Return the fewest roots of a slice with which chance alone does not break the objective.

    *late* is the part of the roots that are late without any waiting. With as many roots or
    more, too many are late in no more slices than the objective permits. If *late* is too much
    for the target itself, slices are missed with any number of roots.

    >>> [least_roots(Objective(target=Target("p95", 3.5)), late) for late in (0, 0.01, 0.02)]
    [20, 60, 180]
    """
    if objective.target.statistic == "mean":
        return 1
    permitted = 1 - PERCENTILES[objective.target.statistic]
    step, missed = round(1 / permitted), 1 - objective.kept
    if not 0 < late < permitted - _ROUNDING:
        return step
    # From here on even the bound of Chernoff is below the objective.
    distance = permitted * log(permitted / late) + (1 - permitted) * (
        log1p(-permitted) - log1p(-late)
    )
    enough = min(-log(missed) / distance, _MOST_ROOTS)
    # One root less than a multiple of the step permits one late root less: the worst number.
    worst = step * (int(enough / step) + 2) - 1
    while worst > step and _more_than(worst // step, worst, late) <= missed:
        worst -= step
    return worst + 1


def few_roots(objective: Objective, topology: Topology) -> str:
    """Return the note on slices with too few roots at this load; empty if they have enough."""
    late = late_alone(topology, objective.target)
    least = least_roots(objective, late)
    born = topology.arrivals_per_s * objective.slice_s
    if not 0 < born < least or least > _MOST_ROOTS:
        return ""
    alone = f", because {late:.2%} miss {objective.target} without any waiting" if late else ""
    return (
        f"slices of {objective.slice_s:g} s have about {born:.0f} roots, but to keep "
        f"{percent(objective.kept)} they need {least}{alone}; about {ceil(least / born)} "
        "slices are judged as one"
    )


def _more_than(number: int, roots: int, late: float) -> float:
    """Return the probability that more than *number* of the *roots* are late."""
    k = number + 1
    chance = exp(
        lgamma(roots + 1)
        - lgamma(k + 1)
        - lgamma(roots - k + 1)
        + k * log(late)
        + (roots - k) * log1p(-late)
    )
    total, odds = 0.0, late / (1 - late)
    while chance > _NOTHING * total and k <= roots:
        total += chance
        chance *= (roots - k) / (k + 1) * odds
        k += 1
    return total


def percent(part: float) -> str:
    """Return *part* in percent.

    >>> percent(0.99), percent(0.999)
    ('99%', '99.9%')
    """
    return f"{100 * part:.10g}%"
