"""`sojourn plan`, `predict` and `explain`: allocations, their latency and the reasons."""

import json
from pathlib import Path
from typing import Annotated

from typer import Option

from sojourn.app.address import (
    import_from_here,
    is_application,
    load_here,
    parts_at,
    topology_at,
)
from sojourn.cli.options import JsonOption
from sojourn.cli.options.address import AddressArgument, RateOptions
from sojourn.cli.options.completion import completing
from sojourn.cli.options.goal import (
    AllocationOption,
    NodesOptions,
    ProcessorsOption,
    RequiredAllocationOption,
    TargetOptions,
    read_allocation,
)
from sojourn.cli.options.group import Group
from sojourn.decide import explain as explanations
from sojourn.decide.minimise import solve
from sojourn.errors import BadFile, BadInput
from sojourn.model import network
from sojourn.model.calibration import Calibration
from sojourn.model.station import names, station
from sojourn.registry import optional
from sojourn.report.json.output import print_json
from sojourn.report.json.plans import (
    explanation_report,
    plan_report,
    prediction_report,
)
from sojourn.report.plot.explanation import draw_explanation
from sojourn.report.terminal.progress import working
from sojourn.report.terminal.tables import show_explanation, show_plan, show_prediction


def _read_model(
    *,
    model: Annotated[
        str,
        Option(
            help=f"Station model: {', '.join(names())}, or your own: package.module:name. gigk "
            "uses the scv of arrivals and service, and equals mmk if both are 1. Operators "
            "with dispatch: round_robin always use round_robin.",
            autocompletion=completing(names),
        ),
    ] = "gigk",
) -> str:
    import_from_here(model)
    station(model)
    return model


_ModelOption = Annotated[str, Group(_read_model)]


def _read_calibration(
    *,
    calibration: Annotated[
        Path | None,
        Option(metavar="FILE", help="Correction of the model, written by `sojourn calibrate`."),
    ] = None,
) -> Calibration | None:
    if calibration is None:
        return None
    try:
        values = json.loads(calibration.read_text(encoding="utf-8"))
        high_s = values.get("high_s")
        return Calibration(
            coefficients=tuple(float(c) for c in values["coefficients"]),
            per_hop_s=float(values["per_hop_s"]),
            low_s=float(values["low_s"]),
            high_s=float("inf") if high_s is None else float(high_s),
        )
    except OSError as error:
        raise BadFile(
            str(calibration), f"cannot be read: {error.strerror}", "check the path"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        problem = f"is not output of `sojourn calibrate`: {error!r}"
        raise BadFile(str(calibration), problem, "fit it again") from error


_CalibrationOption = Annotated[Calibration | None, Group(_read_calibration)]


def plan(
    address: AddressArgument,
    *,
    rates: RateOptions,
    processors: ProcessorsOption = None,
    target: TargetOptions,
    model: _ModelOption,
    nodes: NodesOptions,
    calibration: _CalibrationOption,
    json: JsonOption = False,
) -> None:
    """Plan how many processors each operator should have.

    With --processors, the best use of that number; with a target, the fewest that meet it.

    Examples: sojourn plan examples/vld.yaml --processors 22 ·
    sojourn plan examples/vld.yaml --target-p95 3s --slots-per-node 5 --reserved 3
    """
    topology = topology_at(address, rates)
    with working(f"planning {topology.name}"):
        made = solve(
            topology, processors, target, model=model, nodes=nodes, calibration=calibration
        )
        predicted = network.predict(
            topology, made.allocation, model=model, calibration=calibration
        )
    if json:
        print_json(plan_report(made, predicted, target))
    else:
        show_plan(made, predicted, target)


def predict(
    address: AddressArgument,
    allocation: RequiredAllocationOption,
    *,
    rates: RateOptions,
    model: _ModelOption,
    calibration: _CalibrationOption,
    json: JsonOption = False,
) -> None:
    """Predict the latency of an allocation: mean, percentiles, each operator's share.

    Example: sojourn predict examples/vld.yaml --allocation extract=10,match=11,aggregate=1
    """
    topology, counts = topology_at(address, rates), read_allocation(allocation)
    with working(f"predicting {topology.name}"):
        predicted = network.predict(topology, counts, model=model, calibration=calibration)
    if json:
        print_json(prediction_report(predicted))
    else:
        show_prediction(predicted)


def explain(
    address: AddressArgument,
    *,
    rates: RateOptions,
    allocation: AllocationOption = None,
    processors: ProcessorsOption = None,
    target: TargetOptions,
    model: _ModelOption,
    nodes: NodesOptions,
    plot: Annotated[
        Path | None, Option(metavar="OUT.png", help="Plot it as PNG, SVG or PDF.")
    ] = None,
    spark: Annotated[
        bool, Option("--spark", help="Print the plans of the application's Spark queries, too.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Explain an allocation, or the plan for a number of processors or a target.

    It shows what the next processor would gain at each operator, what determines its number,
    what happens if one processor moves to another operator, and how far arrivals can grow. Of
    an application it also shows which operators run as one Spark query.

    Example: sojourn explain examples/vld.yaml --processors 22 --plot vld.png
    """
    topology = topology_at(address, rates)
    with working(f"planning {topology.name}") as far:
        chosen = (
            read_allocation(allocation)
            if allocation is not None
            else solve(topology, processors, target, model=model, nodes=nodes).allocation
        )
        far("comparing alternatives")
        explanation = explanations.explain(topology, chosen, target, model=model)
    if plot is not None:
        draw_explanation(topology, explanation, target, plot)
    plans = _plans_of_spark(address) if spark else {}
    if json:
        print_json(explanation_report(explanation, parts_at(address), plans))
    else:
        show_explanation(explanation, parts_at(address), plans)


def _plans_of_spark(address: str) -> dict[str, str]:
    if not is_application(address):
        raise BadInput(
            f"{address} is a topology, which has no queries; --spark needs an application"
        )
    with working("asking Spark for plans"):
        with optional("plans of Spark need", "spark"):
            from sojourn.spark.driver.query.query_builder import (  # noqa: PLC0415 - optional
                query_plans,
            )
        return query_plans(load_here(address), address)
