"""The output of a command: a plot, and JSON or tables."""

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
    """Write the *plot*, if any, and print the *report* as JSON or *show* it as tables.

    *wide* tables have any width if there is no terminal.
    """
    if plot is not None:
        draw(plot)
    if as_json:
        print_json(report())
    else:
        show(wide_console() if wide else Console())
