"""`sojourn compare`: policies on the same load, on the simulator."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.console import Console
from typer import Option

from sojourn.act.options import read_choices
from sojourn.act.policy import names
from sojourn.app.address import import_from_here, topology_at
from sojourn.cli.options import JsonOption
from sojourn.cli.options.address import AddressArgument, RateOptions
from sojourn.cli.options.completion import policy_list
from sojourn.cli.options.goal import MostOption, ObjectiveOptions
from sojourn.cli.options.stage import ShapesOptions, StageOptions, TraceOption
from sojourn.errors import BadInput
from sojourn.knowledge import Episode
from sojourn.report import tuning
from sojourn.report.comparison import outcomes
from sojourn.report.json.output import print_json
from sojourn.report.json.runs import compare_report
from sojourn.report.plot.comparison import draw_comparison
from sojourn.report.terminal.runs import show_comparison

if TYPE_CHECKING:  # importing the simulator takes a second
    from sojourn.simulate.rehearsal import Stage


def compare(
    address: AddressArgument,
    trace: TraceOption,
    *,
    rates: RateOptions,
    policies: Annotated[
        str | None,
        Option(
            metavar="NAME,…",
            help=f"Policies to compare: {', '.join(names())} (default: all). With options: "
            "drs,threshold:utilisation=0.6.",
            autocompletion=policy_list,
        ),
    ] = None,
    objective: ObjectiveOptions,
    processors: MostOption = None,
    make_stage: StageOptions,
    seeds: Annotated[int, Option(min=1, help="Runs of each policy, with seeds 1 to N.")] = 3,
    tuned: Annotated[
        bool,
        Option(
            "--tuned",
            help="Tune each policy with hindsight: the setting that keeps the objective with "
            "the fewest processors. Adds a schedule, which knows the load.",
        ),
    ] = False,
    shapes: ShapesOptions,
    plot: Annotated[
        Path | None,
        Option(metavar="OUT.png", help="Plot the trade-off, and the run with seed 1."),
    ] = None,
    export: Annotated[
        Path | None,
        Option(metavar="DIR", help="Write the roots of each run to DIR/POLICY-SEED.parquet."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Compare policies on the same load: how often they keep the target, and their processors.

    Each policy starts with the fewest processors that meet the target at the first rate;
    static starts with those for the highest rate.

    Example: sojourn compare examples/vld.yaml --trace examples/doubling.csv --target-p95 3s
    """
    from rich.progress import Progress  # noqa: PLC0415 - slow to import

    topology = topology_at(address, rates, in_proportion=True)
    stage: Stage = make_stage(
        topology, trace, objective=objective, most=processors, workload=shapes(topology)
    )
    choices = read_choices(policies)
    for choice in choices.values():
        import_from_here(choice.name)
    chosen = {
        name: choice.made(
            objective.target, processors, every_s=stage.every_s, pauses=stage.pause_s > 0
        )[0]
        for name, choice in choices.items()
    }
    number = len(chosen) * seeds
    if tuned:
        if export is not None:
            raise BadInput("--export writes one run of each policy; leave out --tuned")
        from sojourn.simulate.schedule import Schedule  # noqa: PLC0415 - numba is optional

        chosen["schedule"] = Schedule(stage=stage)
        number = tuning.runs(chosen, seeds)
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("comparing", total=number * stage.lasts_s)

        def turn(name: str, seed: int, episode: Episode) -> None:
            lasted_s = episode.observation.lasted_s
            bar.update(task, advance=lasted_s, description=f"{name}, seed {seed}")

        if tuned:
            made = tuning.tuned(stage, chosen, seeds, turn=turn)
        else:
            made = outcomes(stage, chosen, seeds, export=export, turn=turn)
    if plot is not None:
        draw_comparison(stage, made, plot)
    if json:
        print_json(compare_report(stage, made))
    else:
        show_comparison(stage, made)
