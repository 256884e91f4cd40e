"""Engines by name: built-in ones, or `package.module:name`."""

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Protocol, cast

from sojourn.app.application import App
from sojourn.engine import Engine, Progress
from sojourn.errors import BadInput
from sojourn.registry import find_outside, optional

# the module that has `launch`, and the extra that it needs
_OURS = {
    "spark": ("sojourn.spark.driver.spark_engine", "spark"),
    "simulator": ("sojourn.simulate.real_time", "simulate"),
}


class Launch(Protocol):
    def __call__(
        self, app: App, address: str, settings: object, state: Path, progress: Progress
    ) -> Engine:
        """Return the engine for *app*, which is at *address*, without starting it.

        *settings* is a frozen record of this engine, or None for its defaults. The engine
        keeps its checkpoints in *state*, and reports a slow start to *progress*. Raise
        `EngineError` if a dependency is missing.
        """


def names() -> tuple[str, ...]:
    """Return the names of the built-in engines.

    >>> names()
    ('spark', 'simulator')
    """
    return tuple(_OURS)


def launcher(name: str) -> Launch:
    """Return the function that creates the engine *name*.

    An engine of the user is a function, `ours.engine:launch`, or a module with a function
    `launch`. Raise `BadInput` if it does not exist or is not callable, `EngineError` if a
    package is missing.
    """
    if name in _OURS:
        module, extra = _OURS[name]
        with optional(f"running on {name} needs", extra):
            found: object = import_module(module)
    else:
        found = find_outside("engine", name, names())
    launch = getattr(found, "launch", None) if isinstance(found, ModuleType) else found
    if not callable(launch):
        raise BadInput(f"{name} is not callable; name a function with the signature of Launch")
    return cast("Launch", launch)
