"""How a command prints what it found."""

from typing import Annotated

import typer

__all__ = ["JsonOption"]

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
