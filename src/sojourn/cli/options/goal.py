"""The latency target, and the processors and nodes that it may take."""

import re
from typing import Annotated, Any

from typer import Option

from sojourn.cli.options.group import Group
from sojourn.decide.objective import Objective
from sojourn.decide.solution import NodeSize
from sojourn.decide.target import Target
from sojourn.errors import BadAllocation, BadTarget
from sojourn.measure.duration import read_duration_s
from sojourn.text import shown

_PERCENT = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*%")


def _option(statistic: str, meaning: str) -> Any:  # noqa: ANN401 - what typer returns
    return Option(f"--target-{statistic}", metavar="TIME", help=f"Target for the {meaning}.")


def _read_target(
    *,
    mean: Annotated[str | None, _option("mean", "mean sojourn time: 500ms, 1.5s, 2m")] = None,
    p50: Annotated[str | None, _option("p50", "median of completion")] = None,
    p90: Annotated[str | None, _option("p90", "90th percentile of completion")] = None,
    p95: Annotated[str | None, _option("p95", "95th percentile of completion")] = None,
    p99: Annotated[str | None, _option("p99", "99th percentile of completion")] = None,
) -> Target | None:
    texts = {"mean": mean, "p50": p50, "p90": p90, "p95": p95, "p99": p99}
    given = {statistic: text for statistic, text in texts.items() if text is not None}
    if len(given) > 1:
        both = " and ".join(f"--target-{statistic}" for statistic in given)
        raise BadTarget(f"{both} are both given; write one of them")
    for statistic, text in given.items():
        return Target(statistic, read_duration_s(text))
    return None


TargetOptions = Annotated[Target | None, Group(_read_target)]


def _read_required_target(*, target: TargetOptions) -> Target:
    if target is None:
        raise BadTarget(
            "a target is required; write --target-p95 3s, or --target-mean, -p50, -p90 or -p99"
        )
    return target


RequiredTargetOptions = Annotated[Target, Group(_read_required_target)]
SLICE = Option(
    "--slice",
    metavar="TIME",
    help="Length of a time slice, which keeps the target or misses it.",
)
KEPT = Option(
    "--kept", metavar="PERCENT", help="Part of the slices in which the target must be kept."
)


def _read_objective(
    *,
    target: RequiredTargetOptions,
    slice_: Annotated[str, SLICE] = "60s",
    kept: Annotated[str, KEPT] = "99%",
) -> Objective:
    return Objective(
        target=target, slice_s=read_duration_s(slice_), kept=read_percent(kept, "--kept")
    )


ObjectiveOptions = Annotated[Objective, Group(_read_objective)]


def read_percent(text: str, option: str) -> float:
    """Return a part of one, parsed from `99.5%`.

    >>> read_percent("99%", "--kept")
    0.99
    """
    match = _PERCENT.fullmatch(text.strip())
    if match is None:
        raise BadTarget(f"{option} {shown(text)} is not a percentage; write 99% or 99.5%")
    return float(match[1]) / 100


_ALLOCATION = Option(metavar="OP=K,…", help="Processors per operator: extract=10,match=11.")
AllocationOption = Annotated[str | None, _ALLOCATION]
RequiredAllocationOption = Annotated[str, _ALLOCATION]
ProcessorsOption = Annotated[
    int | None, Option(help="Number of processors; with a target, the maximum.")
]
MostOption = Annotated[int | None, Option(min=1, help="Maximum number of processors.")]


def read_allocation(text: str) -> dict[str, int]:
    """Return an allocation, parsed from `extract=10,match=11`.

    >>> read_allocation("extract=10, match=11")
    {'extract': 10, 'match': 11}
    """
    allocation: dict[str, int] = {}
    for part in text.split(","):
        name, _, number = (piece.strip() for piece in part.partition("="))
        if not name or not number.isascii() or not number.isdigit() or len(number) > 9:
            problem = f"{shown(part.strip())} is not OPERATOR=PROCESSORS"
            raise BadAllocation(f"{problem}; write extract=10,match=11")
        if name in allocation:
            raise BadAllocation(f"{name} occurs twice in the allocation; write it once")
        allocation[name] = int(number)
    return allocation


def _read_nodes(
    *,
    slots_per_node: Annotated[
        int | None, Option(help="Processors per node; whole nodes are allocated.")
    ] = None,
    reserved: Annotated[int, Option(help="Slots reserved for other use, over all nodes.")] = 0,
) -> NodeSize | None:
    """Return the size of nodes; None if processors are allocated one by one."""
    if slots_per_node is None and reserved:
        raise BadTarget(f"--reserved {reserved} without --slots-per-node; give both")
    return None if slots_per_node is None else NodeSize(slots=slots_per_node, reserved=reserved)


NodesOptions = Annotated[NodeSize | None, Group(_read_nodes)]
