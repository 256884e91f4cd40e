"""Strategies by name: a built-in module of a package, or anything that can be imported.

A name without a dot is a module of the package, so a new file is a new strategy. Users name
their own as `package.module:name`, or `package.module` for a module. Code that needs an
optional dependency imports it inside `optional`, whose error says how to install it.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pkgutil import iter_modules

from sojourn.errors import BadInput, EngineError, SojournError
from sojourn.text import escaped

_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def names(package: str) -> tuple[str, ...]:
    """Return the names of the strategies in *package*: its modules, except `base`.

    >>> "mmk" in names("sojourn.model.station")
    True
    """
    found = (module.name for module in iter_modules(import_module(package).__path__))
    return tuple(sorted(name for name in found if name != "base"))


def is_outside(name: str) -> bool:
    """Return whether *name* is a strategy of the user, not a built-in one."""
    return "." in name or ":" in name


def find(package: str, kind: str, name: str) -> object:
    """Return the module *name* of *package*, or else the user's strategy of this name."""
    known = names(package)
    if name in known:
        return import_module(f"{package}.{name}")
    return find_outside(kind, name, known)


def find_outside(kind: str, name: str, known: tuple[str, ...]) -> object:
    """Return the object at `package.module:name`, or the module at `package.module`.

    Raise `BadInput` with the *known* names if it does not exist, or if it cannot be imported.
    """
    unknown = BadInput(
        escaped(
            f"unknown {kind} {name!r}; write one of {', '.join(known)}, or "
            "package.module:name for your own"
        )
    )
    path, colon, attribute = name.partition(":")
    well_formed = _MODULE.fullmatch(path) and (attribute.isidentifier() or not colon)
    if not is_outside(name) or not well_formed:
        raise unknown
    module = _imported(name, path, unknown)
    if colon and not hasattr(module, attribute):
        raise unknown
    return getattr(module, attribute) if colon else module


def _imported(name: str, path: str, unknown: BadInput) -> object:
    try:
        return import_module(path)
    except ModuleNotFoundError as missing:
        if missing.name is None or not f"{path}.".startswith(f"{missing.name}."):
            raise _failed(name, path, missing) from missing
        raise unknown from missing
    except Exception as error:
        raise _failed(name, path, error) from error


def _failed(name: str, path: str, error: Exception) -> BadInput:
    return BadInput(
        f"{name}: importing {path} failed: {type(error).__name__}: {error}; correct it"
    )


@contextmanager
def optional(what: str, extra: str, raised: type[SojournError] = EngineError) -> Iterator[None]:
    """Turn an `ImportError` in the block into *raised*, with the extra to install.

    >>> with optional("the broker needs", "spark"):
    ...     import confluent_kafkb
    Traceback (most recent call last):
    sojourn.errors.EngineError: the broker needs confluent_kafkb, which is not installed; ...
    """
    try:
        yield
    except ImportError as error:
        raise raised(
            f"{what} {error.name or error}, which is not installed; install sojourn[{extra}]"
        ) from error
