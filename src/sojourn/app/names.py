"""Valid names of applications, streams and operators."""

import re

from sojourn.errors import BadApplication
from sojourn.topology.check import shown

__all__ = ["check_name"]

# The name of a Kafka topic is that of the application and that of the stream; Kafka allows
# these characters, and a limited length.
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
