"""`sojourn reproduce --engine spark`: the experiments on re-allocation, in real time."""

from collections.abc import Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import Progress

from sojourn.app.application import App
from sojourn.cli.options.duration import read_duration_s
from sojourn.cli.reproduce import drawing
from sojourn.errors import BadInput, EngineError
from sojourn.experiments import experiment
from sojourn.experiments.bench import Bench, EngineFactory
from sojourn.experiments.pace import WITHIN_S, Pace
from sojourn.experiments.runner import Reproduced, reproduce, write_page
from sojourn.experiments.span import reallocating
from sojourn.spark.settings import SparkSettings

if TYPE_CHECKING:
    from sojourn.spark.spark_engine import SparkEngine

__all__ = ["on_spark"]

# Longer than any run: at the end of a batch an operator pauses for half a second.
_BATCH_S = 86400.0


def on_spark(
    chosen: Sequence[str] | None,
    seed: int,
    out: Path,
    *,
    faster: float | None,
    within: str | None,
) -> list[Reproduced]:
    """Run the *chosen* experiments one after the other, all if None, and return the results.

    Raise `BadInput` if one cannot be run on Spark, or not at that pace.
    """
    paces = _paces(chosen, faster=faster, within=within)
    try:
        from sojourn.experiments.on_spark import on_spark as engines  # noqa: PLC0415 - optional
    except ImportError as error:
        raise EngineError(
            f"running on Spark needs {error.name}, which is not installed; "
            "install sojourn[spark]"
        ) from error
    errors, done = Console(stderr=True), list[Reproduced]()
    draw = drawing(errors)
    for name, pace in paces.items():
        lasts = max(1, round(pace.wall_s / 60))
        errors.print(f"{name}: {pace.said}, about {lasts} minutes", highlight=False)
    with Progress(console=errors, transient=True) as bar:
        for name, pace in paces.items():
            task = bar.add_task(f"reproducing {name}", total=pace.looks)
            bench = Bench(
                engine=engines(_engine, pace.faster, partial(bar.advance, task)),
                seed=seed,
                minutes_s=pace.minutes_s,
                days=1,
                on=f"on Spark, {pace.said}",
                caveat=pace.caveat,
                beside=_alike(pace),
            )
            done += reproduce([name], bench, out, draw)
    write_page(done, seed, out, "Spark")
    return done


def _paces(
    chosen: Sequence[str] | None, *, faster: float | None, within: str | None
) -> dict[str, Pace]:
    if faster is not None and not 0 < faster < inf:
        raise BadInput(f"--faster {faster:g} is not positive; write more than 0")
    within_s = WITHIN_S if within is None else read_duration_s(within)
    possible = reallocating()
    for name in chosen or ():
        experiment(name)
        if name not in possible:
            raise BadInput(
                f"{name} is not about re-allocation and runs on the simulator only; "
                f"on Spark there are {', '.join(possible)}"
            )
    return {
        name: Pace.of(possible[name].spans, faster=faster, within_s=within_s)
        for name in chosen or possible
    }


def _alike(pace: Pace) -> EngineFactory | None:
    try:
        from sojourn.experiments.on_simulator import alike  # noqa: PLC0415 - numba is optional
    except ImportError:
        return None
    return alike(pace.faster)


def _engine(app: App, address: str, state: Path) -> "SparkEngine":
    """Return an engine with a broker of its own."""
    from sojourn.spark.launch import launch  # noqa: PLC0415 - optional, checked before

    return launch(app, address, SparkSettings(batch_s=_BATCH_S), state)
