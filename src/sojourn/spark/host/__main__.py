"""`python -m sojourn.spark.host PART`: the host of a part, with its settings as JSON on stdin.

The argument only identifies the process for humans.
"""

import asyncio
import gc
import os
import shutil
import sys
from pathlib import Path
from time import monotonic

import msgspec

from sojourn.spark.host.server import Host
from sojourn.spark.wire.host_settings import HostSettings

# New containers before a young collection, which takes 2 ms; young ones before an older one.
_YOUNG, _SELDOM = 10_000, 1000
# Java needs a moment to notice the end of its parent, and may write files until then.
_REMOVE_FOR_S, _REMOVE_EVERY_S = 3.0, 0.1
_GONE_WITHIN_S = 10.0


def main() -> None:
    """Run a host until its controller is gone."""
    settings = msgspec.json.decode(
        sys.stdin.buffer.read(),
        type=HostSettings,
        dec_hook=lambda kind, value: kind(value) if kind is Path else value,
    )
    collect_seldom()
    asyncio.run(_run(settings))


def collect_seldom() -> None:
    """Exclude all current objects from collections, and collect mostly young ones.

    Records are in no reference cycles, and a million may be open: a full collection would block
    the event loop for a tenth of a second. `Execution` runs one when few are open.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, _SELDOM, _SELDOM)


async def _run(settings: HostSettings) -> None:
    started_by, host = os.getppid(), Host(settings)
    try:
        await host.run()
    finally:
        # The controller was killed, so nothing else removes its temporary folder.
        if settings.temporary is not None and host.forsaken:
            await remove_after(started_by, settings.temporary)


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


if __name__ == "__main__":
    main()
