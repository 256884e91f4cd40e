"""Options for the simulator: trace, interval of the loop, cost of changes, distributions."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from typer import Option

from sojourn.act.node_scaling import NodeBounds
from sojourn.cli.options.group import Group
from sojourn.cli.options.policy import PlacementOption, read_placement
from sojourn.decide.place import DEFAULT
from sojourn.errors import BadInput
from sojourn.measure.duration import read_duration_s
from sojourn.report.terminal.progress import loading_simulator
from sojourn.simulate.trace import read_rates
from sojourn.simulate.workload import Gaps, Service, ServiceShape, Workload
from sojourn.topology import Topology

if TYPE_CHECKING:  # importing the simulator takes a second
    from sojourn.simulate.rehearsal import Stage

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
    str | None,
    Option(
        metavar="TIME",
        help="Time between two turns of the loop, T_m (default: as often as the objective "
        "needs; 3s for p95 in slices of 60s).",
    ),
]


def _read_stage(
    *,
    times: TimesOption = 1.0,
    faster: FasterOption = 1.0,
    every: EveryOption = None,
    pause: Annotated[
        str,
        Option(metavar="TIME", help="How long operators pause when their processors change."),
    ] = "0s",
    start_time: Annotated[
        str,
        Option(metavar="TIME", help="How long a processor takes until it can take records."),
    ] = "0s",
    placement: PlacementOption = DEFAULT,
    min_nodes: Annotated[int, Option(min=1, help="Minimum number of nodes.")] = 1,
    max_nodes: Annotated[
        int | None,
        Option(
            min=1,
            help="Maximum number of nodes; they are requested and released as processors need "
            "them (default: one machine).",
        ),
    ] = None,
    processors_per_node: Annotated[
        int | None, Option(min=1, help="Processors per node; required by --max-nodes.")
    ] = None,
    node_delay: Annotated[
        str, Option(metavar="TIME", help="Time from requesting a node until it joins.")
    ] = "30s",
) -> Callable[..., "Stage"]:
    """Return a function that makes a stage of a topology, a trace and other fields."""
    settings: dict[str, Any] = {}
    if max_nodes is not None:
        if processors_per_node is None:
            raise BadInput(
                f"--max-nodes {max_nodes} needs the size of a node; add --processors-per-node 5"
            )
        settings["bounds"] = NodeBounds(
            least=min_nodes, most=max_nodes, processors=processors_per_node
        )
        settings["node_adding_s"] = read_duration_s(node_delay)
    settings |= {
        "pause_s": read_duration_s(pause),
        "starts_s": read_duration_s(start_time),
        "placer": read_placement(placement),
    }

    if every is not None:
        settings["every_s"] = read_duration_s(every)

    def stage(topology: Topology, trace: Path, **others: Any) -> "Stage":  # noqa: ANN401 - fields of it
        with loading_simulator():
            from sojourn.simulate.rehearsal import Stage  # noqa: PLC0415 - numba is optional
        rates = read_rates(trace, times=times, faster=faster)
        return Stage(topology=topology, rates=rates, **settings, **others)

    return stage


StageOptions = Annotated[Callable[..., Any], Group(_read_stage)]  # typer resolves no "Stage"


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
    shape = Service(shape=cast("ServiceShape", service))
    return partial(Workload.everywhere, service=shape, gaps=Gaps.read(gaps))


ShapesOptions = Annotated[Callable[[Topology], Workload], Group(_read_shapes)]
