"""Traffic monitoring: how fast vehicles are in the cells of a grid, in a sliding window.

The motivating query of "Adaptive Input Admission and Management for Parallel Stream Processing"
(2013). `speeds` works out speeds from the last two reports of a trip; `cells` counts them by
cell in panes of the window, and yields a row for each window that has changed: how many reports
it has, their average and highest speed, and whether the end of a queue is there.

Reports of different trips may come to a cell in any order: sums and maxima do not depend on it,
and the row with the most reports is the last one of its cell and window.
"""

from collections.abc import Iterator
from typing import TypedDict

import sojourn as sj
from sojourn_papers.apps.traffic.panes import Pane, added, total
from sojourn_papers.apps.traffic.plane import Plane
from sojourn_papers.apps.traffic.samples import samples
from sojourn_papers.apps.traffic.settings import Settings

__all__ = ["Cell", "Trip", "app", "cells", "speeds"]

_PANE = (
    "struct<number: bigint, reports: bigint, speed_sum: bigint, highest: bigint, "
    "entries: bigint, entry_sum: bigint>"
)
_CELL = "x int not null, y int not null"


class Trip(TypedDict):
    """The last report of a trip: when, where, and the speed there, all None before the first.

    The speed is None too if the report has none.
    """

    at_s: int | None
    x_cm: int | None
    y_cm: int | None
    speed: int | None


class Cell(TypedDict):
    """The panes of a cell that can still change, by number."""

    panes: list[tuple[int, ...]]


def _plane() -> Plane:
    return Plane.of_settings(Settings.of_environment())


app = sj.App("traffic")
positions = app.source(
    "positions",
    schema="trip string not null, at_s bigint not null, lat_e6 int not null, "
    "lon_e6 int not null",
    samples=samples,
)


@app.operator(
    reads=positions.by("trip"),
    emits=f"{_CELL}, at_s bigint not null, speed bigint not null, entry bigint",
    state="at_s bigint, x_cm bigint, y_cm bigint, speed bigint",
    ttl_s=86400.0,
    set_up=_plane,
    service_s=20e-6,
    sends=0.96,
    on_error="dead_letter",
)
def speeds(
    plane: Plane, state: Trip, _trip: str, at_s: int, lat_e6: int, lon_e6: int
) -> Iterator[tuple[int, int, int, int, int | None]]:
    """Yield the cell and the speed of a report, and that before if it is a new cell."""
    place = plane.place(lat_e6, lon_e6)
    before_s, x_cm, y_cm, before = state["at_s"], state["x_cm"], state["y_cm"], state["speed"]
    speed = None
    if before_s is not None and x_cm is not None and y_cm is not None:
        if at_s <= before_s:
            return  # it came twice
        speed = plane.speed_cm_s((x_cm, y_cm), place, at_s - before_s)
        if speed is not None:
            cell = plane.cell(place)
            entry = before if plane.cell((x_cm, y_cm)) != cell else None
            yield (*cell, at_s, speed, entry)
    state["at_s"], (state["x_cm"], state["y_cm"]), state["speed"] = at_s, place, speed


@app.operator(
    reads=speeds.by("x", "y"),
    emits={
        "rows": f"{_CELL}, start_s bigint, count bigint, average bigint, highest bigint, "
        "queue_end boolean",
        "late": f"{_CELL}, at_s bigint, speed bigint",
    },
    state={"panes": (f"array<{_PANE}>", [])},
    set_up=Settings.of_environment,
    service_s=50e-6,
    sends={"rows": 3.0, "late": 0.0},
)
def cells(  # noqa: PLR0913, PLR0917 - columns
    settings: Settings, state: Cell, x: int, y: int, at_s: int, speed: int, entry: int | None
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the rows of all windows that a report is in; or the report, if it is late."""
    number, panes = at_s // settings.slide_s, [Pane(*pane) for pane in state["panes"]]
    if panes and number < panes[-1].number - settings.late_slides:
        yield "late", (x, y, at_s, speed)
        return
    entries = 0 if entry is None else 1
    one = Pane(number, 1, speed, speed, entries, entry or 0)
    panes = added(panes, one, keep=settings.slides + settings.late_slides)
    state["panes"] = [*panes]
    for first in range(number - settings.slides + 1, number + 1):
        inside = [pane for pane in panes if 0 <= pane.number - first < settings.slides]
        window = total(first, inside)
        speeds = window.reports, window.average, window.highest
        yield "rows", (x, y, first * settings.slide_s, *speeds, window.is_queue_end)


app.sink(cells["rows"])
app.sink(cells["late"])
