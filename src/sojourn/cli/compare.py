"""`sojourn compare`: what policies would make of the same load, on the simulator."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sojourn.act.policy import names
from sojourn.cli.address import AddressArgument, RateOption, read_address
from sojourn.cli.completion import policy_list
from sojourn.cli.options import (
    JsonOption,
    TargetMeanOption,
    TargetP50Option,
    TargetP90Option,
    TargetP95Option,
    TargetP99Option,
)
from sojourn.cli.shapes import GapsOption, ServiceOption, read_shapes
from sojourn.cli.stage import (
    EveryOption,
    FasterOption,
    MostOption,
    PauseOption,
    TimesOption,
    TraceOption,
    WindowOption,
    read_required_target,
    read_stage,
)
from sojourn.errors import UnknownPolicy
from sojourn.knowledge import Episode
from sojourn.report.output import hand_over

__all__ = ["compare"]

_FIRST = "drs"


def compare(
    address: AddressArgument,
    trace: TraceOption,
    rate: RateOption = None,
    policies: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…",
            help=f"Of {', '.join(names())}; all without it.",
            autocompletion=policy_list,
        ),
    ] = None,
    target_mean: TargetMeanOption = None,
    target_p50: TargetP50Option = None,
    target_p90: TargetP90Option = None,
    target_p95: TargetP95Option = None,
    target_p99: TargetP99Option = None,
    processors: MostOption = None,
    times: TimesOption = 1.0,
    faster: FasterOption = 1.0,
    every: EveryOption = "10s",
    window: WindowOption = "60s",
    pause: PauseOption = "0s",
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each policy: seeds 1 to N.")] = 3,
    service: ServiceOption = "auto",
    gaps: GapsOption = "renewal",
    plot: Annotated[
        Path | None,
        typer.Option(metavar="OUT.png", help="Draw the trade-off, and the first seed."),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write every root of every run: DIR/drs-1.parquet and so on."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Compare policies on the same load: time outside the target against processors.

    Each starts with the fewest processors that meet the target at the first rate, static
    with those for the highest rate.

    Example: sojourn compare examples/vld.yaml --trace examples/doubling.csv --target-p95 3s
    """
    from rich.progress import Progress  # noqa: PLC0415 - other commands do without it

    topology = read_address(address, rate, in_proportion=True)
    stage = read_stage(
        topology,
        trace,
        target=read_required_target(
            mean=target_mean, p50=target_p50, p90=target_p90, p95=target_p95, p99=target_p99
        ),
        most=processors,
        times=times,
        faster=faster,
        every=every,
        window=window,
        pause=pause,
        workload=read_shapes(topology, service, gaps),
    )
    from sojourn.report.comparison import outcomes  # noqa: PLC0415
    from sojourn.report.json.comparison import compare_report  # noqa: PLC0415 - numba is optional
    from sojourn.report.plot.comparison import draw_comparison  # noqa: PLC0415
    from sojourn.report.terminal.comparison import show_comparison  # noqa: PLC0415

    chosen, note = _read_policies(policies), stage.unmet
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("comparing", total=len(chosen) * seeds * stage.lasts_s)

        def turn(name: str, seed: int, episode: Episode) -> None:
            lasted_s = episode.observation.lasted_s
            bar.update(task, advance=lasted_s, description=f"{name}, seed {seed}")

        made = outcomes(stage, chosen, seeds, export=export, turn=turn)
    hand_over(
        as_json=json,
        report=lambda: compare_report(stage, made, note),
        show=lambda console: show_comparison(stage, made, note, console),
        wide=True,
        plot=plot,
        draw=lambda path: draw_comparison(stage, made, path),
    )


def _read_policies(text: str | None) -> list[str]:
    """Return the policies in `drs,ds2`, each once; all of them, drs first, without any."""
    if text is None:
        return sorted(names(), key=lambda name: name != _FIRST)
    chosen = list(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in chosen:
        if name not in names():
            raise UnknownPolicy(name, names())
    return chosen
