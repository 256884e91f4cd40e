"""A chart as data, for all ways to draw it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal

__all__ = ["Kind", "Mark", "Panel", "Series", "far_apart"]

Kind = Literal["bars", "points", "lines", "steps", "area", "stack", "ticks"]
"""How a series is drawn: an *area* is filled, a *stack* is drawn on top of the series before,
and *ticks* are marks at the bottom of the panel."""

# Values that differ by a larger factor are drawn on a logarithmic scale.
_FAR = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line, set of points, or colour of bars; *error* is the half-width around *y*.

    If *x* has one value more than *y*, each y holds from its x to the next. *kind* overrides
    that of the panel; *role* determines the colour.
    """

    label: str
    x: Sequence[float] | Sequence[str]
    y: Sequence[float]
    error: Sequence[float] = ()
    kind: Kind | None = None
    role: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """A vertical line at *x*, with a label."""

    x: float
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One chart: *levels* are horizontal lines, *marks* vertical ones.

    *spans*, from one x to another, are shaded because nothing is known there. *summary* is
    the text for screen readers. *height* is relative to other panels in the same figure. If
    *over_time*, x are seconds, with labels in a suitable unit; if *whole*, y are integers.
    """

    kind: Kind
    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    levels: Mapping[str, float] = field(default_factory=dict)
    marks: tuple[Mark, ...] = ()
    spans: tuple[tuple[float, float], ...] = ()
    summary: str = ""
    height: float = 1.0
    log_x: bool = False
    log_y: bool = False
    diagonal: bool = False
    whole: bool = False
    over_time: bool = False


def far_apart(values: Iterable[float]) -> bool:
    """Tell whether *values* need a logarithmic scale.

    >>> far_apart([0.02, 30]), far_apart([0, 2, 30]), far_apart([])
    (True, False, False)
    """
    known = [value for value in values if isfinite(value) and value > 0]
    return bool(known) and max(known) > _FAR * min(known)
