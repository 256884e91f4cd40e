"""A chart as data: what is drawn, whoever draws it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Panel", "Series"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line, one set of points, or one colour of bars; *error* is drawn around *y*."""

    label: str
    x: Sequence[float] | Sequence[str]
    y: Sequence[float]
    error: Sequence[float] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One picture, said in data: *levels* are horizontal lines, *marks* vertical ones."""

    kind: Literal["bars", "points", "lines"]
    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    levels: Mapping[str, float] = field(default_factory=dict)
    marks: tuple[float, ...] = ()
    log_x: bool = False
    log_y: bool = False
    diagonal: bool = False
