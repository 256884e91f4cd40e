"""DRS as it was published: its measurer's average, and its scheduler without our cautions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from sojourn.act.best_effort_plan import Goal
from sojourn.act.policy.base import Policy
from sojourn.act.policy.drs import Drs
from sojourn.act.policy.drs.caution import Caution
from sojourn.knowledge import Knowledge, Wish
from sojourn.measure.observation import Observation
from sojourn.measure.sketch import Sketch
from sojourn.measure.smooth import Window

EVERY_S = 60.0
"""T_m: the papers measure and decide once a minute."""


@dataclass(frozen=True, slots=True)
class Minutes:
    """D(n) = (d(n-w+1) + … + d(n)) / w of what whole trees took, each minute counting alike.

    `Window` counts each root alike, and only minutes since the last change. DRS-17 IV-A
    averages minutes, whatever happened in them, and measures when trees are complete.
    With *latest_load* what arrives is not averaged, but that of the last minute.
    """

    size: int
    latest_load: bool = False

    def __call__(self, history: Sequence[Observation], /) -> Observation:
        """Return the average of the last of *history*."""
        seen = Window(self.size)(history)
        if self.latest_load and seen.usable:
            seen = _arriving(seen, history[-1])
        took = [o.completions for o in history if o.usable and o.completions.number > 0]
        if not took:
            return seen
        return replace(seen, sums=Sketch.of([fmean(c.mean_s for c in took[-self.size :])]))


def _arriving(seen: Observation, last: Observation) -> Observation:
    """Return *seen* with the arrivals of *last*."""
    operators = {
        name: replace(
            operator,
            arrivals_per_s=last.operators[name].arrivals_per_s,
            served_per_s=last.operators[name].served_per_s,
        )
        for name, operator in seen.operators.items()
    }
    return replace(seen, operators=operators, arrivals_per_s=last.arrivals_per_s)


def published(
    goal: Goal, *, smooth: Minutes, t_ra_s: float = 0.0, low_s: float | None = None
) -> Policy:
    """Return DRS with an average over so many minutes, T_ra and T_min.

    Moves that save less than a twentieth are left out: the papers do not say what kept
    chance in the measurements from moving processors every minute.
    """
    drs = Drs(
        goal=goal,
        caution=Caution(
            t_ra_s=t_ra_s,
            margin=0.0,
            sigmas=0.0,
            confirm_s=0.0,
            least_gain=0.05,
            disturbed=1.0,
            calm=0.0,
        ),
        smooth=smooth,
        low_s=low_s,
        trigger="measured",
        prompt=False,
    )

    def without_backlogs(knowledge: Knowledge, /) -> Wish:
        """Decide without knowing how many records wait: the published measurer does not."""
        seen = knowledge.seen
        if seen is not None:
            operators = {n: replace(o, backlog=0) for n, o in seen.operators.items()}
            seen = replace(seen, operators=operators)
        return drs(replace(knowledge, seen=seen))

    return without_backlogs
