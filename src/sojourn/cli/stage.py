"""Where policies are tried: the options that say it, and how their text is read."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sojourn.cli.options import read_duration_s, read_target
from sojourn.decide.target import Target
from sojourn.errors import BadInput, BadTarget
from sojourn.report.terminal.progress import working
from sojourn.simulate.trace import read_rates
from sojourn.simulate.workload import Workload
from sojourn.topology import Topology

if TYPE_CHECKING:  # importing the simulator takes a second
    from sojourn.rehearsal import Stage

__all__ = [
    "EveryOption",
    "FasterOption",
    "MostOption",
    "PauseOption",
    "TimesOption",
    "TraceOption",
    "WindowOption",
    "read_required_target",
    "read_stage",
]

TraceOption = Annotated[
    Path,
    typer.Option(
        metavar="CSV",
        help="The load over time, as timestamp,rate; its last line says when it ends.",
    ),
]
TimesOption = Annotated[
    float, typer.Option(metavar="FACTOR", help="Rates so many times those of the trace.")
]
FasterOption = Annotated[
    float, typer.Option(metavar="FACTOR", help="Play the trace in so much less time.")
]
MostOption = Annotated[
    int | None, typer.Option(min=1, help="How many processors there may be at most.")
]
EveryOption = Annotated[
    str, typer.Option(metavar="TIME", help="From one look of the loop to the next (T_m).")
]
WindowOption = Annotated[
    str, typer.Option(metavar="TIME", help="Windows in which the latency is judged.")
]
PauseOption = Annotated[
    str, typer.Option(metavar="TIME", help="How long a change stops the operators it changes.")
]


def read_required_target(**texts: str | None) -> Target:
    """Return the one target that was given, by statistic."""
    target = read_target(**texts)
    if target is None:
        raise BadTarget(
            "there is no target to judge by; write --target-p95 3s, or another of "
            "--target-mean, -p50, -p90, -p99"
        )
    return target


def read_stage(
    topology: Topology,
    trace: Path,
    *,
    target: Target,
    most: int | None,
    times: float,
    faster: float,
    every: str,
    window: str,
    pause: str,
    workload: Workload,
    midnight_s: float = 0.0,
) -> "Stage":
    """Return where policies are tried. Raise `BadInput` if numba is missing."""
    try:
        with working("loading the simulator"):
            from sojourn.rehearsal import Stage  # noqa: PLC0415 - numba is optional
    except ImportError as error:
        raise BadInput(
            "the simulator needs numba, which is not installed; install sojourn[simulate]"
        ) from error
    return Stage(
        topology=topology,
        rates=read_rates(trace, times=times, faster=faster),
        target=target,
        every_s=read_duration_s(every),
        window_s=read_duration_s(window),
        pause_s=read_duration_s(pause),
        most=most,
        midnight_s=midnight_s,
        workload=workload,
    )
