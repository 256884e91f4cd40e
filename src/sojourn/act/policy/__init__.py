"""Policies: when a running application is changed, and to what. One file each."""

from importlib import import_module
from pkgutil import iter_modules
from typing import cast

from sojourn.act.policy.base import Policy
from sojourn.decide.target import Target
from sojourn.errors import UnknownPolicy

__all__ = ["Policy", "names", "policy"]


def names() -> tuple[str, ...]:
    """Return the names of the policies in this folder.

    >>> "drs" in names()
    True
    """
    return tuple(
        sorted(module.name for module in iter_modules(__path__) if module.name != "base")
    )


def policy(name: str, *, target: Target, most: int | None = None) -> Policy:
    """Return the policy called *name*, with its defaults, for *target* and *most* processors.

    Policies that know no latency take no notice of the target. Raise `UnknownPolicy` if
    there is none of that name.
    """
    if name not in names():
        raise UnknownPolicy(name, names())
    module = import_module(f"{__name__}.{name}")
    return cast("Policy", module.policy(target, most))
