"""Placers: strategies that assign the processors of operators to nodes. One file each."""

from functools import partial
from types import ModuleType
from typing import Any, cast

from sojourn import registry
from sojourn.decide.place.base import PlacementRequest, Placer
from sojourn.errors import BadInput

__all__ = ["DEFAULT", "PlacementRequest", "Placer", "names", "placer"]

DEFAULT = "round_robin"

names = partial(registry.names, __name__)
"""Return the names of the placers in this folder."""


def placer(name: str) -> Placer:
    """Return the placer *name* of this folder, or an external one: `ours.placers:spread`.

    An external placer is a function, or a module with a function `place`. Raise `BadInput` if
    it does not exist, or is not callable.
    """
    found: Any = registry.find(__name__, "placer", name)
    place = getattr(found, "place", None) if isinstance(found, ModuleType) else found
    if not callable(place):
        raise BadInput(
            f"{name} is not a placer; name a function that "
            "takes a PlacementRequest and returns a Placement"
        )
    return cast("Placer", place)
