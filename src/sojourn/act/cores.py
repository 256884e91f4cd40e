"""Where the cores are the limit: processors that could not run are not added.

A processor that computes needs a core. When all cores are busy, one more takes from the others
what it gets: nothing is faster, and what the processors wait for is only moved. One that
mostly waits for something else still helps.
"""

from collections.abc import Mapping
from dataclasses import replace

from sojourn.knowledge import Decision, Knowledge, allocation_text
from sojourn.model.cores import computing
from sojourn.topology import Topology

__all__ = ["within_cores"]

# Of what records may have of the cores: closer to it, they take many times as long as alone.
_FULL = 0.95
# Of all the machine, which never gets to the last of its cores, in so many observations in a
# row: one may be a compiler, or a log that is rotated.
_BUSY, _IN_A_ROW = 0.97, 2
# What is said once: the note of a plan that finds too few cores says so too.
_WAY_OUT = "only more cores"
# From this part of the service time on, an operator computes more than it waits.
_COMPUTES = 0.5


def within_cores(decision: Decision, knowledge: Knowledge) -> Decision:
    """Return *decision* without processors for operators that compute, if cores are busy.

    What others were to give up for them stays where it is. Where nothing is known of cores
    the decision is what it was.
    """
    after = {name: _runs(knowledge.topology, decision, name) for name in decision.after}
    idle = [name for name, k in after.items() if k < decision.after[name]]
    full = _full(knowledge) if idle else ""
    if not full:
        return decision
    kept = _kept(decision, after)
    same = kept == dict(decision.before)
    # the processors that are told are those that there will be
    told = decision.reason.replace(
        f": {allocation_text(decision.after)}", "" if same else f": {allocation_text(kept)}"
    )
    reason = f"{told}; but {full}: processors for {', '.join(idle)} could not run"
    if _WAY_OUT not in reason:
        reason = f"{reason}; {_WAY_OUT}, or less load, will do"
    # what was expected was expected of other processors
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


def _full(knowledge: Knowledge) -> str:
    """Return which cores are busy; nothing where some are free, or it is not known."""
    shared = computing(knowledge.topology)
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
