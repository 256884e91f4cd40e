"""`sojourn ps`: the running applications."""

import typer

from sojourn.cli.options.output import JsonOption
from sojourn.report.json.output import print_json
from sojourn.report.terminal.applications import application_json, applications_view
from sojourn.report.terminal.console import TABLE_WIDTH, wide_console
from sojourn.service.entry import running

__all__ = ["ps"]


def ps(json: JsonOption = False) -> None:
    """List the running applications of this user.

    Example: sojourn ps
    """
    listed = [application_json(folder, entry) for folder, entry in running().values()]
    if json:
        print_json({"applications": listed})
    elif not listed:
        typer.echo("no application is running")
    else:
        wide_console(TABLE_WIDTH).print(applications_view(listed))
