"""Connections of relays to a host: from Spark tasks on this machine, and on others."""

import asyncio
from collections.abc import Iterable
from typing import Protocol

import msgspec

from sojourn.spark.host.heartbeats import Heartbeats
from sojourn.spark.host.relays import Relays
from sojourn.spark.wire.event_loop import FrameConnection, report
from sojourn.spark.wire.frames import Frames
from sojourn.spark.wire.relay import FromRelay, with_rows_together

__all__ = ["RelayConnections", "RelayWatcher"]

_CHUNK = 1 << 16
_decode = msgspec.msgpack.Decoder(FromRelay).decode


class RelayWatcher(Protocol):
    """Receives the messages of relays, and their ends."""

    def relay_said(self, relay: int, message: FromRelay) -> None:
        """Handle a message of a relay."""

    def relay_left(self, relay: int) -> None:
        """Handle the end of a relay."""


class RelayConnections:
    """Accepts *relays*, and passes their messages to *watcher*.

    Any data from a relay counts as a heartbeat.
    """

    def __init__(
        self, relays: Relays, watcher: RelayWatcher, heartbeats: Heartbeats[int]
    ) -> None:
        self._relays, self._watcher, self._heartbeats = relays, watcher, heartbeats

    def near(self) -> FrameConnection:
        """Return the connection of a new relay on this machine."""
        connection = FrameConnection(lambda bodies: self._heard(relay, bodies))
        relay = self._relays.came(connection)
        connection.closed.add_done_callback(lambda _: self._left(relay))
        return connection

    async def far(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a relay on another machine until it disconnects."""
        relay, frames = self._relays.came(_FarWriter(writer)), Frames()
        try:
            while some := await _read(reader):
                self._heartbeats.heard(relay)  # before a large message is complete
                self._heard(relay, frames.fed(some))
        except asyncio.CancelledError:
            pass
        finally:  # else the host would wait for it forever
            self._left(relay)

    def _heard(self, relay: int, bodies: Iterable[bytes]) -> None:
        self._heartbeats.heard(relay)
        try:
            messages = list(with_rows_together(map(_decode, bodies)))
        except msgspec.MsgspecError:
            self._relays.left(relay)  # the peer does not speak the protocol
            return
        try:
            for message in messages:
                self._watcher.relay_said(relay, message)
        except Exception as error:  # noqa: BLE001 - reported before the relay's end is decided
            report(error)
            self._relays.left(relay)

    def _left(self, relay: int) -> None:
        self._heartbeats.end(relay)
        self._relays.left(relay)
        self._watcher.relay_left(relay)


class _FarWriter:
    """The host's end of a connection to a relay on another machine."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.write, self.is_closing, self.close = writer.write, writer.is_closing, writer.close
        self.abort = writer.transport.abort
        self.unsent_bytes = writer.transport.get_write_buffer_size


async def _read(reader: asyncio.StreamReader) -> bytes:
    """Return data from a relay; nothing if its connection was closed or has broken."""
    try:
        return await reader.read(_CHUNK)
    except OSError:
        return b""
