"""Station models: the sojourn of a record at one operator. One file each."""

from functools import cache, partial
from typing import cast

from sojourn import registry
from sojourn.errors import BadInput
from sojourn.model.station.base import Station

__all__ = ["Station", "names", "station"]

_FUNCTIONS = ("service", "wait", "wait_s", "waits_s")

names = partial(registry.names, __name__)
"""Return the names of the models in this folder."""


@cache
def station(name: str) -> Station:
    """Return the station model *name* of this folder, or an external one: `ours.stations:mine`.

    An external model is a module or any object with the four functions. Raise `BadInput` if it
    does not exist, or is not a station model.
    """
    found = registry.find(__name__, "station model", name)
    lacking = [each for each in _FUNCTIONS if not callable(getattr(found, each, None))]
    if lacking:
        raise BadInput(
            f"{name} is not a station model: it lacks {', '.join(lacking)}; define "
            f"{', '.join(_FUNCTIONS)}"
        )
    return cast("Station", found)
