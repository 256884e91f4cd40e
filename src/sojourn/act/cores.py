"""Where the cores are the limit: no processor is added that would find no core.

A processor that computes needs a core. When all cores are busy, one more only takes time from
the others. A processor that mostly waits for something else still helps.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sojourn.act.policy.base import Policy
from sojourn.knowledge import Decision, Knowledge, allocation_text
from sojourn.model.cores import computing
from sojourn.topology import Topology

__all__ = ["WithinCores", "within_cores"]

# The part of the cores at which they are full: service times are many times as long there.
_FULL = 0.95
# The same for all that runs on the machine, and the observations in a row that it takes: a
# single one may be a compiler, or a log that is rotated.
_BUSY, _IN_A_ROW = 0.97, 2
# Said once: `TooFewCores` says it too.
_WAY_OUT = "only more cores"
# From this part of the service time on, an operator computes more than it waits.
_COMPUTES = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class WithinCores:
    """Decides as *policy* does, without processors that would find no core."""

    policy: Policy

    def __call__(self, knowledge: Knowledge, /) -> Decision:
        """Return what should be done now."""
        return within_cores(self.policy(knowledge), knowledge, knowledge.topology)


def within_cores(decision: Decision, knowledge: Knowledge, topology: Topology) -> Decision:
    """Return *decision* without processors for operators that compute, if cores are busy.

    They are busy with the load of *topology*, for which it was decided, or with what else
    runs on the machine. Processors that were to be moved for them stay. Where nothing is
    known of cores the decision is returned as it is.
    """
    after = {name: _runs(topology, decision, name) for name in decision.after}
    idle = [name for name, k in after.items() if k < decision.after[name]]
    full = _full(knowledge, topology) if idle else ""
    if not full:
        return decision
    kept = _kept(decision, after)
    same = kept == dict(decision.before)
    # the reason names the allocation that there will be
    told = decision.reason.replace(
        f": {allocation_text(decision.after)}", "" if same else f": {allocation_text(kept)}"
    )
    reason = f"{told}, but {full}; more processors for {', '.join(idle)} would not run"
    if _WAY_OUT not in reason:
        reason = f"{reason}; {_WAY_OUT} or less load will help"
    # the prediction was for another allocation
    return replace(decision, after=kept, reason=reason, expected=None)


def _runs(topology: Topology, decision: Decision, name: str) -> int:
    """Return the processors of an operator without those that would find no core."""
    operator, before, after = (
        topology.operator[name],
        decision.before[name],
        decision.after[name],
    )
    if after <= before or (operator.cpu_s or 0.0) <= _COMPUTES * operator.service_s:
        return after
    return max(before, min(operator.min_processors, after))


def _kept(decision: Decision, after: Mapping[str, int]) -> dict[str, int]:
    """Return *after* with processors back where they were to be taken from, one for one."""
    kept = dict(after)
    spare = sum(decision.after.values()) - sum(after.values())
    for name, before in decision.before.items():
        back = max(0, min(before - kept[name], spare))
        kept[name] += back
        spare -= back
    return kept


def _full(knowledge: Knowledge, topology: Topology) -> str:
    """Return which cores are busy; empty where some are free, or none are known."""
    shared = computing(topology)
    if shared is not None and shared.demand >= _FULL * shared.cores:
        return _text(shared.cores, shared.demand)
    usable = [o for o in knowledge.observations if o.usable][-_IN_A_ROW:]
    told = [
        (o.cores, o.busy_cores)
        for o in usable
        if o.cores is not None and o.busy_cores is not None
    ]
    if len(told) == _IN_A_ROW and all(busy >= _BUSY * cores for cores, busy in told):
        return _text(*told[-1])
    return ""


def _text(cores: float, busy: float) -> str:
    which = "core is" if f"{cores:.3g}" == "1" else "cores are"
    return f"the {cores:.3g} {which} busy ({busy:.3g} of {cores:.3g})"
