"""A topology: operators joined by streams, its files, and the rates that flow through it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sojourn.topology.topology import Arrival, Dispatch, Operator, Route, Topology

__all__ = ["Arrival", "Dispatch", "Operator", "Route", "Topology"]


def __getattr__(name: str) -> object:
    """Import the topology on first use: hosts only check names, and need no numpy."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sojourn.topology import topology  # noqa: PLC0415 - see above

    return getattr(topology, name)
