"""Charts as data: the terminal, the HTML page and matplotlib draw the same panels."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal

Kind = Literal["bars", "points", "lines", "steps", "area", "stack", "ticks"]
"""How a series is drawn: an *area* is filled, a *stack* is drawn on top of the series before,
and *ticks* are marks at the bottom of the panel."""

# Values that differ by a larger factor are drawn on a logarithmic scale.
_FAR = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line, set of points, or colour of bars.

    If *x* has one value more than *y*, each y holds from its x to the next.
    """

    label: str
    x: Sequence[float] | Sequence[str]
    y: Sequence[float]
    error: Sequence[float] = ()
    """Half-widths around *y*."""
    kind: Kind | None = None
    """Overrides the kind of the panel."""
    role: str = ""
    """Determines the colour and the style."""


@dataclass(frozen=True, slots=True)
class Mark:
    x: float
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One chart: series over the same axes."""

    kind: Kind
    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    levels: Mapping[str, float] = field(default_factory=dict)
    """Horizontal lines, by label."""
    marks: tuple[Mark, ...] = ()
    """Vertical lines."""
    spans: tuple[tuple[float, float], ...] = ()
    """Ranges of x that are shaded because nothing is known there."""
    summary: str = ""
    """The text for screen readers."""
    height: float = 1.0
    """Relative to the other panels of the figure."""
    log_x: bool = False
    log_y: bool = False
    diagonal: bool = False
    """Draws the line y = x."""
    whole: bool = False
    """Whether y are integers."""
    over_time: bool = False
    """Whether x are seconds, labelled in a suitable unit."""


def far_apart(values: Iterable[float]) -> bool:
    """Return whether the range of *values* needs a logarithmic scale.

    >>> far_apart([0.02, 30]), far_apart([0, 2, 30]), far_apart([])
    (True, False, False)
    """
    known = [value for value in values if isfinite(value) and value > 0]
    return bool(known) and max(known) > _FAR * min(known)
