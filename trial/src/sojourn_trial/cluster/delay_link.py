"""A network link with a delay, for kernels without `netem`.

A program: `python delay_link.py DELAY_S SKIP HERE THERE` creates two TAP interfaces with the
names HERE and THERE, prints a line when they exist, and forwards each packet from one to the
other after the delay. The interfaces exist as long as the program runs. A packet that enters
HERE from a MAC address with the prefix SKIP (hexadecimal) is not delayed, because the link of
the sender has already delayed it.
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

_TUN = "/dev/net/tun"
_TUNSETIFF, _IFF_TAP, _IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
_PACKET_BYTES = 65536
# Packets in flight per direction. As in a real device, more are dropped; TCP resends them.
_ON_THE_WAY = 10_000
# Offset of the source address in an Ethernet frame.
_SENDER = 6
_DOWN_S = 0.01


class _Direction:
    """The packets from the interface *source* to *target*.

    Packets whose source address begins with *skip* were delayed by another link already.
    """

    def __init__(self, source: int, target: int, delay_s: float, skip: bytes | None) -> None:
        self.source, self._target = source, target
        self._delay_s, self._skip = delay_s, skip
        self._on_the_way: list[tuple[float, int, bytes]] = []
        self._number = 0

    @property
    def due_s(self) -> float:
        """The time when the next packet is due; infinite if none is in flight."""
        return self._on_the_way[0][0] if self._on_the_way else inf

    def take(self) -> None:
        """Read all packets that are available."""
        with suppress(BlockingIOError):
            while True:
                packet = os.read(self.source, _PACKET_BYTES)
                if len(self._on_the_way) < _ON_THE_WAY:
                    delayed = self._skip is None or not packet.startswith(self._skip, _SENDER)
                    due_s = time.monotonic() + (self._delay_s if delayed else 0.0)
                    self._number += 1  # packets due at the same time keep their order
                    heappush(self._on_the_way, (due_s, self._number, packet))

    def hand_over(self) -> None:
        """Write the packets that are due."""
        while self.due_s <= time.monotonic():
            _, _, packet = heappop(self._on_the_way)
            # the interface is down, or its queue is full: drop the packet
            with suppress(OSError):
                os.write(self._target, packet)


def main(arguments: Sequence[str]) -> None:
    """Run the link until the process is terminated."""
    delay_s, skip, here, there = arguments
    one, other = _tap(here), _tap(there)
    ways = (
        _Direction(one, other, float(delay_s), bytes.fromhex(skip)),
        _Direction(other, one, float(delay_s), None),
    )
    print("ready", flush=True)  # noqa: T201 - read by the process that started it
    while True:
        due_s = min(way.due_s for way in ways)
        wait_s = None if due_s == inf else max(0.0, due_s - time.monotonic())
        select.select([way.source for way in ways], [], [], wait_s)
        for way in ways:
            try:
                way.take()
            except OSError:
                time.sleep(_DOWN_S)  # the interface is down: do not spin
            way.hand_over()


def _tap(name: str) -> int:
    tap = os.open(_TUN, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(tap, _TUNSETIFF, struct.pack("16sH", name.encode(), _IFF_TAP | _IFF_NO_PI))
    return tap


if __name__ == "__main__":
    main(sys.argv[1:])
