"""Stalled operators: records wait, processors are idle, and no record is processed.

Something before the operator fails, for example the connection from executors to the brokers.
More processors would be idle as well, and a restart would resume with them, so a stalled
operator keeps its processors until records are processed again.
"""

from dataclasses import replace

from sojourn.knowledge import Knowledge, Wish, allocation_text
from sojourn.measure.observation import Observation, ObservedOperator
from sojourn.topology import Topology


def stalled(topology: Topology, seen: Observation) -> tuple[str, ...]:
    """Return the operators that processed nothing with idle processors while records wait.

    Idle operators downstream of a stalled one are stalled too: no records reach them. If the
    engine does not report how many processors are at work, no operator is stalled.
    """
    if not seen.usable:
        return ()
    idle = {name for name, operator in seen.operators.items() if _idle(operator)}
    found = {
        name
        for name in idle
        if seen.operators[name].arrivals_per_s > 0 or seen.operators[name].backlog > 0
    }
    grown = True
    while grown:
        behind = {target for name in found for target in topology.gains[name]} & idle
        grown = not behind <= found
        found |= behind
    return tuple(name for name in topology.operator if name in found)


def unless_stalled(wish: Wish, knowledge: Knowledge) -> Wish:
    """Return *wish* with stalled operators unchanged; others may change.

    Nothing changes if the result would have more processors than both the wish and the current
    allocation. The recommendation is dropped, because it is based on records that were not
    served.
    """
    before, seen = knowledge.allocation, knowledge.seen
    stuck = () if seen is None or seen.warming else stalled(knowledge.topology, seen)
    if not stuck:
        return wish
    after = {**wish.allocation, **{name: before[name] for name in stuck}}
    most = max(sum(wish.allocation.values()), sum(before.values()))
    whose = "its" if len(stuck) == 1 else "their"
    reason = (
        f"no record was processed at {', '.join(stuck)} although records wait, and {whose} "
        "processors are idle; more processors would not help"
    )
    if after == before or sum(after.values()) > most:
        after = dict(before)
    else:  # the reason must name the resulting allocation
        told = wish.reason.replace(allocation_text(wish.allocation), allocation_text(after))
        reason = f"{told}; {reason}"
    return replace(wish, allocation=after, reason=reason, wanted=None, expected=None)


def _idle(operator: ObservedOperator) -> bool:
    return operator.running > 0 and operator.served == 0 and operator.at_work == 0
