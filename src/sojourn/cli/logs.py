"""`sojourn logs`: the logs of operators, on this machine or a node."""

from contextlib import suppress
from pathlib import Path
from time import sleep, time
from typing import Annotated

import typer
from typer import Argument, Option

from sojourn.cli.options import StateOption, in_state
from sojourn.cli.options.address import AnyAppOption, app_hint
from sojourn.cli.options.completion import nodes, operators_with_logs
from sojourn.errors import BadInput, BadTarget, SojournError
from sojourn.measure.duration import read_duration_s
from sojourn.service.control import ask_status
from sojourn.service.folders import find
from sojourn.service.logs import Logs, log_files, node_logs, node_logs_hint, time_s
from sojourn.text import shown

_LOOK_S = 0.2
_LINES = 20


def logs(
    operator: Annotated[
        str | None,
        Argument(help="Operator (default: all).", autocompletion=operators_with_logs),
    ] = None,
    follow: Annotated[
        bool, Option("--follow", "-f", help="Print new lines until Ctrl-C.")
    ] = False,
    lines: Annotated[
        int | None,
        Option(
            "--lines", "-n", min=0, help="Lines per operator (default: 20; all with --since)."
        ),
    ] = None,
    since: Annotated[
        str | None,
        Option(metavar="TIME", help="Only newer lines: 5m (ago), or 2026-01-31T12:00:00Z."),
    ] = None,
    state: StateOption = None,
    node: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="Print the logs on this node of a cluster.",
            autocompletion=nodes,
        ),
    ] = None,
    app: AnyAppOption = None,
) -> None:
    """Print the logs of an application.

    Lines of several operators are sorted by time, and begin with the operator. On a cluster,
    the output of functions is on the nodes (--node).

    Examples: sojourn logs match --follow · sojourn logs --app vld --since 5m
    """
    since_s = None if since is None else _read_since_s(since)
    if lines is None and since_s is None:
        lines = _LINES
    folder = _folder(app, state, node)
    found = log_files(folder)
    if operator is not None and operator not in found:
        known = ", ".join(found) or "none yet"
        raise BadInput(
            f"there is no log of {operator} in {folder}; there are: {known}{app_hint(operator)}"
        )
    wide = max(map(len, found), default=0)
    with suppress(KeyboardInterrupt), Logs(folder, operator, lines) as reading:
        while True:
            for line in reading.new(unfinished=not follow):
                if since_s is None or line.at_s >= since_s:
                    prefix = f"{line.operator:<{wide}} | " if operator is None else ""
                    typer.echo(prefix + line.text)
            if not follow:
                break
            sleep(_LOOK_S)
    if since_s is not None and reading.untimed:
        untimed = ", ".join(reading.untimed)
        typer.echo(
            f"no line of {untimed} begins with a time; -n 20 shows the last lines", err=True
        )
    if state is None and node is None and not follow:
        with suppress(SojournError):  # without an answer, print no hint
            if hint := node_logs_hint(ask_status(*find(app)).health.nodes):
                typer.echo(hint, err=True)


def _folder(app: str | None, state: str | None, node: str | None) -> Path:
    if node is not None:
        if state is not None:
            raise BadInput(
                "--state and --node exclude each other: the logs of nodes are found through "
                "the running application; leave out one of them"
            )
        return node_logs(ask_status(*find(app)).health.nodes, node)
    return in_state("logs", app, state)


def _read_since_s(text: str) -> float:
    """Return the time in `5m` (ago) or `2026-01-31T12:00:00Z`, in seconds since 1970."""
    if (at_s := time_s(text)) is not None:
        return at_s
    try:
        return time() - read_duration_s(text)
    except BadTarget as error:
        raise BadInput(
            f"--since {shown(text)} is not a time; write 5m, 2h or 2026-01-31T12:00:00Z"
        ) from error
