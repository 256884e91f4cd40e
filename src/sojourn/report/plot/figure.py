"""An empty figure, and writing it to a file."""

from pathlib import Path
from typing import Any

from sojourn.errors import BadFile, BadInput

__all__ = ["figure", "save"]


def figure(width: float, height: float) -> Any:  # noqa: ANN401 - matplotlib has no types
    """Return an empty figure of this width and height in inches.

    Raise `BadInput` if matplotlib is missing.
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - optional, and slow to import
    except ImportError as error:
        raise BadInput(
            "plots need matplotlib, which is not installed; install sojourn[plot]"
        ) from error
    return Figure(figsize=(width, height), layout="constrained")


def save(picture: Any, path: Path) -> None:  # noqa: ANN401
    """Write *picture* to *path*; its suffix determines the format.

    Raise `BadFile` if it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        picture.savefig(path, dpi=120)
    except (OSError, ValueError) as error:
        raise BadFile(
            str(path),
            f"cannot be written: {error}",
            "choose a path that ends in .png, .svg or .pdf",
        ) from error
