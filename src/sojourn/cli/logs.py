"""`sojourn logs`: what the processors of operators wrote."""

from contextlib import suppress
from pathlib import Path
from time import sleep, time
from typing import Annotated

import typer

from sojourn.cli.options.application import AppOption
from sojourn.cli.options.completion import operators_with_logs
from sojourn.cli.options.duration import read_duration_s
from sojourn.errors import BadInput, BadTarget
from sojourn.service.entry import find
from sojourn.service.log_times import time_s
from sojourn.service.logs import Logs, log_files
from sojourn.topology.check import shown

__all__ = ["logs", "read_since_s"]

_LOOK_S = 0.2
_LINES = 20


def logs(
    operator: Annotated[
        str | None,
        typer.Argument(
            help="Whose; those of all operators without it.", autocompletion=operators_with_logs
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on as they are written, until Ctrl-C.")
    ] = False,
    lines: Annotated[
        int | None,
        typer.Option("--lines", "-n", min=0, help="How many of each; 20 without --since."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="From then on: 5m ago, or 2026-01-31T12:00:00Z."),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Those of an application that ended: its state."),
    ] = None,
    app: AppOption = None,
) -> None:
    """Show the logs of a running application, each line with its operator if there are several.

    Lines of several operators come in the order of their times, where they begin with one.

    Examples: sojourn logs match --follow · sojourn logs --since 5m
    """
    since_s = None if since is None else read_since_s(since, time())
    if lines is None and since_s is None:
        lines = _LINES
    folder = Path(find(app)[1].logs) if state is None else state / "logs"
    found = log_files(folder)
    if operator is not None and operator not in found:
        known = ", ".join(found) or "none yet"
        raise BadInput(f"there is no log of {operator} in {folder}; there are: {known}")
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
        typer.echo(f"no line of {untimed} has a time; -n 20 shows the last", err=True)


def read_since_s(text: str, now_s: float) -> float:
    """Return the time from which on lines are shown: `5m` ago, or 2026-01-31T12:00:00Z.

    >>> read_since_s("5m", 1000.0)
    700.0
    """
    if (at_s := time_s(text)) is not None:
        return at_s
    try:
        return now_s - read_duration_s(text)
    except BadTarget as error:
        raise BadInput(
            f"--since {shown(text)} is no time; write 5m, 2h or 2026-01-31T12:00:00Z"
        ) from error
