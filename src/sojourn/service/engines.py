"""Engines by name: those of sojourn, and `package.module:name` from anywhere else."""

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Protocol, cast

from sojourn.app.application import App
from sojourn.engine import Engine, Progress
from sojourn.errors import BadInput, EngineError, UnknownEngine
from sojourn.registry import find_outside

__all__ = ["Launch", "launcher", "names"]

# the module in which `launch` is, and what has to be installed for it
_OURS = {
    "spark": ("sojourn.spark.launch", "sojourn[spark]"),
    "simulator": ("sojourn.simulate.launch", "sojourn[simulate]"),
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
    """Return what makes the engine called *name*, or one from outside: `ours.engine:launch`.

    Outside it is a function, or a module in which that is called `launch`. Raise
    `UnknownEngine` if there is none, `EngineError` if something is to be installed, and a
    `BadInput` if it is no engine.
    """
    found = _ours(name) if name in _OURS else find_outside(name, names(), UnknownEngine)
    launch = getattr(found, "launch", None) if isinstance(found, ModuleType) else found
    if not callable(launch):
        raise BadInput(f"{name} makes no engine; name a function that is called as launch is")
    return cast("Launch", launch)


def _ours(name: str) -> ModuleType:
    module, install = _OURS[name]
    try:
        return import_module(module)
    except ImportError as error:
        raise EngineError(
            f"running on {name} needs {error.name}, which is not installed; install {install}"
        ) from error
