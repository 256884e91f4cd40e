"""`sojourn explain`: why each operator has its number of processors."""

from pathlib import Path
from typing import Annotated

import typer

from sojourn.cli.options.address import AddressArgument, RateOption, read_address
from sojourn.cli.options.allocation import (
    AllocationOption,
    NodesOptions,
    ProcessorsOption,
    read_allocation,
)
from sojourn.cli.options.model import ModelOption
from sojourn.cli.options.output import JsonOption
from sojourn.cli.options.target import TargetOptions
from sojourn.cli.plan import make_plan
from sojourn.decide import explain as decide
from sojourn.report.json.output import print_json
from sojourn.report.json.plans import explanation_report
from sojourn.report.plot.explanation import draw_explanation
from sojourn.report.terminal.progress import working
from sojourn.report.terminal.tables import show_explanation

__all__ = ["explain"]


def explain(
    address: AddressArgument,
    *,
    rate: RateOption = None,
    allocation: AllocationOption = None,
    processors: ProcessorsOption = None,
    target: TargetOptions,
    model: ModelOption,
    nodes: NodesOptions,
    plot: Annotated[
        Path | None, typer.Option(metavar="OUT.png", help="Plot it as PNG, SVG or PDF.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Explain an allocation, or the plan for a number of processors or a target.

    It shows what the next processor would gain at each operator, what determines its number,
    what happens if one processor moves to another operator, and how far arrivals can grow.

    Example: sojourn explain examples/vld.yaml --processors 22 --plot vld.png
    """
    topology = read_address(address, rate)
    with working(f"planning {topology.name}") as far:
        chosen = (
            read_allocation(allocation)
            if allocation is not None
            else make_plan(topology, processors, target, model, nodes).allocation
        )
        far("comparing alternatives")
        explanation = decide.explain(topology, chosen, target, model=model)
    if plot is not None:
        draw_explanation(topology, explanation, target, plot)
    if json:
        print_json(explanation_report(explanation))
    else:
        show_explanation(explanation)
