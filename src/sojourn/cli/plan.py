"""`sojourn plan`: how many processors each operator should have."""

from sojourn.cli.address import AddressArgument, RateOption, read_address
from sojourn.cli.calibrate import read_calibration
from sojourn.cli.options import (
    CalibrationOption,
    JsonOption,
    ModelOption,
    ProcessorsOption,
    ReservedOption,
    SlotsOption,
    TargetMeanOption,
    TargetP50Option,
    TargetP90Option,
    TargetP95Option,
    TargetP99Option,
    read_nodes,
    read_target,
)
from sojourn.decide.assign import assign
from sojourn.decide.minimise import minimise
from sojourn.decide.nodes import Nodes
from sojourn.decide.solution import Solution
from sojourn.decide.target import Target
from sojourn.errors import BadCalibration, BadTarget
from sojourn.model.calibration import Calibration
from sojourn.model.network import predict
from sojourn.report.json.plans import plan_report
from sojourn.report.output import hand_over
from sojourn.report.terminal.progress import working
from sojourn.report.terminal.tables import show_plan
from sojourn.topology import Topology

__all__ = ["make_plan", "plan"]


def plan(
    address: AddressArgument,
    rate: RateOption = None,
    processors: ProcessorsOption = None,
    target_mean: TargetMeanOption = None,
    target_p50: TargetP50Option = None,
    target_p90: TargetP90Option = None,
    target_p95: TargetP95Option = None,
    target_p99: TargetP99Option = None,
    model: ModelOption = "gigk",
    slots_per_node: SlotsOption = None,
    reserved: ReservedOption = 0,
    calibration: CalibrationOption = None,
    json: JsonOption = False,
) -> None:
    """Plan how many processors each operator should have.

    With --processors, the best use of so many; with a target, the fewest that meet it.

    Examples: sojourn plan examples/vld.yaml --processors 22 ·
    sojourn plan examples/vld.yaml --target-p95 3s --slots-per-node 5 --reserved 3
    """
    topology = read_address(address, rate)
    target = read_target(
        mean=target_mean, p50=target_p50, p90=target_p90, p95=target_p95, p99=target_p99
    )
    nodes = read_nodes(slots_per_node, reserved)
    correction = read_calibration(calibration)
    with working(f"planning {topology.name}"):
        made = make_plan(topology, processors, target, model, nodes, correction)
        predicted = predict(topology, made.allocation, model=model, calibration=correction)
    hand_over(
        as_json=json,
        report=lambda: plan_report(made, predicted, target),
        show=lambda console: show_plan(made, predicted, target, console),
    )


def make_plan(
    topology: Topology,
    processors: int | None,
    target: Target | None,
    model: str,
    nodes: Nodes | None = None,
    calibration: Calibration | None = None,
) -> Solution:
    """Return the plan for a target, or for a number of processors without one."""
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
                f"a polynomial is fitted to means and says nothing of {target.statistic}; "
                "calibrate by a factor or per hop, or plan for the mean"
            )
        target = Target(target.statistic, calibration.estimate_s(target.seconds))
    return minimise(topology, target, model=model, most=processors, nodes=nodes)
