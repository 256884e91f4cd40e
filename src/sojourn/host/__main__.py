"""`python -m sojourn.host SETTINGS`: the host of a part; settings are JSON."""

import asyncio
import gc
import sys
from pathlib import Path

import msgspec

from sojourn.host.host_settings import HostSettings
from sojourn.host.server import Host

__all__ = ["main"]

_COLLECT_AFTER = 100_000


def main(text: str) -> None:
    """Run a host until its controller is gone."""
    settings = msgspec.json.decode(
        text,
        type=HostSettings,
        dec_hook=lambda kind, value: kind(value) if kind is Path else value,
    )
    # records are no cycles: looking for those among many open ones only takes time
    gc.set_threshold(_COLLECT_AFTER)
    asyncio.run(Host(settings).run())


if __name__ == "__main__":
    main(sys.argv[1])
