"""The loop, which observes, decides, acts and remembers."""

from sojourn.loop.loop import (
    ACTIVE,
    PASSIVE,
    Loop,
    Mode,
    Site,
    planned,
    step,
)

__all__ = [
    "ACTIVE",
    "PASSIVE",
    "Loop",
    "Mode",
    "Site",
    "planned",
    "step",
]
