"""`sojourn reproduce`: the figures and tables of the DRS papers, on either engine."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from sojourn.cli.options.output import JsonOption
from sojourn.errors import BadInput
from sojourn.experiments import experiment, names
from sojourn.report.json.plans import print_json

if TYPE_CHECKING:
    from sojourn.experiments.runner import Draw, Reproduced

__all__ = ["DOES_NOT_HOLD", "EngineName", "drawing", "reproduce"]

DOES_NOT_HOLD = 1
"""The exit status where some claim does not."""

EngineName = Literal["simulator", "spark"]
"""What experiments can be run on."""


def reproduce(
    name: Annotated[
        list[str] | None, typer.Argument(metavar="NAME…", help="Experiments: drs15-fig6.")
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="Print what there is to claim.")
    ] = False,
    all_: Annotated[bool, typer.Option("--all", help="Run every experiment.")] = False,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where files go.")] = Path(
        "build/reproduce"
    ),
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same runs.")] = 1,
    engine: Annotated[
        EngineName, typer.Option(help="Spark is for re-allocation alone, in real time.")
    ] = "simulator",
    faster: Annotated[
        float | None,
        typer.Option(help="Spark: how many times as fast; as fast as two cores carry."),
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Spark: what each may take; minutes are cut for it."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Test what the DRS papers claim, figure by figure, on the simulator or on Spark.

    Writes a CSV and a picture for each, and report.md with all verdicts. Exit status 1: some
    claim does not hold.

    Example: sojourn reproduce drs15-fig6 drs17-fig10
    """
    console = Console()
    if list_:
        _list(_possible(engine), console, as_json=json)
        return
    chosen = None if all_ else tuple(dict.fromkeys(name or ()))
    if chosen == ():
        raise BadInput("nothing is named to reproduce; name some, or write --all or --list")
    if engine == "spark":
        from sojourn.cli.reproduce_spark import on_spark  # noqa: PLC0415 - Spark is optional

        done = on_spark(chosen, seed, out, faster=faster, within=within)
    elif faster is not None or within is not None:
        raise BadInput("--faster and --within are for Spark; write --engine spark with them")
    else:
        done = _run(chosen or names(), seed, out)
    if json:
        print_json(_report(done, seed, engine))
    else:
        _show(done, console)
        console.print(f"report  {out / 'report.md'}", soft_wrap=True, highlight=False)
    if not all(one.outcome.holds for one in done):
        raise typer.Exit(DOES_NOT_HOLD)


def _possible(engine: EngineName) -> tuple[str, ...]:
    if engine == "simulator":
        return names()
    from sojourn.experiments.span import reallocating  # noqa: PLC0415 - imports every paper

    return tuple(reallocating())


def _run(chosen: Sequence[str], seed: int, out: Path) -> "list[Reproduced]":
    from rich.progress import Progress  # noqa: PLC0415 - other commands do without it

    try:
        from sojourn.experiments.on_simulator import simulated  # noqa: PLC0415 - numba is optional
    except ImportError as error:
        raise BadInput(
            "the simulator needs numba, which is not installed; install sojourn[simulate]"
        ) from error
    from sojourn.experiments.bench import Bench  # noqa: PLC0415 - with all that it imports
    from sojourn.experiments.runner import reproduce as run  # noqa: PLC0415
    from sojourn.experiments.runner import write_page  # noqa: PLC0415

    done = []
    bench, errors = Bench(engine=simulated, seed=seed), Console(stderr=True)
    with Progress(console=errors, transient=True) as bar:
        task = bar.add_task(f"reproducing {chosen[0]}", total=len(chosen))
        for one in run(chosen, bench, out, drawing(errors)):
            done.append(one)
            following = chosen[min(len(done), len(chosen) - 1)]
            bar.update(task, advance=1, description=f"reproducing {following}")
    write_page(done, seed, out)
    return done


def drawing(errors: Console) -> "Draw | None":
    """Return what draws; None where nothing can, which is said."""
    from sojourn.report.plot.experiments import draw_panels  # noqa: PLC0415
    from sojourn.report.plot.explanation import figure  # noqa: PLC0415 - only where something is drawn

    try:
        figure(1, 1)
    except BadInput as error:
        errors.print(f"no pictures: {error}", highlight=False, markup=False)
        return None
    return draw_panels


def _list(known: Sequence[str], console: Console, *, as_json: bool) -> None:
    abouts = {name: experiment(name).about for name in known}
    if as_json:
        listed = [
            {"name": name, "source": a.source, "claim": a.claim} for name, a in abouts.items()
        ]
        print_json({"experiments": listed})
        return
    table = _table("experiment", "source", "claim")
    for name, about in abouts.items():
        table.add_row(name, about.source, about.claim)
    console.print(table, highlight=False)


def _show(done: "Sequence[Reproduced]", console: Console) -> None:
    table = _table("experiment", "claim", "verdict", "numbers")
    for one in done:
        for number, verdict in enumerate(one.outcome.verdicts):
            table.add_row(
                one.name if number == 0 else "",
                verdict.point,
                "holds" if verdict.holds else "does not hold",
                verdict.numbers,
            )
        if one.about.caveat:
            table.add_row("", "", "", one.about.caveat)
        table.add_section()
    console.print(table, highlight=False)
    held = sum(one.outcome.holds for one in done)
    console.print(f"{held} of {len(done)} hold", highlight=False)


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=column in {"experiment", "source"})
    return table


def _report(done: "Sequence[Reproduced]", seed: int, engine: EngineName) -> dict[str, Any]:
    return {
        "engine": engine,
        "seed": seed,
        "holds": all(one.outcome.holds for one in done),
        "experiments": [
            {
                "name": one.name,
                "source": one.about.source,
                "claim": one.about.claim,
                "caveat": one.about.caveat,
                "holds": one.outcome.holds,
                "verdicts": [
                    {"point": v.point, "holds": v.holds, "numbers": v.numbers}
                    for v in one.outcome.verdicts
                ],
                "csv": str(one.csv),
                "picture": None if one.picture is None else str(one.picture),
                "wall_s": one.wall_s,
            }
            for one in done
        ],
    }
