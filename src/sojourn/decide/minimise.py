"""DRS Algorithm 2: the fewest processors that meet a latency target.

`solve` chooses between it and `assign`.
"""

from sojourn.decide.assign import assign
from sojourn.decide.gains import THOROUGH, Effort, Gains, least_allocation
from sojourn.decide.percentile import Fewest, fewest_for_percentile
from sojourn.decide.solution import NodeSize, Solution, settled
from sojourn.decide.target import Target, check_processors
from sojourn.errors import (
    BadInput,
    BadTarget,
    TargetBelowFloor,
    TargetOutOfReach,
    TargetTooStrict,
)
from sojourn.model.calibration import Calibration
from sojourn.model.network import (
    hot_key,
    mean_floor_s,
    mean_s,
    percentile_s,
    served_s,
    stations,
)
from sojourn.topology import Topology

# Subtracting gains one by one drifts from the true sum by less than this part of the target.
# The greedy phase may therefore stop too early; the last steps compute the mean itself.
_DRIFT = 1e-9


def minimise(
    topology: Topology,
    target: Target,
    *,
    model: str = "gigk",
    most: int | None = None,
    nodes: NodeSize | None = None,
    effort: Effort = THOROUGH,
) -> Solution:
    """Return the fewest processors, at most *most*, that meet *target*.

    With *nodes*, return the fewest whole machines, with all their processors allocated.
    *effort* limits the search.

    Raise `TargetBelowFloor` if no number of processors meets it, `TargetOutOfReach` if *most*
    or the bounds of operators are too low, `TargetTooStrict` if none within the limit of the
    search meets it, `TooFewCores` if the cores cannot keep up with any number of processors.
    """
    if most is not None:
        check_processors(most)
    return settled(
        topology, lambda shared: _minimised(shared, target, model, most, nodes, effort)
    )


def _minimised(
    topology: Topology,
    target: Target,
    model: str,
    most: int | None,
    nodes: NodeSize | None,
    effort: Effort,
) -> Solution:
    found = _fewest(topology, target, model, effort)
    allocation, whole = found.allocation, None
    if nodes is not None:
        whole = nodes.holding(sum(allocation.values()))
        gains = Gains(topology, stations(topology, model), start=allocation)
        gains.hand_out(nodes.processors(whole) - gains.processors)
        allocation = gains.allocation
    needed = sum(allocation.values())
    if most is not None and needed > most:
        reached_s = _reached_s(topology, target, most, model, nodes)
        raise TargetOutOfReach(str(target), reached_s, most, needed)
    return Solution(
        name=topology.name,
        model=model,
        allocation=allocation,
        mean_s=mean_s(topology, allocation, model=model),
        reason=_reason(topology, target, found, whole, model) if effort.explains else "",
        least=found.least,
        target=target,
        nodes=whole,
    )


def _fewest(topology: Topology, target: Target, model: str, effort: Effort) -> Fewest:
    if target.statistic != "mean":
        return fewest_for_percentile(topology, target, model=model, effort=effort)
    gains = Gains(topology, stations(topology, model))
    alone_s, floor_s = served_s(topology), mean_floor_s(topology, model=model)
    spare_s, keys_s = target.seconds - floor_s, floor_s - alone_s
    if spare_s < 0 or (spare_s == 0 and gains.wait_s > keys_s):
        raise _below_floor(topology, target, model, floor_s)
    enough_s = spare_s + keys_s + _DRIFT * target.seconds
    most = effort.most_processors(gains.processors)
    gains.hand_out(most - gains.processors, until_wait_s=enough_s)
    while (reached_s := mean_s(topology, gains.allocation, model=model)) > target.seconds:
        if gains.processors >= most:
            raise TargetTooStrict(str(target), reached_s, gains.processors)
        if not gains.hand_out(1, until_wait_s=0.0):
            if gains.wait_s <= keys_s * (1 + _DRIFT):
                raise _below_floor(topology, target, model, floor_s)
            raise TargetOutOfReach(str(target), reached_s, gains.processors)
    return Fewest(gains.allocation, gains.processors)


def _below_floor(
    topology: Topology, target: Target, model: str, floor_s: float
) -> TargetBelowFloor:
    """Return the error for a target below *floor_s*, with the key that causes it, if any."""
    hot = hot_key(topology, model=model) if target.seconds >= served_s(topology) else None
    return TargetBelowFloor(str(target), floor_s, "" if hot is None else hot.said)


def _reached_s(
    topology: Topology,
    target: Target,
    processors: int,
    model: str,
    nodes: NodeSize | None = None,
) -> float:
    """Return the target's statistic for the best use of *processors*."""
    best = assign(topology, processors, model=model, nodes=nodes)
    if target.statistic == "mean":
        return best.mean_s
    return percentile_s(topology, best.allocation, target.statistic, model=model)


def _reason(
    topology: Topology, target: Target, found: Fewest, whole: int | None, model: str
) -> str:
    fewest = sum(found.allocation.values())
    keeping_up = sum(least_allocation(topology).values())
    if found.least < fewest:
        reason = (
            f"{fewest} processors meet {target}; fewer than {found.least} cannot, and the "
            "search stopped before it tried all numbers in between"
        )
    elif fewest == keeping_up:
        reason = f"{fewest} processors are the minimum for stability, and meet {target}"
    else:
        reached_s = _reached_s(topology, target, fewest - 1, model)
        reason = (
            f"{fewest} processors are the fewest that meet {target}; the best use of "
            f"{fewest - 1} gives {reached_s:.4g} s; {keeping_up} is the minimum for stability"
        )
    return reason if whole is None else f"{reason}; this takes {whole} whole nodes"


def solve(
    topology: Topology,
    processors: int | None,
    target: Target | None,
    *,
    model: str = "gigk",
    nodes: NodeSize | None = None,
    calibration: Calibration | None = None,
) -> Solution:
    """Return the fewest processors, at most *processors*, that meet *target*.

    Without a target, return the best use of *processors*.

    Raise `BadTarget` if neither is given.
    """
    if calibration is not None:
        topology = calibration.topology(topology)
    if target is None:
        if processors is None:
            raise BadTarget(
                "a plan needs --processors or a target; write --processors 22, "
                "--target-mean 500ms or --target-p95 1s"
            )
        return assign(topology, processors, model=model, nodes=nodes)
    if calibration is not None:
        if target.statistic != "mean" and not calibration.is_factor:
            raise BadInput(
                f"a polynomial is fitted to means and does not apply to {target.statistic}; "
                "calibrate by a factor or per hop, or plan for the mean"
            )
        target = Target(target.statistic, calibration.estimate_s(target.seconds))
    return minimise(topology, target, model=model, most=processors, nodes=nodes)
