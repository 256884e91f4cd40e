"""`sojourn explain`: why each operator has what it has."""

from pathlib import Path
from typing import Annotated

import typer

from sojourn.cli.address import AddressArgument, RateOption, read_address
from sojourn.cli.options import (
    AllocationOption,
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
    read_allocation,
    read_nodes,
    read_target,
)
from sojourn.cli.plan import make_plan
from sojourn.decide import explain as decide
from sojourn.report.json.plans import explanation_report
from sojourn.report.output import hand_over
from sojourn.report.plot.explanation import draw_explanation
from sojourn.report.terminal.progress import working
from sojourn.report.terminal.tables import show_explanation

__all__ = ["explain"]


def explain(
    address: AddressArgument,
    rate: RateOption = None,
    allocation: AllocationOption = None,
    processors: ProcessorsOption = None,
    target_mean: TargetMeanOption = None,
    target_p50: TargetP50Option = None,
    target_p90: TargetP90Option = None,
    target_p95: TargetP95Option = None,
    target_p99: TargetP99Option = None,
    model: ModelOption = "gigk",
    slots_per_node: SlotsOption = None,
    reserved: ReservedOption = 0,
    plot: Annotated[
        Path | None, typer.Option(metavar="OUT.png", help="Draw it: PNG, SVG or PDF.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Explain an allocation, or the plan for a number of processors or a target.

    What the next processor would gain at each operator, what sets its number, what the
    allocations one move away would give, and how far arrivals can grow.

    Example: sojourn explain examples/vld.yaml --processors 22 --plot vld.png
    """
    topology = read_address(address, rate)
    target = read_target(
        mean=target_mean, p50=target_p50, p90=target_p90, p95=target_p95, p99=target_p99
    )
    nodes = read_nodes(slots_per_node, reserved)
    with working(f"planning {topology.name}") as far:
        chosen = (
            read_allocation(allocation)
            if allocation is not None
            else make_plan(topology, processors, target, model, nodes).allocation
        )
        far("looking at what else there is")
        explanation = decide.explain(topology, chosen, target, model=model)
    hand_over(
        as_json=json,
        report=lambda: explanation_report(explanation),
        show=lambda console: show_explanation(explanation, console),
        plot=plot,
        draw=lambda path: draw_explanation(topology, explanation, target, path),
    )
