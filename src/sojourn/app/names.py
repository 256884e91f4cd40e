"""Checks of names of applications, streams and operators, and of lengths of id windows."""

import re

from sojourn.errors import BadApplication
from sojourn.text import shown

__all__ = ["check_name", "check_window"]

# A Kafka topic is named after application and stream; Kafka allows these characters, and
# limits the length.
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")


def check_name(section: str, name: object) -> str:
    """Return the place of *name* in *section* after checking that it is a valid name."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadApplication(
            section,
            f"{shown(name)} is not a valid name",
            "use at most 100 letters A to Z, digits and . _ - (it names Kafka topics)",
        )
    return f"{section}.{name}"


def check_window(place: str, window: object) -> int:
    """Return *window* after checking that it is a positive number of ids."""
    if not isinstance(window, int) or isinstance(window, bool) or window < 1:
        raise BadApplication(
            place, f"{shown(window)} is not a number of ids", "write 1 or more"
        )
    return window
