"""`sojourn objective`: what each level of an objective takes, on the simulator."""

from math import isnan
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from rich.text import Text
from typer import Option

from sojourn.app.address import topology_at
from sojourn.cli.options import JsonOption
from sojourn.cli.options.address import AddressArgument, RateOptions
from sojourn.cli.options.goal import SLICE, MostOption, RequiredTargetOptions, read_percent
from sojourn.cli.options.policy import PolicyOptions
from sojourn.cli.options.stage import ShapesOptions, StageOptions, TraceOption
from sojourn.decide.objective import Objective, percent
from sojourn.knowledge import Episode
from sojourn.measure.duration import read_duration_s, read_positive_s
from sojourn.report.json.output import print_json
from sojourn.report.levels import LEVELS, Level, levels
from sojourn.report.terminal.console import say, table, wide_console
from sojourn.report.text import clock, duration

if TYPE_CHECKING:  # importing the simulator takes a second
    from sojourn.simulate.rehearsal import Stage


def objective(
    address: AddressArgument,
    trace: TraceOption,
    *,
    rates: RateOptions,
    policy: PolicyOptions,
    target: RequiredTargetOptions,
    slice_: Annotated[str, SLICE] = "60s",
    kept: Annotated[
        list[str] | None,
        Option(
            metavar="PERCENT",
            help="Part of the slices in which the target must be kept; may be repeated "
            f"(default: {', '.join(map(percent, LEVELS))}).",
        ),
    ] = None,
    lasts: Annotated[
        str | None,
        Option("--for", metavar="TIME", help="Repeat the trace for this time (default: once)."),
    ] = None,
    processors: MostOption = None,
    make_stage: StageOptions,
    seeds: Annotated[int, Option(min=1, help="Runs for each part, with seeds 1 to N.")] = 1,
    shapes: ShapesOptions,
    price_per_hour: Annotated[
        float | None, Option(metavar="PRICE", min=0.0, help="Price of a processor per hour.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show what an objective takes: processors, changes and price for each part of the slices.

    It rehearses the loop for one part after the other. How much load is planned for follows
    from slices that were missed, so that results of less than a few hours say little.

    Example: sojourn objective examples/vld.yaml --trace examples/doubling.csv --target-p95 3s
    --for 6h
    """
    from rich.progress import Progress  # noqa: PLC0415 - slow to import

    topology = topology_at(address, rates, in_proportion=True)
    parts = [read_percent(text, "--kept") for text in kept] if kept else list(LEVELS)
    asked = [
        Objective(target=target, slice_s=read_duration_s(slice_), kept=part) for part in parts
    ]
    stage: Stage = make_stage(
        topology, trace, objective=asked[0], most=processors, workload=shapes(topology)
    )
    if lasts is not None:
        stage = stage.lasting(read_positive_s(lasts, "--for"))
    decides, said = policy.made(
        target, processors, every_s=stage.every_s, pauses=stage.pause_s > 0
    )
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("rehearsing", total=len(parts) * seeds * stage.lasts_s)

        def turn(part: float, seed: int, episode: Episode) -> None:
            doing = f"{percent(part)}, seed {seed}"
            bar.update(task, advance=episode.observation.lasted_s, description=doing)

        found = levels(stage, decides, parts, seeds, turn=turn)
    if json:
        print_json(_report(stage, found, price_per_hour))
    else:
        _show(stage, said, seeds, found, price_per_hour)


def _report(stage: "Stage", found: list[Level], price_per_hour: float | None) -> dict[str, Any]:
    return {
        "name": stage.topology.name,
        "target": stage.target,
        "slice_s": stage.objective.slice_s,
        "lasts_s": stage.lasts_s,
        "every_s": stage.every_s,
        "note": "; ".join(stage.notes),
        "levels": found,
        "price_per_day": None
        if price_per_hour is None
        else [level.price(price_per_hour) for level in found],
    }


def _show(
    stage: "Stage", said: str, seeds: int, found: list[Level], price_per_hour: float | None
) -> None:
    runs = "" if seeds == 1 else f", {seeds} seeds"
    say(f"{stage.topology.name} · {said} · {clock(stage.lasts_s)} of load{runs}", "bold")
    heads = ["required", "kept", "slices", "processors", "changes per hour"]
    heads += [f"worst {stage.target.statistic}"]
    heads += [] if price_per_hour is None else ["price per day"]
    made = table(*heads, right=heads)
    for level in found:
        price = [] if price_per_hour is None else [f"{level.price(price_per_hour):.2f}"]
        made.add_row(*map(Text, [*_cells(level), *price]))
    wide_console().print(made)
    for note in stage.notes:
        say(f"note: {note}")


def _cells(level: Level) -> list[str]:
    return [
        percent(level.required),
        "" if isnan(level.kept.value) else f"{level.kept.value:.2%}",
        f"{level.slices:,}",
        f"{level.processors.value:.2f}",
        f"{level.changes_per_hour.value:.3g}",
        "" if isnan(level.worst_s) else duration(level.worst_s),
    ]
