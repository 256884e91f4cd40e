"""`python -m sojourn.spark.host PART`: the host of a part, with its settings as JSON on stdin.

The argument only identifies the process for humans.
"""

import asyncio
import sys
from pathlib import Path

import msgspec

from sojourn.spark.host.garbage import collect_seldom
from sojourn.spark.host.server import Host
from sojourn.spark.wire.host_settings import HostSettings

__all__ = ["main"]


def main() -> None:
    """Run a host until its controller is gone."""
    settings = msgspec.json.decode(
        sys.stdin.buffer.read(),
        type=HostSettings,
        dec_hook=lambda kind, value: kind(value) if kind is Path else value,
    )
    collect_seldom()
    asyncio.run(Host(settings).run())


if __name__ == "__main__":
    main()
