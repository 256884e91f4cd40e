"""The plan for a target, or for a number of processors."""

from sojourn.decide.assign import assign
from sojourn.decide.minimise import minimise
from sojourn.decide.nodes import Nodes
from sojourn.decide.solution import Solution
from sojourn.decide.target import Target
from sojourn.errors import BadCalibration, BadTarget
from sojourn.model.calibration import Calibration
from sojourn.topology import Topology

__all__ = ["solve"]


def solve(
    topology: Topology,
    processors: int | None,
    target: Target | None,
    *,
    model: str = "gigk",
    nodes: Nodes | None = None,
    calibration: Calibration | None = None,
) -> Solution:
    """Return the plan for a target, with *processors* at most; without one, their best use.

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
            raise BadCalibration(
                f"a polynomial is fitted to means and does not apply to {target.statistic}; "
                "calibrate by a factor or per hop, or plan for the mean"
            )
        target = Target(target.statistic, calibration.estimate_s(target.seconds))
    return minimise(topology, target, model=model, most=processors, nodes=nodes)
