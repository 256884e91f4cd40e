"""Where the cores are the limit: no processor is added that would find no core.

A processor that computes needs a core. When all cores are busy, one more only takes time from
the others. A processor that mostly waits for something else still helps.
"""

from collections.abc import Mapping
from dataclasses import replace

from sojourn.errors import CannotBeDone, TooFewCores
from sojourn.knowledge import Knowledge, Wish, allocation_text
from sojourn.model.cores import computing
from sojourn.topology import Operator, Topology
from sojourn.topology.node_cores import NodeCores

__all__ = ["within_cores"]

# The part of the cores at which they are full: service times are many times as long there.
_FULL = 0.95
# The same for all that runs on the machine, and the observations in a row that it takes: a
# single one may be a compiler, or a log that is rotated.
_BUSY, _IN_A_ROW = 0.97, 2
# From this part of the service time on, an operator computes more than it waits.
_COMPUTES = 0.5


def within_cores(
    wish: Wish, knowledge: Knowledge, topology: Topology, error: CannotBeDone | None = None
) -> Wish:
    """Return *wish* without processors for operators that compute, if cores are busy.

    They are busy with the load of *topology*, for which it was decided, or with what else
    runs on the machine, or on all nodes of a cluster. Processors that were to be moved for them
    stay. Where nothing is known of cores, or nodes come for the wish that have some, it is
    returned as it is. Its reason may include *error*, which says what the plan does not reach.
    """
    before = knowledge.allocation
    after = {n: _runs(topology.operator[n], before[n], k) for n, k in wish.allocation.items()}
    idle = [name for name, k in after.items() if k < wish.allocation[name]]
    full = "" if not idle or _brings_nodes(wish, topology) else _full(knowledge, topology)
    if not full:
        return wish
    kept = _kept(wish, before, after)
    same = kept == before
    # the reason names the allocation that there will be
    told = wish.reason.replace(
        f": {allocation_text(wish.allocation)}", "" if same else f": {allocation_text(kept)}"
    )
    reason = f"{told}, but {full}; more processors for {', '.join(idle)} would not run"
    if not (isinstance(error, TooFewCores) and str(error) in reason):  # which says it too
        reason = f"{reason}; only more cores or less load will help"
    # the prediction was for another allocation
    return replace(wish, allocation=kept, reason=reason, expected=None)


def _runs(operator: Operator, before: int, after: int) -> int:
    """Return the processors of an operator without those that would find no core."""
    if after <= before or (operator.cpu_s or 0.0) <= _COMPUTES * operator.service_s:
        return after
    return max(before, min(operator.min_processors, after))


def _kept(wish: Wish, before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Return *after* with processors back where they were to be taken from, one for one."""
    kept = dict(after)
    spare = sum(wish.allocation.values()) - sum(after.values())
    for name, k in before.items():
        back = max(0, min(k - kept[name], spare))
        kept[name] += back
        spare -= back
    return kept


def _brings_nodes(wish: Wish, topology: Topology) -> bool:
    """Tell whether nodes come for the processors of *wish*, with cores of their own."""
    cores = topology.cores
    if not isinstance(cores, NodeCores):
        return False
    return len(cores.holding(sum(wish.allocation.values()))) > len(cores.nodes)


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
