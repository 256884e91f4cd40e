"""The plot of a history: load, latency and processors."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from sojourn.decide.target import Target
from sojourn.errors import BadInput
from sojourn.knowledge import Episode
from sojourn.report.plot.panels import draw_rows, figure, save
from sojourn.report.run_panels import allocation, latency, load
from sojourn.report.series import Course
from sojourn.report.turns import turns


def draw_history(
    episodes: Iterable[Episode],
    path: Path,
    target: Target | float | None = None,
    title: str = "what the loop did",
) -> None:
    """Write the plot of *episodes* to *path*; raise `BadInput` if there is nothing to draw.

    *target* is a `Target`, or seconds of the statistic that decisions predicted. The own
    target of a turn takes precedence.
    """
    promise = target if isinstance(target, Target) else None
    course = Course(promise)
    for turn in turns(episodes, promise.statistic if promise else "mean"):
        course.add(turn)
    if not course.points:
        raise BadInput("there is nothing to plot: the loop has not had a turn yet")
    panels = [load(course), latency(course), allocation(course)]
    if target is not None and not isinstance(target, Target):
        panels[1] = replace(panels[1], levels={f"target {target:g} s": target})
    picture = figure(11, 7.5)
    draw_rows(picture, panels)
    picture.suptitle(title)
    save(picture, path)
