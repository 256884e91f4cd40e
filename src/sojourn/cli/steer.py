"""`sojourn scale`, `pause`, `resume`, `set` and `stop`: control a running application."""

import os
from time import monotonic
from typing import Annotated, Any

import typer
from typer import Argument, Option

from sojourn.cli.options import JsonOption
from sojourn.cli.options.address import AppOption
from sojourn.cli.options.completion import operators_to_scale
from sojourn.cli.options.goal import (
    KEPT,
    SLICE,
    MostOption,
    TargetOptions,
    read_allocation,
    read_percent,
)
from sojourn.cli.options.policy import NewPlacementOption
from sojourn.errors import BadInput, EngineError
from sojourn.measure.duration import read_positive_s
from sojourn.report.json.output import print_json
from sojourn.report.terminal.progress import working
from sojourn.service.control import ask
from sojourn.service.control import stop as stop_application
from sojourn.service.folders import find
from sojourn.service.name_lock import INTERRUPTED
from sojourn.text import escaped_lines


def scale(
    processors: Annotated[
        list[str],
        Argument(
            metavar="OP=K …",
            help="Processors per operator; others keep theirs.",
            autocompletion=operators_to_scale,
        ),
    ],
    app: AppOption = None,
) -> None:
    """Set the processors of operators of a running application, now.

    It pauses the loop, which would otherwise undo the change.

    Example: sojourn scale match=12 extract=9
    """
    allocation = read_allocation(",".join(processors))
    _tell(app, {"ask": "scale", "allocation": allocation})


def pause(app: AppOption = None) -> None:
    """Pause the loop of a running application: it only measures and recommends.

    Example: sojourn pause
    """
    _tell(app, {"ask": "pause"})


def resume(app: AppOption = None) -> None:
    """Resume the loop of a running application after a pause.

    Example: sojourn resume
    """
    _tell(app, {"ask": "resume"})


def set_goal(
    *,
    target: TargetOptions,
    slice_: Annotated[str | None, SLICE] = None,
    kept: Annotated[str | None, KEPT] = None,
    max_processors: MostOption = None,
    placement: NewPlacementOption = None,
    app: AppOption = None,
) -> None:
    """Change the objective, the maximum number of processors or the placement, while it runs.

    Example: sojourn set --target-mean 300ms --max-processors 30
    """
    if all(each is None for each in (target, slice_, kept, max_processors, placement)):
        raise BadInput("nothing to set; write --target-mean 300ms or --max-processors 30")
    request: dict[str, Any] = {"ask": "set", "max_processors": max_processors}
    if slice_ is not None:
        request["slice_s"] = read_positive_s(slice_, "--slice")
    if kept is not None:
        request["kept"] = read_percent(kept, "--kept")
    if placement is not None:
        request["placement"] = placement
    if target is not None:
        request["target"] = {"statistic": target.statistic, "seconds": target.seconds}
    _tell(app, request)


def _tell(app: str | None, request: dict[str, Any]) -> None:
    folder, entry = find(app)
    # under sudo, record the user who called it
    by = os.environ.get("SUDO_USER") or os.environ.get("LOGNAME") or os.environ.get("USER", "")
    said = ask(folder, entry, request | {"by": by})["said"]
    typer.echo(escaped_lines(f"{entry.name}: {said}"))


def stop(
    now: Annotated[
        bool,
        Option(
            "--now",
            help="Do not finish the current batch; its work is repeated at the next start.",
        ),
    ] = False,
    app: AppOption = None,
    json: JsonOption = False,
) -> None:
    """Stop a running application: finish the current batch, then exit.

    Like Ctrl-C in its terminal; --now is like a second Ctrl-C. The command waits until the
    application has ended. Ctrl-C ends only the wait.

    Example: sojourn stop --app wordcount
    """
    folder, entry = find(app)
    began_s = monotonic()
    with working(f"stopping {entry.name}") as progress:
        status = stop_application(folder, entry, now=now, progress=progress)
    if json:
        took_s = round(monotonic() - began_s, 1)
        ended = {"name": entry.name, "pid": entry.pid, "exit_status": status}
        print_json({**ended, "seconds": took_s})
    if status not in (0, INTERRUPTED):
        how = "was killed" if status is None else f"ended with exit status {status}"
        raise EngineError(f"{entry.name} {how}; its output has the reason")
    if not json:
        repeated = "" if status == 0 else "; uncommitted work is repeated at the next start"
        typer.echo(f"{entry.name} has stopped{repeated}")
