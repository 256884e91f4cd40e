"""Options that several commands share: declarations and parsers."""

from typing import Annotated

from typer import Option

__all__ = ["JsonOption", "LiveOption"]

JsonOption = Annotated[bool, Option("--json", help="Print JSON instead of tables.")]
LiveOption = Annotated[
    bool | None, Option("--live/--no-live", help="Draw live charts (default: on a terminal).")
]
