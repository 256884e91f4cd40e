"""Engines by name: those of sojourn, and `package.module:name` from anywhere else."""

from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from sojourn.app.application import App
from sojourn.engine import Engine, Progress
from sojourn.errors import EngineError, UnknownEngine

__all__ = ["Launch", "launcher", "names"]

# where the function is that makes one, and what has to be installed for it
_OURS = {
    "spark": ("sojourn.spark.launch:launch", "sojourn[spark]"),
    "simulator": ("sojourn.simulate.launch:launch", "sojourn[simulate]"),
}


class Launch(Protocol):
    """Makes an engine for an application."""

    def __call__(
        self, app: App, address: str, settings: object, state: Path, progress: Progress
    ) -> Engine:
        """Return the engine for *app*, which is found at *address*; it is not started yet.

        *settings* are a frozen record of the engine's own, or None for its defaults; what the
        next start goes on with belongs into *state*, and a start that takes long is told to
        *progress*. Raise `EngineError` if something is missing.
        """
        ...


def names() -> tuple[str, ...]:
    """Return the names of sojourn's own engines.

    >>> names()
    ('spark', 'simulator')
    """
    return tuple(_OURS)


def launcher(name: str) -> Launch:
    """Return what makes the engine called *name*, or that at `package.module:name`.

    Raise `UnknownEngine` if there is none, `EngineError` if something is to be installed.
    """
    address, install = _OURS.get(name, (name, ""))
    module, _, attribute = address.partition(":")
    if not attribute or module.startswith("."):
        raise UnknownEngine(name, names())
    try:
        found = getattr(import_module(module), attribute, None)
    except ImportError as error:
        if not install:
            raise UnknownEngine(name, names()) from error
        raise EngineError(
            f"running on {name} needs {error.name}, which is not installed; install {install}"
        ) from error
    if found is None:
        raise UnknownEngine(name, names())
    return cast("Launch", found)
