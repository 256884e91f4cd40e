"""Options that several commands share, and how their text is read."""

import re
from pathlib import Path
from typing import Annotated

import typer

from sojourn.cli.completion import models
from sojourn.decide.nodes import Nodes
from sojourn.decide.target import Target
from sojourn.errors import BadAllocation, BadTarget
from sojourn.model.station import names
from sojourn.topology.check import shown

__all__ = [
    "AllocationOption",
    "CalibrationOption",
    "JsonOption",
    "ModelOption",
    "ProcessorsOption",
    "RequiredAllocationOption",
    "ReservedOption",
    "SlotsOption",
    "TargetMeanOption",
    "TargetP50Option",
    "TargetP90Option",
    "TargetP95Option",
    "TargetP99Option",
    "read_allocation",
    "read_duration_s",
    "read_nodes",
    "read_target",
]

_UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)")

AllocationOption = Annotated[
    str | None,
    typer.Option(metavar="OP=K,…", help="Processors per operator: extract=10,match=11."),
]
RequiredAllocationOption = Annotated[
    str, typer.Option(metavar="OP=K,…", help="Processors per operator: extract=10,match=11.")
]
ModelOption = Annotated[
    str,
    typer.Option(
        help=f"Station model: {', '.join(names())}. gigk takes the scv of arrivals and service "
        "into account, and is mmk where both are 1; operators with dispatch: round_robin are "
        "modelled so whatever this says.",
        autocompletion=models,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
ProcessorsOption = Annotated[
    int | None,
    typer.Option(help="How many there are; beside a target, how many there may be at most."),
]
TargetMeanOption = Annotated[
    str | None, typer.Option(metavar="TIME", help="Mean sojourn time to keep: 500ms, 1.5s, 2m.")
]
TargetP50Option = Annotated[
    str | None,
    typer.Option("--target-p50", metavar="TIME", help="Median of completion to keep."),
]
TargetP90Option = Annotated[
    str | None, typer.Option("--target-p90", metavar="TIME", help="90th percentile to keep.")
]
TargetP95Option = Annotated[
    str | None, typer.Option("--target-p95", metavar="TIME", help="95th percentile to keep.")
]
TargetP99Option = Annotated[
    str | None, typer.Option("--target-p99", metavar="TIME", help="99th percentile to keep.")
]
SlotsOption = Annotated[
    int | None, typer.Option(help="Processors come in whole nodes of this many.")
]
ReservedOption = Annotated[
    int, typer.Option(help="Slots of all nodes together that serve something else.")
]
CalibrationOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Correct the model by what `sojourn calibrate` fitted."),
]


def read_allocation(text: str) -> dict[str, int]:
    """Return an allocation from `extract=10,match=11`.

    >>> read_allocation("extract=10, match=11")
    {'extract': 10, 'match': 11}
    """
    allocation: dict[str, int] = {}
    for part in text.split(","):
        name, _, number = (piece.strip() for piece in part.partition("="))
        if not name or not number.isascii() or not number.isdigit() or len(number) > 9:
            problem = f"{shown(part.strip())} is not an operator and its processors"
            raise BadAllocation(f"{problem}; write extract=10,match=11")
        if name in allocation:
            raise BadAllocation(f"{name} occurs twice in the allocation; write it once")
        allocation[name] = int(number)
    return allocation


def read_duration_s(text: str) -> float:
    """Return the seconds in `500ms`, `1.5s`, `2m`; the unit is required.

    >>> read_duration_s("500ms"), read_duration_s("1.5 s"), read_duration_s("2m")
    (0.5, 1.5, 120.0)
    """
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None or match[2] not in _UNITS_S:
        unit = "has no unit" if match and not match[2] else "is not a time"
        raise BadTarget(f"{shown(text)} {unit}; write 500ms, 1.5s or 2m")
    return float(match[1]) * _UNITS_S[match[2]]


def read_target(**texts: str | None) -> Target | None:
    """Return the one target that was given, by statistic; None without any."""
    given = {statistic: text for statistic, text in texts.items() if text is not None}
    if len(given) > 1:
        both = " and ".join(f"--target-{statistic}" for statistic in given)
        raise BadTarget(f"{both} are given; a plan keeps one target, so write one of them")
    for statistic, text in given.items():
        return Target(statistic, read_duration_s(text))
    return None


def read_nodes(slots: int | None, reserved: int) -> Nodes | None:
    """Return the shape of a node; None where processors come one by one."""
    if slots is None and reserved:
        raise BadTarget(f"--reserved {reserved} without --slots-per-node; give both")
    return None if slots is None else Nodes(slots=slots, reserved=reserved)
