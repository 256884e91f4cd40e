"""The final decision: no change in quiet hours, none of processors that do not start."""

from collections.abc import Mapping
from dataclasses import dataclass

from sojourn.act.policy.drs.load_estimate import Situation
from sojourn.act.policy.drs.requirement import Requirement
from sojourn.act.prediction import Outlook
from sojourn.decide.plan import Expected
from sojourn.knowledge import Wish, allocation_text


@dataclass(frozen=True, slots=True)
class Choice:
    """The change that a stage chose, before the final checks."""

    after: Mapping[str, int] | None
    """The new allocation; None for no change."""
    reason: str
    note: str = ""
    """The part of the goal that it does not reach, if any."""

    @classmethod
    def hold(cls, reason: str) -> "Choice":
        return cls(None, reason)


def decision(now: Situation, required: Requirement, choice: Choice, quiet: str) -> Wish:
    """Return *choice* as a wish; it is a hold in *quiet* hours."""
    chosen = dict(choice.after or now.current)
    # processors that do not start stay requested, unless others need their place in the limit
    stays = chosen | {name: now.current[name] for name in now.startable.running}
    after = stays if now.goal.allows(stays) else chosen
    reason = choice.reason
    if after != now.current:
        note = f" ({choice.note})" if choice.note else ""
        reason = f"{reason}: {allocation_text(after)}{note}"
    if after != now.current and quiet:
        after, reason = now.current, f"{reason}, but not in quiet hours ({quiet})"
    if now.startable.running:
        reason = f"{reason}; {now.startable}"
    then = now.expected if after == now.current else now.predicted(after)
    return Wish(
        allocation=after,
        reason=reason,
        goal=str(now.goal),
        wanted=required.allocation,
        expected=_expected(now, then),
        offered=now.offered,
        noise=now.offered_noise,
    )


def _expected(now: Situation, then: Outlook | None) -> Expected | None:
    # the model predicts steady state, not the time in which a backlog is cleared
    if then is None or now.behind:
        return None
    return Expected(
        statistic=now.goal.statistic,
        seconds=then.seconds,
        arrivals_per_s=now.topology.arrivals_per_s,
        sojourns_s=then.sojourns_s,
    )
