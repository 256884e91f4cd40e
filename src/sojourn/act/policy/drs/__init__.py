"""DRS: the fewest processors that meet a target, or the best use of a given number.

load_estimate   the current load, backlogs, and the prediction for the current processors
requirement     the recent error of the model, and the plan for the load with a margin, with
                which the next two compare
shortage        too slow: processors are added
surplus         more than the load needs: processors are removed, or moved
caution         whether a change is worth its cost
decision        the wish, and its prediction
"""

from dataclasses import dataclass, field, replace
from math import inf
from typing import Annotated

from sojourn.act.best_effort_plan import Goal
from sojourn.act.latency import SURELY
from sojourn.act.policy.base import PolicyContext
from sojourn.act.policy.drs.caution import Caution
from sojourn.act.policy.drs.decision import Choice, decision
from sojourn.act.policy.drs.load_estimate import Situation, situation
from sojourn.act.policy.drs.requirement import Requirement, correction, requirement
from sojourn.act.policy.drs.shortage import Shortage, Trigger, relief, shortage
from sojourn.act.policy.drs.surplus import moved, saving, surplus
from sojourn.act.recommendation import held
from sojourn.errors import BadTarget
from sojourn.knowledge import Knowledge, Wish
from sojourn.measure.smooth import Smoother, steady

# If changes pause nothing there is no reason to wait for long: T_ra and the time to clear a
# backlog are then this many observations, and fewer processors need less confirmation.
_SOON, _CONFIRM_S = 5, 30.0


def policy(context: PolicyContext, /) -> "Drs":
    """Return the policy with its defaults, with a short T_ra if changes pause nothing."""
    drs = Drs(goal=Goal(target=context.target, most=context.most))
    if context.pauses or context.every_s is None:
        return drs
    soon_s = _SOON * context.every_s
    caution = replace(drs.caution, t_ra_s=soon_s, confirm_s=_CONFIRM_S)
    return replace(drs, caution=caution, drain_s=soon_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drs:
    """Meets a target with the fewest processors, or makes the best use of a given number.

    With *trigger* `measured` and *low_s* (T_min) it is DRS as published. By default the
    prediction triggers, which detects a shortage before latency suffers.
    """

    goal: Goal
    caution: Caution = field(default_factory=Caution)
    smooth: Smoother = steady
    low_s: Annotated[float | None, "scale down only while latency is below this (T_min)"] = None
    drain_s: Annotated[float, "time to clear a backlog"] = 60.0
    trigger: Annotated[Trigger, "latency that triggers scaling up"] = "expected"
    prompt: Annotated[bool, "scale up without waiting for T_ra"] = True
    forecast: Annotated[bool, "plan for the load forecast by its trend"] = False

    def __post_init__(self) -> None:
        if self.goal.target is None and self.goal.most is None:
            raise BadTarget(
                "neither a target nor a number of processors is given; give one of them"
            )
        if not 0 < self.drain_s < inf:
            raise BadTarget(f"drs: drain_s is {self.drain_s}; write more than 0")

    def __call__(self, knowledge: Knowledge, /) -> Wish:
        """Return the wish for the next allocation.

        The error of the model and the growth of the load are uncertain. Processors are added
        only for their lower bounds, and removed only if no likely value needs them.
        """
        seen = self.smooth(knowledge.observations)
        if not seen.usable or seen.warming:
            return held(knowledge)
        now = situation(
            knowledge,
            seen,
            self.goal,
            drain_s=self.drain_s,
            forecast=self.forecast,
            learns=self.trigger == "expected",
        )
        corrected = correction(now, surely=SURELY)
        short = shortage(now, corrected, trigger=self.trigger, drain_s=self.drain_s)
        if not short.acute:
            corrected = correction(now, surely=0.0)
        required = requirement(now, corrected, self.caution, short=short.acute)
        choice = self._choice(now, short, required)
        quiet = self.caution.quiet_now(knowledge)
        return decision(now, required, choice, quiet)

    def _choice(self, now: Situation, short: Shortage, required: Requirement) -> Choice:
        """Return the choice for too few processors, too many, or a bad distribution."""
        if short.acute:
            return relief(now, short, required, self.caution, prompt=self.prompt)
        if short.excused:
            return Choice.hold(
                f"{short.reason}, but a batch has just ended and records waited for it; "
                "scaling up only if it persists"
            )
        if now.behind:
            waiting = ", ".join(f"{n:.0f} at {name}" for name, n in now.behind.items())
            return Choice.hold(f"backlog of {waiting}; not scaling down")
        if surplus(now, required, self.low_s):
            return saving(now, required, self.caution)
        return moved(now, required, self.caution)
