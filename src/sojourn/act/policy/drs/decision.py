"""The final decision: no change in quiet hours, and no processors that would not run.

Processors that do not start stay requested. None are added that would have no core to run on: a
processor that computes needs one, and when all cores are busy, another only takes CPU time from
the rest. A processor that mostly waits, for I/O for example, still helps.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sojourn.act.latency import Outlook
from sojourn.act.policy.drs.load_estimate import Situation
from sojourn.act.policy.drs.requirement import Requirement
from sojourn.decide.plan import Expected
from sojourn.errors import CannotBeDone, TooFewCores
from sojourn.knowledge import Knowledge, Wish, allocation_text
from sojourn.model.cores import computing
from sojourn.topology import Operator, Topology
from sojourn.topology.node_cores import NodeCores

# Predicted utilisation at which cores are full: service times are many times as long there.
_FULL = 0.95
# The same for the measured utilisation of the machine, and the number of consecutive
# observations required: a single one may be a compiler, or log rotation.
_BUSY, _IN_A_ROW = 0.97, 2
# CPU time over service time above which an operator computes rather than waits.
_COMPUTES = 0.5


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
    wish = Wish(
        allocation=after,
        reason=reason,
        goal=str(now.goal),
        wanted=required.allocation,
        expected=_expected(now, then),
        offered=now.offered,
        noise=now.offered_noise,
        limited="" if required.error is None else "the goal was not possible",
    )
    return within_cores(wish, now.knowledge, now.topology, required.error)


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


def within_cores(
    wish: Wish, knowledge: Knowledge, topology: Topology, error: CannotBeDone | None = None
) -> Wish:
    """Return *wish* without more processors for operators that compute, if cores are busy.

    Cores are busy with the load of *topology*, for which the wish was made, or with other
    processes of the machine or of all nodes. Processors that would have moved to these
    operators stay. The wish is returned unchanged if cores are not known, or if it adds nodes
    with cores of their own. *error* is the reason why the plan misses its goal; it is not
    repeated if the reason of the wish includes it.
    """
    before = knowledge.allocation
    after = {n: _runs(topology.operator[n], before[n], k) for n, k in wish.allocation.items()}
    idle = [name for name, k in after.items() if k < wish.allocation[name]]
    full = "" if not idle or _brings_nodes(wish, topology) else _full(knowledge, topology)
    if not full:
        return wish
    kept = _kept(wish, before, after)
    same = kept == before
    # the reason must name the resulting allocation
    told = wish.reason.replace(
        f": {allocation_text(wish.allocation)}", "" if same else f": {allocation_text(kept)}"
    )
    reason = f"{told}, but {full}; more processors for {', '.join(idle)} would not run"
    if not (isinstance(error, TooFewCores) and str(error) in reason):  # which has this advice
        reason = f"{reason}; only more cores or less load will help"
    # the prediction was for another allocation
    limited = "cores were busy"
    return replace(wish, allocation=kept, reason=reason, expected=None, limited=limited)


def _runs(operator: Operator, before: int, after: int) -> int:
    """Return the processors of an operator without additional ones that would have no core."""
    if after <= before or (operator.cpu_s or 0.0) <= _COMPUTES * operator.service_s:
        return after
    return max(before, min(operator.min_processors, after))


def _kept(wish: Wish, before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Return *after* with the spare processors back at operators that would have lost some."""
    kept = dict(after)
    spare = sum(wish.allocation.values()) - sum(after.values())
    for name, k in before.items():
        back = max(0, min(k - kept[name], spare))
        kept[name] += back
        spare -= back
    return kept


def _brings_nodes(wish: Wish, topology: Topology) -> bool:
    """Return whether *wish* adds nodes, which have cores of their own."""
    cores = topology.cores
    if not isinstance(cores, NodeCores):
        return False
    return len(cores.holding(sum(wish.allocation.values()))) > len(cores.nodes)


def _full(knowledge: Knowledge, topology: Topology) -> str:
    """Return the text for busy cores; empty if some are free, or they are not known."""
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
