"""Processes that end with the one that started them, also where that is killed."""

import ctypes
import os
import signal
import sys

__all__ = ["die_with"]

_PR_SET_PDEATHSIG = 1
# elsewhere than on Linux there is no such call, and they end when they next speak to it
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def die_with(parent: int) -> None:
    """Have this process killed when its *parent* is gone, whatever it does by then."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it was gone before it could be asked for
        os._exit(1)
