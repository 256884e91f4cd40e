"""Placers: on which nodes the processors of operators are. One file each."""

from types import ModuleType
from typing import Any, cast

from sojourn import registry
from sojourn.decide.place.base import Placer
from sojourn.errors import BadInput

__all__ = ["Placer", "names", "placer"]


def names() -> tuple[str, ...]:
    """Return the names of the placers in this folder.

    >>> "one_node" in names()
    True
    """
    return registry.names(__name__)


def placer(name: str) -> Placer:
    """Return the placer called *name*, or one from outside: `ours.placers:spread`.

    Outside it is a function, or a module in which that is called `place`. Raise
    `UnknownName` if there is none, and a `BadInput` if it is no placer.
    """
    found: Any = registry.find(__name__, "placer", name)
    place = getattr(found, "place", None) if isinstance(found, ModuleType) else found
    if not callable(place):
        raise BadInput(f"{name} is no placer; name a function that puts processors on nodes")
    return cast("Placer", place)
