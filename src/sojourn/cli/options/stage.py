"""Options for the simulator: trace, interval of the loop, cost of changes, distributions."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from sojourn.cli.options.group import Group
from sojourn.cli.options.nodes import SimulatedNodeOptions, SimulatedNodes
from sojourn.cli.options.placement import PlacementOption, read_placement
from sojourn.decide.place import DEFAULT, Placer
from sojourn.decide.target import Target
from sojourn.measure.duration import read_duration_s
from sojourn.report.terminal.progress import loading_simulator
from sojourn.simulate.trace import read_rates
from sojourn.simulate.workload import Workload
from sojourn.topology import Topology

if TYPE_CHECKING:  # importing the simulator takes a second
    from sojourn.simulate.rehearsal import Stage
from collections.abc import Callable
from functools import partial
from typing import cast

from sojourn.simulate.workload import Gaps, Service, ServiceShape

__all__ = [
    "EveryOption",
    "FasterOption",
    "Play",
    "PlayOptions",
    "ShapesOptions",
    "TimesOption",
    "TraceOption",
]

TraceOption = Annotated[
    Path,
    Option(metavar="CSV", help="The load: CSV with timestamp,rate. The last line is the end."),
]
TimesOption = Annotated[
    float, Option(metavar="FACTOR", help="Multiply the rates of the trace by this factor.")
]
FasterOption = Annotated[
    float, Option(metavar="FACTOR", help="Play the trace this many times faster.")
]
EveryOption = Annotated[
    str, Option(metavar="TIME", help="Time between two turns of the loop (T_m).")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """The settings of a rehearsal: trace, interval of the loop, cost of changes, nodes."""

    times: float
    """A factor of the rates."""
    faster: float
    """A factor by which the trace is compressed in time."""
    every_s: float
    """Time between two turns of the loop."""
    window_s: float
    """Length of the windows whose latency is compared with the target."""
    pause_s: float
    """Pause of an operator when its processors change."""
    placer: Placer
    nodes: SimulatedNodes | None
    """None if the number of nodes is fixed."""

    def stage(
        self,
        topology: Topology,
        trace: Path,
        *,
        target: Target,
        most: int | None,
        workload: Workload,
        midnight_s: float = 0.0,
    ) -> "Stage":
        """Return the stage of a rehearsal. Raise `BadInput` if numba is missing."""
        with loading_simulator():
            from sojourn.simulate.rehearsal import Stage  # noqa: PLC0415 - numba is optional
        return Stage(
            topology=topology,
            rates=read_rates(trace, times=self.times, faster=self.faster),
            target=target,
            every_s=self.every_s,
            window_s=self.window_s,
            pause_s=self.pause_s,
            most=most,
            midnight_s=midnight_s,
            workload=workload,
            placer=self.placer,
            bounds=None if self.nodes is None else self.nodes.bounds,
            node_adding_s=0.0 if self.nodes is None else self.nodes.adding_s,
        )


def _read_play(
    *,
    times: TimesOption = 1.0,
    faster: FasterOption = 1.0,
    every: EveryOption = "10s",
    window: Annotated[
        str,
        Option(
            metavar="TIME", help="Windows in which the latency is compared with the target."
        ),
    ] = "60s",
    pause: Annotated[
        str,
        Option(metavar="TIME", help="How long operators pause when their processors change."),
    ] = "0s",
    placement: PlacementOption = DEFAULT,
    nodes: SimulatedNodeOptions,
) -> Play:
    """Return the settings of a rehearsal."""
    return Play(
        times=times,
        faster=faster,
        every_s=read_duration_s(every),
        window_s=read_duration_s(window),
        pause_s=read_duration_s(pause),
        placer=read_placement(placement),
        nodes=nodes,
    )


PlayOptions = Annotated[Play, Group(_read_play)]


def _read_shapes(
    *,
    service: Annotated[
        str,
        Option(
            help="Distribution of service times: auto (constant, exponential or gamma by scv), "
            "exponential, constant, gamma, lognormal, hyperexponential."
        ),
    ] = "auto",
    gaps: Annotated[
        str,
        Option(
            help="Pattern of arrivals: renewal (by scv), uniform, on_off (on and off for 1 s "
            "on average; on_off:2s:5s for other times), batches (batches:10: ten roots at "
            "once)."
        ),
    ] = "renewal",
) -> Callable[[Topology], Workload]:
    """Return a function that makes the workload of a topology."""
    shape = Service(shape=cast("ServiceShape", service))
    return partial(Workload.everywhere, service=shape, gaps=Gaps.read(gaps))


ShapesOptions = Annotated[Callable[[Topology], Workload], Group(_read_shapes)]
