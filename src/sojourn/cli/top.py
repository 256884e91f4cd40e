"""`sojourn top`: the state of a running application."""

from contextlib import suppress
from time import sleep
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.live import Live

from sojourn.cli.options.application import AppOption
from sojourn.cli.options.output import JsonOption
from sojourn.errors import EngineError
from sojourn.report.json.output import print_json
from sojourn.report.terminal.console import TABLE_WIDTH, wide_console
from sojourn.report.terminal.status import status_view
from sojourn.service.client import ask, ask_status
from sojourn.service.entry import find

__all__ = ["top"]

_EVERY_S = 1.0


def top(
    once: Annotated[bool, typer.Option("--once", help="Print once and exit.")] = False,
    app: AppOption = None,
    json: JsonOption = False,
) -> None:
    """Watch a running application: processors, queues, latency, the last decisions.

    Ctrl-C ends the display; the application continues.

    Example: sojourn top --once
    """
    folder, entry = find(app)

    def view() -> RenderableType:
        return status_view(ask_status(folder, entry), entry.pid)

    if json:
        status = ask(folder, entry, {"ask": "status"})
        print_json(status | {"pid": entry.pid, "logs": entry.logs})
        return
    console = wide_console(TABLE_WIDTH)
    if once or not console.is_terminal:
        console.print(view())
        return
    with (
        suppress(KeyboardInterrupt),
        Live(view(), console=console, auto_refresh=False, screen=False) as live,
    ):
        while True:
            sleep(_EVERY_S)
            try:
                now = view()
            except EngineError:
                if entry.answers:
                    raise
                break
            live.update(now, refresh=True)
    if not entry.answers:
        typer.echo(f"{entry.name} has ended")
