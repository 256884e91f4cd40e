"""Options that several commands share: declarations and parsers."""

from pathlib import Path
from typing import Annotated

from typer import Option

from sojourn.service.state_folder import find_in_state
from sojourn.spark.driver.settings import read_folder

JsonOption = Annotated[bool, Option("--json", help="Print JSON instead of tables.")]
LiveOption = Annotated[
    bool | None, Option("--live/--no-live", help="Draw live charts (default: on a terminal).")
]
PlotOption = Annotated[
    Path | None, Option(metavar="OUT.png", help="Plot the whole run as PNG, SVG or PDF.")
]
StateOption = Annotated[
    str | None, Option(metavar="DIR", help="State folder (default: that of the application).")
]


def in_state(name: str, app: str | None, state: str | None) -> Path:
    """Return the file or folder *name* in the folder *state*, by default in that of *app*."""
    return find_in_state(name, app) if state is None else read_folder(state) / name
