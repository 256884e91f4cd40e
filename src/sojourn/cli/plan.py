"""`sojourn plan`: how many processors each operator should have."""

from sojourn.cli.options.address import AddressArgument, RateOption, read_address
from sojourn.cli.options.allocation import NodesOptions, ProcessorsOption
from sojourn.cli.options.model import CalibrationOption, ModelOption
from sojourn.cli.options.output import JsonOption
from sojourn.cli.options.target import TargetOptions
from sojourn.decide.assign import assign
from sojourn.decide.minimise import minimise
from sojourn.decide.nodes import Nodes
from sojourn.decide.solution import Solution
from sojourn.decide.target import Target
from sojourn.errors import BadCalibration, BadTarget
from sojourn.model.calibration import Calibration
from sojourn.model.network import predict
from sojourn.report.json.output import print_json
from sojourn.report.json.plans import plan_report
from sojourn.report.terminal.progress import working
from sojourn.report.terminal.tables import show_plan
from sojourn.topology import Topology

__all__ = ["make_plan", "plan"]


def plan(
    address: AddressArgument,
    *,
    rate: RateOption = None,
    processors: ProcessorsOption = None,
    target: TargetOptions,
    model: ModelOption,
    nodes: NodesOptions,
    calibration: CalibrationOption,
    json: JsonOption = False,
) -> None:
    """Plan how many processors each operator should have.

    With --processors, the best use of that number; with a target, the fewest that meet it.

    Examples: sojourn plan examples/vld.yaml --processors 22 ·
    sojourn plan examples/vld.yaml --target-p95 3s --slots-per-node 5 --reserved 3
    """
    topology = read_address(address, rate)
    with working(f"planning {topology.name}"):
        made = make_plan(topology, processors, target, model, nodes, calibration)
        predicted = predict(topology, made.allocation, model=model, calibration=calibration)
    if json:
        print_json(plan_report(made, predicted, target))
    else:
        show_plan(made, predicted, target)


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
                f"a polynomial is fitted to means and does not apply to {target.statistic}; "
                "calibrate by a factor or per hop, or plan for the mean"
            )
        target = Target(target.statistic, calibration.estimate_s(target.seconds))
    return minimise(topology, target, model=model, most=processors, nodes=nodes)
