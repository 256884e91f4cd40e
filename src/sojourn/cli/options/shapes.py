"""`--service` and `--gaps`: the distributions of service times and arrivals."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, cast

from typer import Option

from sojourn.cli.options.group import Group
from sojourn.simulate.workload import Gaps, Service, ServiceShape, Workload
from sojourn.topology import Topology

__all__ = ["ShapesOptions"]


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
    """Return the workload of a topology."""
    shape = Service(shape=cast("ServiceShape", service))
    return partial(Workload.everywhere, service=shape, gaps=Gaps.read(gaps))


ShapesOptions = Annotated[Callable[[Topology], Workload], Group(_read_shapes)]
