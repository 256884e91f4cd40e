"""`sojourn simulate`: the latency of an allocation, measured on the simulator."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, cast, get_args

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from typer import Option

from sojourn.app.address import topology_at
from sojourn.cli.options import JsonOption
from sojourn.cli.options.address import AddressArgument, RateOptions
from sojourn.cli.options.goal import RequiredAllocationOption, read_allocation
from sojourn.cli.options.stage import ShapesOptions
from sojourn.errors import BadWorkload
from sojourn.measure.duration import read_duration_s
from sojourn.report.json.output import print_json
from sojourn.report.json.plans import simulated_report
from sojourn.report.parquet import roots_to_parquet
from sojourn.report.plot.explanation import draw_simulated
from sojourn.report.terminal.progress import loading_simulator
from sojourn.report.terminal.tables import show_simulated
from sojourn.simulate.trace import read_rates
from sojourn.simulate.workload import Dispatching

_DISPATCHES = get_args(Dispatching)


def simulate(
    address: AddressArgument,
    allocation: RequiredAllocationOption,
    *,
    rates: RateOptions,
    duration: Annotated[
        str | None, Option(metavar="TIME", help="Simulated time: 10m, 2h.")
    ] = None,
    records: Annotated[
        int | None,
        Option(help="Root records to simulate (default: 100000, unless --duration is given)."),
    ] = None,
    seed: Annotated[int, Option(min=0, help="The same seed gives the same run.")] = 1,
    shapes: ShapesOptions,
    dispatch: Annotated[
        str | None,
        Option(
            help="How records are assigned to processors, overriding the file: shared, "
            "round_robin, by_key, shortest."
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        Option(
            "--rates",
            metavar="CSV",
            help="Changing load: CSV with timestamp,rate, divided among the arrivals of FILE.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        Option(metavar="OUT.png", help="Plot the distribution of completion times."),
    ] = None,
    export: Annotated[
        Path | None,
        Option(
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
        raise BadWorkload("--duration and --records exclude each other; leave out one of them")
    topology, counts = topology_at(address, rates), read_allocation(allocation)
    workload = shapes(topology)
    if dispatch is not None:
        if dispatch not in _DISPATCHES:
            known = ", ".join(_DISPATCHES)
            raise BadWorkload(f"{dispatch!r} is not a dispatch; write one of {known}")
        everywhere = dict.fromkeys(topology.operator, cast("Dispatching", dispatch))
        workload = replace(workload, dispatch=everywhere)
    if trace is not None:
        workload = replace(workload, rates=read_rates(trace).among(topology.arrivals))
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
