"""Policies: strategies that decide when and how to scale a running application.

Each is in a file of its own.
"""

from functools import partial
from types import ModuleType
from typing import Any, cast

from sojourn import registry
from sojourn.act.policy.base import Policy, PolicyContext
from sojourn.decide.target import Target
from sojourn.errors import BadInput

__all__ = ["DEFAULT", "Policy", "PolicyContext", "names", "policy"]

DEFAULT = "drs"

names = partial(registry.names, __name__)
"""Return the names of the policies in this folder."""


def policy(
    name: str,
    *,
    target: Target,
    most: int | None = None,
    every_s: float | None = None,
    pauses: bool = True,
) -> Policy:
    """Return the policy *name* with its defaults, or an external one: `ours.calm:Calm`.

    An external policy is named by a class or function that takes a `PolicyContext`, or by a
    module with a function `policy`. Raise `BadInput` if it does not exist, or the result is not
    a policy.
    """
    found: Any = registry.find(__name__, "policy", name)
    make = getattr(found, "policy", None) if isinstance(found, ModuleType) else found
    context = PolicyContext(target=target, most=most, every_s=every_s, pauses=pauses)
    made = make(context) if callable(make) else None
    if not callable(made):
        raise BadInput(
            f"{name} is not a policy; name a function or a class that takes a PolicyContext "
            "and returns a Policy"
        )
    return cast("Policy", made)
