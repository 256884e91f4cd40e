"""The relays of a part: their connections, and what they are told.

A result that leaves alone costs a transfer to Spark and a request to Kafka. So once results
leave in close succession they wait a moment for others, and so does credit. At low rates
nothing waits, and at high rates the time that is saved is worth more.
"""

import asyncio
from collections.abc import Mapping
from math import inf
from time import monotonic
from typing import Protocol

import msgspec

from sojourn.spark.host.desk.instructions import HandOver
from sojourn.spark.wire.frames import framed
from sojourn.spark.wire.record import Partition
from sojourn.spark.wire.relay import DeadLetter, Ends, Failed, Grant, Results

__all__ = ["GATHER_S", "RelayWriter", "Relays"]

GATHER_S = 0.004
"""What leaves within so much time leaves together."""
# Two that left within so much time are a succession: more will follow.
_SUCCESSION_S = 3 * GATHER_S
# If fewer records wait, telling relays of them takes longer than they do.
_MANY = 50
# What leaves again from a long log waits there until relays have read the rest of this.
_MOST_UNSENT = 8 << 20


class RelayWriter(Protocol):
    """Our end of a connection to a relay."""

    def write(self, data: bytes, /) -> None:
        """Send something."""
        ...

    def is_closing(self) -> bool:
        """Tell whether nothing is sent any more."""
        ...

    def close(self) -> None:
        """End it, once all is sent."""
        ...

    def abort(self) -> None:
        """End it now."""
        ...

    def unsent_bytes(self) -> int:
        """Return how much the relay has not taken yet."""
        ...


class Relays:
    """The connections of relays, by the number of each."""

    def __init__(self) -> None:
        self._writers: dict[int, RelayWriter] = {}
        self._results: dict[int, Results] = {}
        self._credit: dict[int, int] = {}
        self._number = 0
        self._sent_s = (-inf, -inf)  # the last but one, and the last
        self._timer: asyncio.TimerHandle | None = None

    def came(self, writer: RelayWriter) -> int:
        """Return the number of a relay that has just connected."""
        self._number += 1
        self._writers[self._number] = writer
        return self._number

    def left(self, relay: int) -> None:
        """Close a connection, and forget what it was to be told."""
        self._results.pop(relay, None)
        self._credit.pop(relay, None)
        if (writer := self._writers.pop(relay, None)) is not None:
            writer.close()

    @property
    def are_behind(self) -> bool:
        """Whether one of them has much to read."""
        return any(each.unsent_bytes() > _MOST_UNSENT for each in self._writers.values())

    def drop(self, relay: int, reason: str) -> None:
        """Refuse a relay that is lost, if it hears that; what it was to be told may be much.

        It fails at the end of its connection as well, whenever it notices that.
        """
        self._results.pop(relay, None)
        self._credit.pop(relay, None)
        self._write(relay, Failed(reason))
        if (writer := self._writers.pop(relay, None)) is not None:
            writer.abort()

    def hand_over(self, over: HandOver) -> None:
        """Let a result leave, soon after the next `send`."""
        results = self._results.get(over.relay)
        if results is None:
            results = self._results[over.relay] = Results([], [])
        root, result = over.leaving.root, over.leaving.result
        if isinstance(result, DeadLetter):
            results.letters.append((result, root, over.floor))
        else:
            results.records.append((result, root, over.floor))

    def grant(self, relay: int, number: int) -> None:
        """Let a relay pass on *number* more, soon after the next `send`."""
        self._credit[relay] = self._credit.get(relay, 0) + number

    def send(self) -> None:
        """Tell relays what has gathered: now, or a moment after what was told before."""
        if self._timer is not None or not (self._results or self._credit):
            return
        before_s, last_s = self._sent_s
        now_s = monotonic()
        wait_s = last_s + GATHER_S - now_s
        if wait_s <= 0 or before_s + _SUCCESSION_S < now_s:
            self._send_now()
        else:
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._send_now)

    def tell_ends(
        self, ends: Mapping[str, Mapping[int, int]], taken: Mapping[Partition, int]
    ) -> None:
        """Tell relays where partitions end of which many records were not *taken* yet.

        Then Spark lets their records come to relays together.
        """
        known = ((place, ends.get(place[0], {}).get(place[1], 0)) for place in taken)
        waiting = [(place, end) for place, end in known if end - taken[place] > _MANY]
        if waiting:
            for relay in self._writers:
                self._write(relay, Ends(waiting))

    def say(self, relay: int, message: msgspec.Struct) -> None:
        """Tell a relay something, after all that was to be told before."""
        self._send_now()
        self._write(relay, message)

    def say_to_all(self, message: msgspec.Struct) -> None:
        """Tell all relays something, after all that was to be told before."""
        for relay in self._writers:
            self.say(relay, message)

    def close(self) -> None:
        """Close all connections."""
        if self._timer is not None:
            self._timer.cancel()
        for relay in list(self._writers):
            self.left(relay)

    def _send_now(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._results:  # credit is cheap, and comes a moment before the first result
            self._sent_s = self._sent_s[1], monotonic()
        for relay, number in self._credit.items():
            self._write(relay, Grant(number))
        for relay, results in self._results.items():
            self._write(relay, results)
        self._credit.clear()
        self._results.clear()

    def _write(self, relay: int, message: msgspec.Struct) -> None:
        if (writer := self._writers.get(relay)) is not None and not writer.is_closing():
            writer.write(framed(message))
