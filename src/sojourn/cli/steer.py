"""`sojourn scale`, `pause`, `resume` and `set`: tell a running application what to do."""

import os
from typing import Annotated, Any

import typer

from sojourn.cli.completion import applications, operators_to_scale
from sojourn.cli.options import (
    TargetMeanOption,
    TargetP50Option,
    TargetP90Option,
    TargetP95Option,
    TargetP99Option,
    read_allocation,
    read_target,
)
from sojourn.errors import BadInput
from sojourn.service.client import ask
from sojourn.service.entry import find

__all__ = ["AppOption", "MaxProcessorsOption", "pause", "resume", "scale", "set_goal"]

AppOption = Annotated[
    str | None,
    typer.Option(
        "--app",
        metavar="NAME",
        help="Which application; the only one that runs.",
        autocompletion=applications,
    ),
]
MaxProcessorsOption = Annotated[
    int | None, typer.Option(min=1, help="How many processors there may be at most.")
]


def scale(
    processors: Annotated[
        list[str],
        typer.Argument(
            metavar="OP=K …",
            help="Processors for operators; others keep theirs.",
            autocompletion=operators_to_scale,
        ),
    ],
    app: AppOption = None,
) -> None:
    """Give operators of a running application so many processors, at once.

    The loop is paused then, so that it does not undo it.

    Example: sojourn scale match=12 extract=9
    """
    allocation = read_allocation(",".join(processors))
    _tell(app, {"ask": "scale", "allocation": allocation})


def pause(app: AppOption = None) -> None:
    """Let the loop of a running application only look and recommend.

    Example: sojourn pause
    """
    _tell(app, {"ask": "pause"})


def resume(app: AppOption = None) -> None:
    """Let the loop of a running application decide again.

    Example: sojourn resume
    """
    _tell(app, {"ask": "resume"})


def set_goal(
    target_mean: TargetMeanOption = None,
    target_p50: TargetP50Option = None,
    target_p90: TargetP90Option = None,
    target_p95: TargetP95Option = None,
    target_p99: TargetP99Option = None,
    max_processors: MaxProcessorsOption = None,
    app: AppOption = None,
) -> None:
    """Give a running application another target, or another number of processors.

    Example: sojourn set --target-mean 300ms --max-processors 30
    """
    target = read_target(
        mean=target_mean, p50=target_p50, p90=target_p90, p95=target_p95, p99=target_p99
    )
    if target is None and max_processors is None:
        raise BadInput("nothing is to be set; write --target-mean 300ms or --max-processors 30")
    request: dict[str, Any] = {"ask": "set", "max_processors": max_processors}
    if target is not None:
        request["target"] = {"statistic": target.statistic, "seconds": target.seconds}
    _tell(app, request)


def _tell(app: str | None, request: dict[str, Any]) -> None:
    folder, entry = find(app)
    # whoever became another user is still who they were
    by = os.environ.get("SUDO_USER") or os.environ.get("LOGNAME") or os.environ.get("USER", "")
    typer.echo(f"{entry.name}: {ask(folder, entry, request | {'by': by})['said']}")
