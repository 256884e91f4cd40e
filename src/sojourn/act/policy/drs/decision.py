"""What is done in the end: not in quiet hours, without what does not start, and expected."""

from collections.abc import Mapping
from dataclasses import dataclass

from sojourn.act.outlook import Outlook
from sojourn.act.policy.drs.requirement import Requirement
from sojourn.act.policy.drs.situation import Situation
from sojourn.knowledge import Decision, Expected

__all__ = ["Choice", "decision"]


@dataclass(frozen=True, slots=True)
class Choice:
    """Processors that should be from now on, None for those that there are, and why."""

    after: Mapping[str, int] | None
    reason: str

    @classmethod
    def hold(cls, reason: str) -> "Choice":
        """Return that nothing is changed."""
        return cls(None, reason)


def decision(now: Situation, required: Requirement, choice: Choice, quiet: str) -> Decision:
    """Return what is done of *choice*: nothing in *quiet* hours."""
    after, reason = choice.after, choice.reason
    if after is not None and quiet:
        after, reason = None, f"{reason}, but the hours {quiet} are quiet"
    after = dict(now.current if after is None else after)
    if now.startable.running:
        # what does not start stays wanted, and all else is planned without it
        after |= {name: now.current[name] for name in now.startable.running}
        reason = f"{reason}; {now.startable}"
    then = now.expected if after == now.current else now.predicted(after)
    return Decision(
        at_s=now.knowledge.at_s,
        before=now.current,
        after=after,
        reason=reason,
        goal=str(now.goal),
        wanted=required.allocation,
        expected=_expected(now, then),
        offered=now.offered,
        noise=now.offered_noise,
    )


def _expected(now: Situation, then: Outlook | None) -> Expected | None:
    # The model speaks of queues in balance, not of those being worked off.
    if then is None or now.behind:
        return None
    return Expected(
        statistic=now.statistic,
        seconds=then.seconds,
        arrivals_per_s=now.topology.arrivals_per_s,
        sojourns_s=then.sojourns_s,
    )
