"""`sojourn stop`: end a running application from another terminal."""

from time import monotonic
from typing import Annotated

import typer
from typer import Option

from sojourn.cli.options import JsonOption
from sojourn.cli.options.application import AppOption
from sojourn.errors import EngineError
from sojourn.report.json.output import print_json
from sojourn.report.terminal.progress import working
from sojourn.service.control import stop as stop_application
from sojourn.service.folders import find
from sojourn.service.name_lock import INTERRUPTED

__all__ = ["stop"]


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
