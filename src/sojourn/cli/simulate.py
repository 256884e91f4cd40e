"""`sojourn simulate`: the latency of an allocation, measured on the simulator."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, cast, get_args

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

from sojourn.cli.options.address import AddressArgument, RateOption, read_address
from sojourn.cli.options.allocation import RequiredAllocationOption, read_allocation
from sojourn.cli.options.duration import read_duration_s
from sojourn.cli.options.output import JsonOption
from sojourn.cli.options.shapes import Shapes, ShapesOptions
from sojourn.cli.simulator import loading_simulator
from sojourn.errors import BadWorkload
from sojourn.report.json.output import print_json
from sojourn.report.json.plans import simulated_report
from sojourn.report.parquet import roots_to_parquet
from sojourn.report.plot.explanation import draw_simulated
from sojourn.report.terminal.tables import show_simulated
from sojourn.simulate.trace import read_rates
from sojourn.simulate.workload import Dispatching, Workload
from sojourn.topology import Topology

__all__ = ["simulate"]


def simulate(
    address: AddressArgument,
    allocation: RequiredAllocationOption,
    *,
    rate: RateOption = None,
    duration: Annotated[
        str | None, typer.Option(metavar="TIME", help="Simulated time: 10m, 2h.")
    ] = None,
    records: Annotated[
        int | None,
        typer.Option(
            help="Root records to simulate (default: 100000, unless --duration is given)."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same run.")] = 1,
    shapes: ShapesOptions,
    dispatch: Annotated[
        str | None,
        typer.Option(
            help="How records are assigned to processors, overriding the file: shared, "
            "round_robin, by_key, shortest."
        ),
    ] = None,
    rates: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV",
            help="Changing load: CSV with timestamp,rate, divided among the arrivals of FILE.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="OUT.png", help="Plot the distribution of completion times."),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT.parquet", help="Write each root: birth, completion, sum of sojourns."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Simulate an allocation and measure its latency.

    Example: sojourn simulate examples/vld.yaml --allocation extract=10,match=11,aggregate=1
    """
    from rich.progress import Progress  # noqa: PLC0415 - slow to import

    with loading_simulator():
        from sojourn.simulate.run import simulate as run  # noqa: PLC0415 - numba is optional
    if duration is not None and records is not None:
        raise BadWorkload("--duration and --records are both given; a run ends by one of them")
    topology, counts = read_address(address, rate), read_allocation(allocation)
    workload = _workload(topology, shapes, dispatch, rates)
    progress = Progress(console=Console(stderr=True), transient=True)
    with progress as bar, roots_to_parquet(export) as write:
        task = bar.add_task(f"simulating {topology.name}", total=1.0)

        def each(part: float, roots: NDArray[np.void]) -> None:
            bar.update(task, completed=part)
            write(part, roots)

        done = run(
            topology,
            counts,
            duration_s=None if duration is None else read_duration_s(duration),
            roots=(100_000 if records is None else records) if duration is None else None,
            workload=workload,
            seed=seed,
            each=each,
        )
    if plot is not None:
        draw_simulated(topology, done, plot)
    if json:
        print_json(simulated_report(done))
    else:
        show_simulated(topology, done)


def _workload(
    topology: Topology, shapes: Shapes, dispatch: str | None, rates: Path | None
) -> Workload:
    known = get_args(Dispatching)
    if dispatch is not None and dispatch not in known:
        raise BadWorkload(f"{dispatch!r} is not a dispatch; write one of {', '.join(known)}")
    chosen = cast("Dispatching | None", dispatch)
    whole = None if rates is None else read_rates(rates)
    return replace(
        shapes.workload(topology),
        dispatch={} if chosen is None else dict.fromkeys(topology.operator, chosen),
        rates={}
        if whole is None
        else {
            arrival.name: whole.times(arrival.per_s / topology.arrivals_per_s)
            for arrival in topology.arrivals
        },
    )
