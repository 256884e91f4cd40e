"""`sojourn ps`: the running applications."""

from pathlib import Path

import typer

from sojourn.cli.options.output import JsonOption
from sojourn.errors import EngineError
from sojourn.report.json.output import print_json
from sojourn.report.terminal.applications import Listed, applications_view, listed_json
from sojourn.report.terminal.console import TABLE_WIDTH, wide_console
from sojourn.service.client import ask_status
from sojourn.service.entry import Entry, running

__all__ = ["ps"]


def ps(json: JsonOption = False) -> None:
    """List the running applications of this user.

    Example: sojourn ps
    """
    listed = [_listed(folder, entry) for folder, entry in running().values()]
    if json:
        print_json({"applications": [listed_json(each) for each in listed]})
        return
    if not listed:
        typer.echo("no application is running")
        return
    wide_console(TABLE_WIDTH).print(applications_view(listed))


def _listed(folder: Path, entry: Entry) -> Listed:
    try:
        return Listed(entry, ask_status(folder, entry))
    except EngineError as error:
        return Listed(entry, None, str(error))
