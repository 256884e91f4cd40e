"""Strategies by name: one module each in a package of ours, or anything that can be imported.

A name without a dot is a module of the package, so that a file there is all it takes to add
one. `package.module:name` is something of somebody else's, and `package.module` a module.
"""

import re
from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules

from sojourn.errors import BadInput

__all__ = ["find", "find_outside", "is_outside", "names"]

_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def names(package: str) -> tuple[str, ...]:
    """Return the names of the strategies in *package*; `base` says what they have to hold.

    >>> "mmk" in names("sojourn.model.station")
    True
    """
    found = (module.name for module in iter_modules(import_module(package).__path__))
    return tuple(sorted(name for name in found if name != "base"))


def is_outside(name: str) -> bool:
    """Tell whether *name* is that of something outside of our packages."""
    return "." in name or ":" in name


def find(
    package: str, name: str, unknown: Callable[[str, tuple[str, ...]], BadInput]
) -> object:
    """Return the module *name* of *package*, or what is at `package.module:name`.

    Raise what *unknown* makes of the name and those that there are, if there is none; a
    `BadInput` if it cannot be imported.
    """
    known = names(package)
    if name in known:
        return import_module(f"{package}.{name}")
    return find_outside(name, known, unknown)


def find_outside(
    name: str, known: tuple[str, ...], unknown: Callable[[str, tuple[str, ...]], BadInput]
) -> object:
    """Return what is at `package.module:name`, or the module at `package.module`.

    Raise what *unknown* makes of the name and those that are *known*, if there is none; a
    `BadInput` if it cannot be imported.
    """
    if not is_outside(name):
        raise unknown(name, known)
    path, colon, attribute = name.partition(":")
    if not _MODULE.fullmatch(path) or (colon and not attribute.isidentifier()):
        raise unknown(name, known)
    module = _imported(name, path, unknown(name, known))
    if colon and not hasattr(module, attribute):
        raise unknown(name, known)
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
