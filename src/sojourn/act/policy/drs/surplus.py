"""Surplus: processors that the load does not need are removed, misplaced ones are moved."""

from collections.abc import Mapping
from dataclasses import replace
from math import inf

from sojourn.act.best_effort_plan import aim
from sojourn.act.policy.drs.caution import Caution
from sojourn.act.policy.drs.decision import Choice
from sojourn.act.policy.drs.load_estimate import Situation
from sojourn.act.policy.drs.requirement import Requirement
from sojourn.knowledge import allocation_text


def surplus(now: Situation, required: Requirement, low_s: float | None) -> bool:
    """Return whether fewer processors are enough, and the measured latency is below *low_s*."""
    if now.goal.target is None or required.processors >= sum(now.current.values()):
        return False
    return low_s is None or now.measured_s < low_s


def saving(now: Situation, required: Requirement, caution: Caution) -> Choice:
    """Return the processors to remove, once the last observations agree."""
    current, total = now.current, sum(now.current.values())
    wanted = caution.confirmed(now.knowledge, required.allocation)
    after = None if wanted is None else _shrunk(now, required, wanted)
    if after is None or sum(after.values()) >= total:
        enough = _enough(now, required.allocation)
        return Choice.hold(f"{enough}; waiting for confirmation")
    enough = _enough(now, after)
    undone = caution.undone(now, after)
    after |= {name: min(got, current[name]) for name, got in undone.items()}
    if sum(after.values()) >= total or (undone and not required.met(now, after)):
        return Choice.hold(
            f"{enough}, but this would undo a scale-up of {', '.join(undone)} at the same load"
        )
    if soon := caution.too_soon(now.knowledge):
        return Choice.hold(f"{enough}, but {soon}")
    if not caution.saves(now.knowledge, 1 - sum(after.values()) / total):
        pause_s = now.knowledge.pause_s
        return Choice.hold(f"{enough}, but the saving is not worth a pause of {pause_s:.3g} s")
    return Choice(after, _enough(now, after), required.note)


def _enough(now: Situation, allocation: Mapping[str, int]) -> str:
    return f"{sum(allocation.values())} of {sum(now.current.values())} processors are enough"


def _shrunk(now: Situation, required: Requirement, wanted: Mapping[str, int]) -> dict[str, int]:
    """Return *wanted* without additions, if that meets the target as well."""
    if now.goal.nodes is not None:
        return dict(wanted)
    less = {name: min(k, wanted[name]) for name, k in now.current.items()}
    return less if required.met(now, less) else dict(wanted)


def moved(now: Situation, required: Requirement, caution: Caution) -> Choice:
    """Return the best use of the current processors; without a target, of all allowed."""
    total = sum(now.current.values())
    most = total if now.goal.target else now.goal.most or total
    goal = replace(now.goal, target=None, most=most, nodes=None)
    best = aim(now.topology, goal).allocation
    if best == now.current:
        return Choice.hold(_well(now))
    if sum(best.values()) != total:
        why = f"{sum(best.values())} processors are to be used"
    else:
        gain_s, why = _gain(now, best)
        if against := _against(now, required, caution, best, gain_s):
            return Choice.hold(f"{_well(now)}; {allocation_text(best)} {why}, {against}")
    if soon := caution.too_soon(now.knowledge):
        return Choice.hold(f"{why}, but {soon}")
    return Choice(best, why)


def _gain(now: Situation, best: Mapping[str, int]) -> tuple[float, str]:
    """Return the reduction of the mean in seconds, and as text."""
    before, then = now.expected, now.predicted(best)
    if before is None or then is None:
        return inf, "would keep up"
    gain_s = before.mean_s - then.mean_s
    part = gain_s / before.mean_s if before.mean_s > 0 else 0.0
    return gain_s, f"is {part:.1%} faster with the same number of processors"


def _against(
    now: Situation,
    required: Requirement,
    caution: Caution,
    best: Mapping[str, int],
    gain_s: float,
) -> str:
    """Return why processors are not moved; empty if they should be."""
    pause_s = now.knowledge.pause_s
    if now.expected and gain_s < caution.least_gain * now.expected.mean_s:
        return "not worth a change"
    if caution.confirmed(now.knowledge, required.allocation) is None:
        return "waiting for confirmation"
    if not caution.pays(pause_s, gain_s):
        return f"not worth a pause of {pause_s:.3g} s"
    if undone := caution.undone(now, best):
        return f"but this would undo a change of {', '.join(undone)} at the same load"
    if not required.met(now, best):
        return "but it leaves no margin for a higher load"
    return ""


def _well(now: Situation) -> str:
    target = now.goal.target
    if target is None:
        return f"{now.text(now.expected)}, the best for this number of processors"
    near = now.expected is None or now.expected.seconds > target.seconds
    within = "as close as possible to" if near else "within"
    return f"{now.text(now.expected)}, {within} the target of {target.seconds:g} s"
