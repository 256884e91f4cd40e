"""`--placement`."""

from typing import Annotated

from typer import Option

from sojourn.app.address import import_from_here
from sojourn.cli.options.completion import placers
from sojourn.decide.place import Placer, names, placer

__all__ = ["NewPlacementOption", "PlacementOption", "read_placement"]

_OPTION = Option(
    metavar="NAME",
    help=f"Placement of processors on nodes: {', '.join(names())}, or your own: "
    "package.module:name.",
    autocompletion=placers,
)
PlacementOption = Annotated[str, _OPTION]
NewPlacementOption = Annotated[str | None, _OPTION]


def read_placement(name: str) -> Placer:
    """Return the placer of this name; a user's own may be in the current folder."""
    import_from_here(name)
    return placer(name)
