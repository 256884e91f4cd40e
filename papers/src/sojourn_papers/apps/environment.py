"""Settings of an application, read from variables of the environment."""

import os
from collections.abc import Iterable

from sojourn.errors import BadInput


def whole_numbers(prefix: str, names: Iterable[str], *, least: int = 1) -> dict[str, int]:
    """Return the settings among *names* that the environment has, as `PREFIX_NAME=5`.

    Raise `BadInput` at one that is not a whole number from *least* on.
    """
    given: dict[str, int] = {}
    for name in names:
        variable = f"{prefix}_{name.upper()}"
        text = os.environ.get(variable)
        if text is None:
            continue
        if not text.isdecimal() or int(text) < least:
            raise BadInput(f"{variable}={text} is not a number from {least} on; correct it")
        given[name] = int(text)
    return given
