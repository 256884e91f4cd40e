"""What a command came to, handed over in the way that was asked for."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from sojourn.report.json.output import print_json
from sojourn.report.terminal.console import wide_console

__all__ = ["hand_over"]


def hand_over(
    *,
    as_json: bool,
    report: Callable[[], Mapping[str, Any]],
    show: Callable[[Console], None],
    wide: bool = False,
    plot: Path | None = None,
    draw: Callable[[Path], None] = lambda _path: None,
) -> None:
    """Draw it where there is to be a *plot*, and print the *report* as JSON or *show* it.

    *wide* tables keep to no width where there is no terminal.
    """
    if plot is not None:
        draw(plot)
    if as_json:
        print_json(report())
    else:
        show(wide_console() if wide else Console())
