"""Station models: the sojourn of a record at one operator. One file each."""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import cast

from sojourn.errors import UnknownModel
from sojourn.model.station.base import Station

__all__ = ["Station", "names", "station"]


def names() -> tuple[str, ...]:
    """Return the names of the models in this folder.

    >>> "mmk" in names()
    True
    """
    return tuple(
        sorted(module.name for module in iter_modules(__path__) if module.name != "base")
    )


@cache
def station(name: str) -> Station:
    """Return the station model called *name*, or the module at a dotted path (`ours.queue`).

    Raise `UnknownModel` if there is none.
    """
    dotted = "." in name and not name.startswith(".")
    path = name if dotted else f"{__name__}.{name}"
    if not dotted and name not in names():
        raise UnknownModel(name, names())
    try:
        return cast("Station", import_module(path))
    except ModuleNotFoundError as missing:
        raise UnknownModel(name, names()) from missing
