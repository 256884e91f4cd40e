"""Shortage: the application is too slow, and processors are added."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sojourn.act.latency import SURELY, at_least_s
from sojourn.act.policy.drs.caution import Caution
from sojourn.act.policy.drs.decision import Choice
from sojourn.act.policy.drs.load_estimate import Situation
from sojourn.act.policy.drs.requirement import Correction, Requirement
from sojourn.knowledge import batch_ended

Trigger = Literal["expected", "measured"]

# A load below this is none.
_LEAST_ERLANGS = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """A shortage of processors, and whether it calls for a change."""

    reason: str
    """The text for the shortage; empty without one."""
    excused: bool = False
    """Whether a batch that has just ended explains it: records waited for the commit."""

    @property
    def acute(self) -> bool:
        return bool(self.reason) and not self.excused


def shortage(
    now: Situation, corrected: Correction, *, trigger: Trigger, drain_s: float
) -> Shortage:
    """Return the shortage, by the model or, with *trigger* `measured`, by measurement."""
    runs = now.startable.runs(now.current)
    loads = now.loads(runs)
    overloaded = [name for name, k in runs.items() if k < loads[name].min_processors]
    reason = (
        _expected(now, corrected, overloaded, drain_s)
        if trigger == "expected"
        else _measured(now)
    )
    ended = bool(reason) and batch_ended(now.knowledge.observations)
    return Shortage(reason=reason, excused=ended and not overloaded)


def _expected(
    now: Situation, corrected: Correction, overloaded: list[str], drain_s: float
) -> str:
    if overloaded:
        return f"{', '.join(overloaded)} cannot keep up"
    if any(k > now.knowledge.allocation[name] for name, k in now.needs.items()):
        waiting = sum(now.behind.values())
        return f"a backlog of {waiting:.0f} cannot be cleared in {drain_s:g} s"
    target = now.goal.target
    if target is None or corrected.target is None:
        return ""
    planned = now.planned
    if planned is not None and planned.seconds <= corrected.target.seconds:
        return ""
    times = corrected.times
    learned = f" (waits are {times:.2g} times those of the model)" if times > 1 else ""
    margin = "" if now.level is None else f" at {_load(now.level)}"
    said = f"{now.text(planned, times)}{margin}"
    return f"{said}, above the target of {target.seconds:g} s{learned}"


def _load(level: float) -> str:
    """Return the load that a level of the error budget plans for.

    >>> _load(0.15), _load(-0.05)
    ('15% more load', '5% less load')
    """
    return f"{abs(level):.0%} {'less' if level < 0 else 'more'} load"


def _measured(now: Situation) -> str:
    target = now.goal.target
    if target is None or not now.measured_s > target.seconds:
        return ""
    reached = f"measured {now.goal.statistic} is {now.measured_s:.3g} s"
    return f"{reached}, above the target of {target.seconds:g} s"


def relief(
    now: Situation, short: Shortage, required: Requirement, caution: Caution, *, prompt: bool
) -> Choice:
    """Return the processors to add; without waiting for T_ra if *prompt*."""
    after = _after(now, required)
    if after == now.current:
        return Choice.hold(f"{short.reason}, but {required.note or 'no allocation is better'}")
    undone = caution.undone(now, after)
    if _no_better(now, caution, after, undone):
        limit = required.note or "no more processors are available"
        return Choice.hold(
            f"{short.reason}, but {limit}; another allocation would not be measurably better"
        )
    if undone and not now.overspent and _on_time(now, caution):
        return Choice.hold(
            f"{short.reason}, but this would undo a scale-down of {', '.join(undone)} at the "
            "same load, and the measured latency meets the target"
        )
    soon = "" if prompt else caution.too_soon(now.knowledge)
    if soon:
        return Choice.hold(f"{short.reason}, but {soon}")
    return Choice(after, short.reason, required.note)


def _after(now: Situation, required: Requirement) -> dict[str, int]:
    """Return the required allocation without removals, unless the limits force them."""
    wanted = required.allocation
    after = {name: max(k, wanted[name]) for name, k in now.current.items()}
    return after if now.goal.allows(after) else wanted


def _on_time(now: Situation, caution: Caution) -> bool:
    """Return whether operators keep up and the target is met since the last change."""
    target, current = now.goal.target, now.current
    surely = {
        name: erlangs * (1 - caution.sigmas * now.offered_noise[name])
        for name, erlangs in now.offered.items()
    }
    if target is None or any(k <= surely[name] for name, k in current.items()):
        return False
    changed_at_s = now.knowledge.changed_at_s
    since = [o for o in now.knowledge.observations if o.usable and o.at_s > changed_at_s]
    return at_least_s(since, target.statistic, SURELY) <= target.seconds


def _no_better(
    now: Situation, caution: Caution, after: Mapping[str, int], undone: Mapping[str, int]
) -> bool:
    """Return whether moving processors would bring no gain beyond chance."""
    current = now.current
    if sum(after.values()) != sum(current.values()):
        return False
    before, then = _carried(now, current), _carried(now, after)
    if before <= 1 < then and not undone:
        return False
    return then <= before * (1 + caution.kept_for(now.uncertainty))


def _carried(now: Situation, allocation: Mapping[str, int]) -> float:
    """Return the multiple of the load that the bottleneck can carry."""
    loads = now.loads(allocation)
    return min(k / max(loads[name].erlangs, _LEAST_ERLANGS) for name, k in allocation.items())
