"""The connections of a part's relays, which send results and credit together.

A result that leaves alone costs a transfer to Spark and a request to Kafka. So once results
leave in close succession, they wait a moment for others, and so does credit. At low rates
nothing waits; at high rates this saves more time than it costs.
"""

import asyncio
from collections.abc import Mapping
from math import inf
from time import monotonic
from typing import TypeAlias

import msgspec

from sojourn.spark.host.desk.instructions import HandOver
from sojourn.spark.wire.event_loop import FrameConnection
from sojourn.spark.wire.frames import framed
from sojourn.spark.wire.record import Partition
from sojourn.spark.wire.relay import Ends, Failed, Grant, Results

GATHER_S = 0.004
"""Minimum time between two sends while results leave in close succession."""
# Results are in close succession if the last send but one was within this time.
_SUCCESSION_S = 3 * GATHER_S
# If fewer records wait, sending their end offsets takes longer than processing them.
_MANY = 50
# A replay from the log pauses while a relay has more bytes to read than this.
_MOST_UNSENT = 8 << 20


class FarWriter:
    """The host's end of a connection to a relay on another machine."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.write, self.is_closing, self.close = writer.write, writer.is_closing, writer.close
        self.abort = writer.transport.abort
        self.unsent_bytes = writer.transport.get_write_buffer_size


RelayWriter: TypeAlias = FrameConnection | FarWriter
"""The host's end of a connection to a relay, on this machine or another."""


class Relays:
    """The connections of relays, by the number of each."""

    def __init__(self) -> None:
        self._writers: dict[int, RelayWriter] = {}
        self._results: dict[int, Results] = {}
        self._credit: dict[int, int] = {}
        self._number = 0
        self._sent_s = (-inf, -inf)  # times of the last but one and the last send of results
        self._timer: asyncio.TimerHandle | None = None

    def came(self, writer: RelayWriter) -> int:
        """Add a relay that has just connected, and return its number."""
        self._number += 1
        self._writers[self._number] = writer
        return self._number

    def left(self, relay: int) -> None:
        """Close the connection of a relay, and drop the messages for it."""
        self._results.pop(relay, None)
        self._credit.pop(relay, None)
        if (writer := self._writers.pop(relay, None)) is not None:
            writer.close()

    @property
    def are_behind(self) -> bool:
        """Whether a relay has much unread data."""
        return any(each.unsent_bytes() > _MOST_UNSENT for each in self._writers.values())

    def drop(self, relay: int, reason: str) -> None:
        """Refuse a lost relay, and abort its connection, whose unsent data may be large.

        If the refusal does not arrive, the relay fails at the end of its connection.
        """
        self._results.pop(relay, None)
        self._credit.pop(relay, None)
        self._write(relay, Failed(reason))
        if (writer := self._writers.pop(relay, None)) is not None:
            writer.abort()

    def hand_over(self, over: HandOver) -> None:
        """Add a result, which leaves soon after the next `send`."""
        results = self._results.get(over.relay)
        if results is None:
            results = self._results[over.relay] = Results([], [])
        leaving = over.leaving
        if leaving.letter is not None:
            results.letters.append((leaving.letter, leaving.root, over.floor))
        if leaving.record is not None:
            results.records.append((leaving.record, leaving.root, over.floor))

    def grant(self, relay: int, number: int) -> None:
        """Add credit for *number* rows, which a relay gets soon after the next `send`."""
        self._credit[relay] = self._credit.get(relay, 0) + number

    def send(self) -> None:
        """Send the results and credit gathered: now, or `GATHER_S` after the last send."""
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
        """Send relays the end offsets of partitions with many records not *taken* yet.

        Then relays get these records from Spark together, and not one by one.
        """
        known = ((place, ends.get(place[0], {}).get(place[1], 0)) for place in taken)
        waiting = [(place, end) for place, end in known if end - taken[place] > _MANY]
        if waiting:
            for relay in self._writers:
                self._write(relay, Ends(waiting))

    def say(self, relay: int, message: msgspec.Struct) -> None:
        """Send a message to a relay, after everything that has gathered."""
        self._send_now()
        self._write(relay, message)

    def say_to_all(self, message: msgspec.Struct) -> None:
        """Send a message to all relays, after everything that has gathered."""
        for relay in self._writers:
            self.say(relay, message)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for relay in list(self._writers):
            self.left(relay)

    def _send_now(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._results:  # credit alone does not count: it often precedes the first result
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
