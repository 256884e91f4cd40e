"""When a host looks for garbage in cycles: among new objects, and among all when few are open.

Records are in no cycles, and a million may be open: looking through all of them would hold up
the event loop for a tenth of a second.
"""

import gc

__all__ = ["collect_if_few", "collect_seldom"]

# New containers in a collection, which takes 2 ms, and how many of those before a longer one.
_YOUNG, _SELDOM = 10_000, 1000
_FEW = 10_000


def collect_seldom() -> None:
    """Leave what there is now alone, and look at new objects only."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, _SELDOM, _SELDOM)


def collect_if_few(records: int) -> None:
    """Look for all garbage, unless so many *records* are open that it would take long."""
    if records < _FEW:
        gc.collect()
