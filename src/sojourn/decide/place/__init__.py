"""Placers: on which nodes the processors of operators are. One file each."""

from importlib import import_module
from pkgutil import iter_modules
from typing import cast

from sojourn.decide.place.base import Placer
from sojourn.errors import UnknownPlacer

__all__ = ["Placer", "names", "placer"]


def names() -> tuple[str, ...]:
    """Return the names of the placers in this folder.

    >>> names()
    ('one_node',)
    """
    return tuple(
        sorted(module.name for module in iter_modules(__path__) if module.name != "base")
    )


def placer(name: str) -> Placer:
    """Return the placer called *name*. Raise `UnknownPlacer` if there is none."""
    if name not in names():
        raise UnknownPlacer(name, names())
    return cast("Placer", import_module(f"{__name__}.{name}").place)
