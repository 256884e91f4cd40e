"""An adaptive window: little noise on a steady load, and no lag after a step.

A short window is noisy, a long one lags. This one begins with the last few observations and
adds older ones, a few at a time, while they differ by no more than chance. Service times change
less often than loads, and only some are timed: those of each operator, with their CPU time, are
averaged over their own window, which is often longer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

from sojourn.errors import BadInput
from sojourn.measure.observation import Moments, Observation
from sojourn.measure.smooth import Window, mean_cpu_s

__all__ = ["Steady", "timed_longer"]

# Differences of this many standard errors are not chance. A rise is looked for at many places,
# so it needs more of them; but it must be seen before the window is full of it.
_CHANCE, _RISE = 2.5, 3.5
# The same for service times, whose distributions have longer tails.
_OTHER = 4.0
# With fewer samples neither the mean nor its error is known.
_LEAST_SAMPLES = 5


@dataclass(frozen=True, slots=True)
class Steady:
    """The mean of the last *least* to *most* observations, while nothing changed."""

    least: int = 6
    most: int = 30

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most:
            raise BadInput(
                f"the window is {self.least} to {self.most} observations; write 1 or more, "
                "and the smaller number first"
            )

    def __call__(self, history: Sequence[Observation], /) -> Observation:
        """Return the average of the last observations of *history*."""
        usable = [observation for observation in history if observation.usable]
        if not usable or not history[-1].usable:
            return Window(self.least)(history)
        return timed_longer(Window(self._unchanged(usable))(history), usable, self.least)

    def _unchanged(self, usable: Sequence[Observation]) -> int:
        """Return for how many observations the load from outside stayed the same."""
        scv = max([1.0, *_scvs(usable[-self.least :])])
        for size in range(1, min(self.least, len(usable))):
            if _rose(usable[-size:], usable[-size - self.least : -size], scv):
                return size
        size = self.least
        while size + self.least <= min(self.most, len(usable)):
            now, variance = _load(usable[-size:], scv)
            then, older_variance = _load(usable[-size - self.least : -size], scv)
            if abs(now - then) > _CHANCE * sqrt(variance + older_variance):
                break
            size += self.least
        return size


def timed_longer(
    observation: Observation, history: Sequence[Observation], block: int = 6
) -> Observation:
    """Return *observation* with service times averaged while they stayed the same.

    The usable observations in *history*, oldest first, are compared *block* at a time.
    """
    usable = [earlier for earlier in history if earlier.usable]
    operators = {}
    for name, operator in observation.operators.items():
        service, taken = _service(name, usable, block)
        cpu_s = mean_cpu_s([o.operators[name] for o in usable[len(usable) - taken :]])
        operators[name] = replace(operator, service=service, cpu_s=cpu_s or operator.cpu_s)
    return replace(observation, operators=operators)


def _service(name: str, usable: Sequence[Observation], size: int) -> tuple[Moments, int]:
    """Return the times of an operator, and over how many observations they are averaged."""
    alike, block, same = Moments(), Moments(), 0
    for taken, observation in enumerate(reversed(usable), 1):
        if name not in observation.operators:
            break
        block += observation.operators[name].service
        if taken % size and taken < len(usable):
            continue
        if taken > size and _changed(alike, block):
            break
        alike, block, same = alike + block, Moments(), taken
    return alike, same


def _scvs(observations: Sequence[Observation]) -> list[float]:
    return [
        operator.arrival_scv
        for observation in observations
        for operator in observation.operators.values()
        if operator.arrival_scv is not None
    ]


def _rose(lately: Sequence[Observation], before: Sequence[Observation], scv: float) -> bool:
    """Tell whether the last arrivals exceed the load before by more than chance."""
    (now, _), (then, variance) = _load(lately, scv), _load(before, scv)
    chance = variance + scv * then / sum(o.lasted_s for o in lately)
    return now - then > _RISE * sqrt(chance)


def _load(observations: Sequence[Observation], scv: float) -> tuple[float, float]:
    """Return the roots per second and their variance."""
    lasted_s = sum(o.lasted_s for o in observations)
    roots = sum(o.arrivals_per_s * o.lasted_s for o in observations)
    return roots / lasted_s, scv * max(roots, 1.0) / lasted_s**2


def _changed(one: Moments, other: Moments) -> bool:
    """Tell whether the means of two sets of service times differ, with enough samples."""
    if min(one.number, other.number) < _LEAST_SAMPLES:
        return False
    # a few times that are short by chance also seem to vary little
    scv = (one + other).scv or 0.0
    mean_s, differs_s = (one + other).mean_s or 0.0, (one.mean_s or 0.0) - (other.mean_s or 0.0)
    return abs(differs_s) > _OTHER * mean_s * sqrt(scv * (1 / one.number + 1 / other.number))
