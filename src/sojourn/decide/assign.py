"""DRS Algorithm 1: the best use of a given number of processors."""

from sojourn.decide.gains import Gains, least_allocation
from sojourn.decide.neighbours import moved, moves_s
from sojourn.decide.plan import Nodes, Plan, check_processors
from sojourn.decide.shared_cores import settled, with_its_own
from sojourn.errors import TooFewProcessors
from sojourn.model.network import mean_floor_s, stations
from sojourn.topology import Topology

__all__ = ["assign"]

# What shortens the mean by less than this part of it is rounding.
_LEAST_GAIN = 1e-9


def assign(
    topology: Topology, processors: int, *, model: str = "gigk", nodes: Nodes | None = None
) -> Plan:
    """Return the allocation of *processors* with the least mean sojourn time.

    With *nodes*, as many whole machines are used as *processors* allow. Some processors are
    left over only where every operator has reached its `max_processors`.

    Raise `TooFewProcessors` if they cannot keep up, `BoundTooLow` if a bound forbids it,
    `TooFewCores` if no number of them could.
    """
    check_processors(processors)
    plan = settled(topology, lambda shared: _assigned(shared, processors, model, nodes))
    return plan if plan.computing is None else _moved(topology, plan)


def _moved(topology: Topology, plan: Plan) -> Plan:
    """Return *plan* with processors moved while that helps: gains take no notice of cores."""
    allocation = dict(plan.allocation)
    for _ in range(plan.processors):
        moves = moves_s(topology, allocation, model=plan.model)
        if not moves or moves[0][0] >= -_LEAST_GAIN * plan.mean_s:
            break
        allocation = moved(allocation, *moves[0][1:])
    return plan if allocation == plan.allocation else with_its_own(topology, plan, allocation)


def _assigned(topology: Topology, processors: int, model: str, nodes: Nodes | None) -> Plan:
    whole = nodes.within(processors) if nodes else None
    usable = nodes.processors(whole) if nodes and whole is not None else processors
    gains = Gains(topology, stations(topology, model))
    if gains.processors > usable:
        raise TooFewProcessors(usable, least_allocation(topology))
    least = gains.processors
    gains.hand_out(usable - least)
    return Plan(
        name=topology.name,
        model=model,
        allocation=gains.allocation,
        mean_s=mean_floor_s(topology) + gains.wait_s,
        reason=_reason(gains, least, usable, processors, whole),
        least=least,
        nodes=whole,
    )


def _reason(gains: Gains, least: int, usable: int, asked: int, whole: int | None) -> str:
    reason = (
        f"{least} processors are the least that keep up; the other {gains.processors - least} "
        "went one by one where they shorten the mean the most"
    )
    if whole is not None:
        reason += f"; {whole} whole nodes have {usable} of the {asked}"
    if gains.processors < usable:
        reason += (
            f"; {usable - gains.processors} are left over, "
            "as every operator has its max_processors"
        )
    return reason
