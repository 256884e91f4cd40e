"""Options for the output of commands."""

from typing import Annotated

import typer

__all__ = ["JsonOption", "LiveOption"]

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
LiveOption = Annotated[
    bool | None,
    typer.Option("--live/--no-live", help="Draw live charts (default: on a terminal)."),
]
