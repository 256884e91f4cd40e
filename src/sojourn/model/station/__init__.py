"""Station models: the sojourn of a record at one operator. One file each."""

from functools import cache
from typing import cast

from sojourn import registry
from sojourn.errors import BadInput
from sojourn.model.station.base import Station

__all__ = ["Station", "names", "station"]

_FUNCTIONS = ("service", "wait", "wait_s", "waits_s")


def names() -> tuple[str, ...]:
    """Return the names of the models in this folder.

    >>> "mmk" in names()
    True
    """
    return registry.names(__name__)


@cache
def station(name: str) -> Station:
    """Return the station model called *name*, or one from outside: `ours.stations:mine`.

    Outside it is a module, or anything else that has the four functions. Raise
    `UnknownName` if there is none, and a `BadInput` if it is no station model.
    """
    found = registry.find(__name__, "station model", name)
    lacking = [each for each in _FUNCTIONS if not callable(getattr(found, each, None))]
    if lacking:
        raise BadInput(
            f"{name} is not a station model: it lacks {', '.join(lacking)}; define "
            f"{', '.join(_FUNCTIONS)}"
        )
    return cast("Station", found)
