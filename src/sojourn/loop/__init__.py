"""The loop, which observes, decides, acts and remembers."""

from sojourn.loop.loop import ACTIVE, PASSIVE, Loop, Mode, step

__all__ = ["ACTIVE", "PASSIVE", "Loop", "Mode", "step"]
