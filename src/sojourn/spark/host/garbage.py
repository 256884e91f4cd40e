"""Garbage collection of a host: of new objects, and of all only when few records are open.

Records are in no reference cycles, and a million may be open: a full collection would block the
event loop for a tenth of a second.
"""

import gc

__all__ = ["collect_if_few", "collect_seldom"]

# New containers before a young collection, which takes 2 ms; young ones before an older one.
_YOUNG, _SELDOM = 10_000, 1000
_FEW = 10_000


def collect_seldom() -> None:
    """Exclude all current objects from collections, and collect mostly young ones."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, _SELDOM, _SELDOM)


def collect_if_few(records: int) -> None:
    """Run a full collection if few *records* are open, so that it is short."""
    if records < _FEW:
        gc.collect()
