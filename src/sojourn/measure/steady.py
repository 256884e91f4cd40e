"""An adaptive window: little noise on a steady load, and no lag after a step.

A short window is noisy, a long one lags. This one starts with the last few observations and
adds older ones, a block at a time, while they differ by no more than chance. Service times
change less often than loads, and only some records are timed, so service and CPU times of each
operator are averaged over a window of their own, which is often longer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

from sojourn.errors import BadInput
from sojourn.measure.observation import Moments, Observation
from sojourn.measure.smooth import Window, mean_cpu_s

# Differences above this many standard errors are significant. A rise needs more, because it is
# tested at many positions to detect it before it fills the whole window.
_CHANCE, _RISE = 2.5, 3.5
# The same for service times, whose distributions have longer tails.
_OTHER = 4.0
# With fewer samples neither the mean nor its error is reliable.
_LEAST_SAMPLES = 5


@dataclass(frozen=True, slots=True)
class Steady:
    """The mean of the last observations, back to the last change of the load."""

    least: int = 6
    """Size of a block, and of the window at least, except after a rise."""
    most: int = 30
    """Maximum size of the window."""

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most:
            raise BadInput(
                f"the window is {self.least} to {self.most} observations; write 1 or more, "
                "and the smaller number first"
            )

    def __call__(self, history: Sequence[Observation], /) -> Observation:
        usable = [observation for observation in history if observation.usable]
        if not usable or not history[-1].usable:
            return Window(self.least)(history)
        return timed_longer(Window(self._unchanged(usable))(history), usable, self.least)

    def _unchanged(self, usable: Sequence[Observation]) -> int:
        """Return the number of last observations with the same load from outside."""
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
    """Return *observation* with service times averaged back to their last change.

    The usable observations in *history*, oldest first, are compared in blocks of *block*.
    """
    usable = [earlier for earlier in history if earlier.usable]
    operators = {}
    for name, operator in observation.operators.items():
        service, taken = _service(name, usable, block)
        cpu_s = mean_cpu_s([o.operators[name] for o in usable[len(usable) - taken :]])
        operators[name] = replace(operator, service=service, cpu_s=cpu_s or operator.cpu_s)
    return replace(observation, operators=operators)


def _service(name: str, usable: Sequence[Observation], size: int) -> tuple[Moments, int]:
    """Return the service times of an operator, and the number of observations averaged."""
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
    """Return whether the last arrivals exceed the load before by more than chance."""
    (now, _), (then, variance) = _load(lately, scv), _load(before, scv)
    chance = variance + scv * then / sum(o.lasted_s for o in lately)
    return now - then > _RISE * sqrt(chance)


def _load(observations: Sequence[Observation], scv: float) -> tuple[float, float]:
    """Return the roots per second and their variance."""
    lasted_s = sum(o.lasted_s for o in observations)
    roots = sum(o.arrivals_per_s * o.lasted_s for o in observations)
    return roots / lasted_s, scv * max(roots, 1.0) / lasted_s**2


def _changed(one: Moments, other: Moments) -> bool:
    """Return whether the means of two sets of service times differ significantly."""
    if min(one.number, other.number) < _LEAST_SAMPLES:
        return False
    # from both sets, because a few times that are short by chance also seem to vary little
    scv = (one + other).scv or 0.0
    mean_s, differs_s = (one + other).mean_s or 0.0, (one.mean_s or 0.0) - (other.mean_s or 0.0)
    return abs(differs_s) > _OTHER * mean_s * sqrt(scv * (1 / one.number + 1 / other.number))
