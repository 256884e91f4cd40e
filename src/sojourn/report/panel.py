"""A chart as data: what is drawn, whoever draws it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal

__all__ = ["Kind", "Mark", "Panel", "Series", "far_apart"]

Kind = Literal["bars", "points", "lines", "steps", "area", "stack", "ticks"]
"""How a series is drawn: *area* is filled, a *stack* lies on the one before it, and *ticks*
are strokes at the foot of the panel wherever there is a value."""

# Values that differ by more are drawn on a scale of powers of ten.
_FAR = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line, one set of points, or one colour of bars; *error* is drawn around *y*.

    Where *x* has one more than *y*, each y is of all from its x to the next. *kind* says how
    it is drawn where not as the panel is, *role* what it is: who draws has a colour for it.
    """

    label: str
    x: Sequence[float] | Sequence[str]
    y: Sequence[float]
    error: Sequence[float] = ()
    kind: Kind | None = None
    role: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """A vertical line at *x*; *text* says what happened there."""

    x: float
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One picture, said in data: *levels* are horizontal lines, *marks* vertical ones.

    *spans* are shaded, from one x to another, because nothing is known there. *summary* says
    what it shows to those who cannot see it. Of several above each other, *height* is its
    part. *over_time*, x are seconds, which are written in the unit that suits them; *whole*
    are y that are counted.
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
    """Tell whether *values* are best drawn on a scale of powers of ten.

    >>> far_apart([0.02, 30]), far_apart([0, 2, 30]), far_apart([])
    (True, False, False)
    """
    known = [value for value in values if isfinite(value) and value > 0]
    return bool(known) and max(known) > _FAR * min(known)
