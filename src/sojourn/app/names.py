"""What may be a name, and what may not."""

import re

from sojourn.errors import BadApplication
from sojourn.topology.check import shown

__all__ = ["check_name"]

# Streams become Kafka topics, whose names are made of these and are not longer; the
# application's name comes before them.
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")


def check_name(section: str, name: object) -> str:
    """Return the place of *name* in *section*, having checked that it can be a name."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadApplication(
            section,
            f"{shown(name)} cannot be a name",
            "use at most 100 of the letters A to Z, digits, and . _ - (it names a Kafka topic)",
        )
    return f"{section}.{name}"
