"""DRS Algorithm 1: the best use of a given number of processors."""

from sojourn.decide.gains import Gains, least_allocation
from sojourn.decide.neighbours import moved, moves_s
from sojourn.decide.solution import NodeSize, Solution, settled, with_its_own
from sojourn.decide.target import check_processors
from sojourn.errors import TooFewProcessors
from sojourn.model.network import served_s, stations
from sojourn.topology import Topology

# A relative change of the mean below this is rounding.
_LEAST_GAIN = 1e-9


def assign(
    topology: Topology, processors: int, *, model: str = "gigk", nodes: NodeSize | None = None
) -> Solution:
    """Return the allocation of *processors* with the least mean sojourn time.

    With *nodes*, only whole machines are used, as many as *processors* allow. Processors
    remain unused only if every operator has reached its `max_processors`.

    Raise `TooFewProcessors` if they cannot keep up, `BoundTooLow` if a bound forbids it,
    `TooFewCores` if the cores cannot keep up with any number of processors.
    """
    check_processors(processors)
    found = settled(topology, lambda shared: _assigned(shared, processors, model, nodes))
    return found if found.computing is None else _moved(topology, found)


def _moved(topology: Topology, found: Solution) -> Solution:
    """Return *found* improved by moves of single processors, because gains ignore cores."""
    allocation = dict(found.allocation)
    for _ in range(found.processors):
        moves = moves_s(topology, allocation, model=found.model)
        if not moves or moves[0][0] >= -_LEAST_GAIN * found.mean_s:
            break
        allocation = moved(allocation, *moves[0][1:])
    return (
        found if allocation == found.allocation else with_its_own(topology, found, allocation)
    )


def _assigned(
    topology: Topology, processors: int, model: str, nodes: NodeSize | None
) -> Solution:
    whole = nodes.within(processors) if nodes else None
    usable = nodes.processors(whole) if nodes and whole is not None else processors
    gains = Gains(topology, stations(topology, model))
    if gains.processors > usable:
        raise TooFewProcessors(usable, least_allocation(topology))
    least = gains.processors
    gains.hand_out(usable - least)
    return Solution(
        name=topology.name,
        model=model,
        allocation=gains.allocation,
        mean_s=served_s(topology) + gains.wait_s,
        reason=_reason(gains, least, usable, processors, whole),
        least=least,
        nodes=whole,
    )


def _reason(gains: Gains, least: int, usable: int, asked: int, whole: int | None) -> str:
    reason = (
        f"{least} processors are the minimum for stability; each of the other "
        f"{gains.processors - least} is where it shortens the mean most"
    )
    if whole is not None:
        reason += f"; {whole} whole nodes provide {usable} of the {asked}"
    if gains.processors < usable:
        reason += (
            f"; {usable - gains.processors} are unused, "
            "because every operator is at its max_processors"
        )
    return reason
