"""`sojourn top` and `ps`: running applications, and the status of one."""

from typing import Annotated

import typer
from typer import Option

from sojourn.cli.options import JsonOption
from sojourn.cli.options.address import AppOption
from sojourn.report.json.output import print_json
from sojourn.report.terminal.console import TABLE_WIDTH, wide_console
from sojourn.report.terminal.status import (
    application_json,
    applications_view,
    cluster_view,
    watch_status,
)
from sojourn.service.control import ask
from sojourn.service.folders import find, running


def top(
    once: Annotated[bool, Option("--once", help="Print once and exit.")] = False,
    app: AppOption = None,
    json: JsonOption = False,
) -> None:
    """Watch a running application: processors, queues, latency, the last decisions.

    Ctrl-C ends the display; the application continues.

    Example: sojourn top --once
    """
    folder, entry = find(app)
    if json:
        status = ask(folder, entry, {"ask": "status"})
        print_json(status | {"pid": entry.pid, "logs": entry.logs})
    else:
        watch_status(folder, entry, once=once)


def ps(
    nodes: Annotated[
        bool,
        Option(
            "--nodes",
            help="On a cluster: also list nodes, and the bytes sent and received by stream.",
        ),
    ] = False,
    json: JsonOption = False,
) -> None:
    """List the running applications of this user.

    Example: sojourn ps
    """
    listed = [application_json(folder, entry) for folder, entry in running().values()]
    if json:
        print_json({"applications": listed})
    elif not listed:
        typer.echo("no application is running")
    else:
        console = wide_console(TABLE_WIDTH)
        console.print(applications_view(listed))
        for each in listed if nodes else ():
            console.print(cluster_view(each))
