"""`--service` and `--gaps`: the distributions of service times and arrivals."""

from dataclasses import dataclass
from typing import Annotated, cast, get_args

import typer

from sojourn.cli.options.duration import read_duration_s
from sojourn.cli.options.group import Group
from sojourn.errors import BadTarget, BadWorkload
from sojourn.simulate.workload import Gaps, GapShape, Service, ServiceShape, Workload
from sojourn.topology import Topology
from sojourn.topology.check import shown

__all__ = ["Shapes", "ShapesOptions", "read_gaps"]


@dataclass(frozen=True, slots=True)
class Shapes:
    """The distributions of service times and of gaps between arrivals."""

    service: Service
    gaps: Gaps

    def workload(self, topology: Topology) -> Workload:
        """Return the workload in which all operators and arrivals have them."""
        return Workload(
            service=dict.fromkeys(topology.operator, self.service),
            gaps={arrival.name: self.gaps for arrival in topology.arrivals},
        )


def _read_shapes(
    *,
    service: Annotated[
        str,
        typer.Option(
            help="Distribution of service times: auto (constant, exponential or gamma by scv), "
            "exponential, constant, gamma, lognormal, hyperexponential."
        ),
    ] = "auto",
    gaps: Annotated[
        str,
        typer.Option(
            help="Pattern of arrivals: renewal (by scv), uniform, on_off (on and off for 1 s "
            "on average; on_off:2s:5s for other times), batches (batches:10: ten roots at "
            "once)."
        ),
    ] = "renewal",
) -> Shapes:
    """Return what the options say."""
    return Shapes(Service(shape=cast("ServiceShape", service)), read_gaps(gaps))


ShapesOptions = Annotated[Shapes, Group(_read_shapes)]


def read_gaps(text: str) -> Gaps:
    """Return the gaps in `uniform`, `on_off:2s:5s` or `batches:10`.

    >>> read_gaps("on_off:2s:5s").off_s, read_gaps("batches:10").size
    (5.0, 10)
    """
    name, *values = text.split(":")
    shape = cast("GapShape", name)
    if name not in get_args(GapShape) or not values:
        return Gaps(shape=shape)  # which refuses an unknown shape
    try:
        if name == "on_off":
            on_s, off_s = map(read_duration_s, values)
            return Gaps(shape=shape, on_s=on_s, off_s=off_s)
        if name == "batches":
            (size,) = map(int, values)
            return Gaps(shape=shape, size=size)
    except (BadTarget, ValueError):
        pass  # refused below
    raise BadWorkload(
        f"{shown(text)} is not a pattern of arrivals; "
        "write on_off:2s:5s, batches:10, or the name alone"
    )
