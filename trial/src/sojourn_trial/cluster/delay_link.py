"""A network link with a delay, for kernels without `netem`.

A program of its own: `python delay_link.py DELAY_S SKIP HERE THERE` makes two network
interfaces (TAP) of these names, and passes every packet from one to the other when the delay
has gone by. They are there as long as it runs; it prints a line when they are. What comes in
HERE from an address that begins with SKIP (hexadecimal) is not delayed: another link did it.
"""

import fcntl
import os
import select
import struct
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from heapq import heappop, heappush
from math import inf

__all__ = ["main"]

_TUN = "/dev/net/tun"
_TUNSETIFF, _IFF_TAP, _IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
_PACKET_BYTES = 65536
# As in a real device: what does not fit is lost, and TCP sends it again.
_ON_THE_WAY = 10_000
# Where the address of the sender is in an Ethernet packet.
_SENDER = 6
_DOWN_S = 0.01


class _Direction:
    """What goes from the interface *source* to *target*; *skip* is what is not delayed.

    A packet whose sender's address begins with *skip* was delayed where it came from.
    """

    def __init__(self, source: int, target: int, delay_s: float, skip: bytes | None) -> None:
        self.source, self._target = source, target
        self._delay_s, self._skip = delay_s, skip
        self._on_the_way: list[tuple[float, int, bytes]] = []
        self._number = 0

    @property
    def due_s(self) -> float:
        """When the next packet is due; never, if none is on its way."""
        return self._on_the_way[0][0] if self._on_the_way else inf

    def take(self) -> None:
        """Take the packets that are there."""
        with suppress(BlockingIOError):
            while True:
                packet = os.read(self.source, _PACKET_BYTES)
                if len(self._on_the_way) < _ON_THE_WAY:
                    delayed = self._skip is None or not packet.startswith(self._skip, _SENDER)
                    due_s = time.monotonic() + (self._delay_s if delayed else 0.0)
                    self._number += 1  # what is due together keeps its order
                    heappush(self._on_the_way, (due_s, self._number, packet))

    def hand_over(self) -> None:
        """Hand over the packets that are due."""
        while self.due_s <= time.monotonic():
            _, _, packet = heappop(self._on_the_way)
            # the interface is down, or full: the packet is lost
            with suppress(OSError):
                os.write(self._target, packet)


def main(arguments: Sequence[str]) -> None:
    """Run the link until this process is ended."""
    delay_s, skip, here, there = arguments
    one, other = _tap(here), _tap(there)
    ways = (
        _Direction(one, other, float(delay_s), bytes.fromhex(skip)),
        _Direction(other, one, float(delay_s), None),
    )
    print("ready", flush=True)  # noqa: T201 - to whoever started it
    while True:
        due_s = min(way.due_s for way in ways)
        wait_s = None if due_s == inf else max(0.0, due_s - time.monotonic())
        select.select([way.source for way in ways], [], [], wait_s)
        for way in ways:
            try:
                way.take()
            except OSError:
                time.sleep(_DOWN_S)  # the interface is not up yet, or down
            way.hand_over()


def _tap(name: str) -> int:
    tap = os.open(_TUN, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(tap, _TUNSETIFF, struct.pack("16sH", name.encode(), _IFF_TAP | _IFF_NO_PI))
    return tap


if __name__ == "__main__":
    main(sys.argv[1:])
