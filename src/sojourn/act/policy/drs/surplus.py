"""More processors than the load needs: which of them are removed, and when."""

from collections.abc import Mapping

from sojourn.act.policy.drs.caution import Caution
from sojourn.act.policy.drs.decision import Choice
from sojourn.act.policy.drs.load_estimate import Situation
from sojourn.act.policy.drs.requirement import Requirement

__all__ = ["saving", "surplus"]


def surplus(now: Situation, required: Requirement, low_s: float | None) -> bool:
    """Tell whether fewer processors are enough, and the measured latency is below *low_s*."""
    if now.goal.target is None or required.processors >= sum(now.current.values()):
        return False
    return low_s is None or now.measured_s < low_s


def saving(now: Situation, required: Requirement, caution: Caution) -> Choice:
    """Return which processors are removed, once the last observations agree."""
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
    """Return *wanted* without additions, if that meets the target too."""
    if now.goal.nodes is not None:
        return dict(wanted)
    less = {name: min(k, wanted[name]) for name, k in now.current.items()}
    return less if required.met(now, less) else dict(wanted)
