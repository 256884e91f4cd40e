"""Removal of the temporary folder of an application whose process was killed."""

import asyncio
import os
import shutil
from pathlib import Path
from time import monotonic

__all__ = ["remove_after"]

# Java needs a moment to notice the end of its parent, and may write files until then.
_REMOVE_FOR_S, _REMOVE_EVERY_S = 3.0, 0.1
_GONE_WITHIN_S = 10.0


async def remove_after(
    parent: int,
    folder: Path,
    *,
    within_s: float = _GONE_WITHIN_S,
    for_s: float = _REMOVE_FOR_S,
) -> None:
    """Remove *folder* if the process *parent* is gone, or ends *within_s*.

    Keep removing it *for_s*, because files may still be written there.
    """
    if not await _gone(parent, within_s):
        return
    until_s = monotonic() + for_s
    while monotonic() < until_s:
        shutil.rmtree(folder, ignore_errors=True)
        await asyncio.sleep(_REMOVE_EVERY_S)


async def _gone(parent: int, within_s: float) -> bool:
    """Return whether the parent process is gone, or ends *within_s*.

    The connections of a killed process break a moment before it is gone.
    """
    until_s = monotonic() + within_s
    while monotonic() < until_s:
        if os.getppid() != parent:
            return True
        await asyncio.sleep(_REMOVE_EVERY_S)
    return False
