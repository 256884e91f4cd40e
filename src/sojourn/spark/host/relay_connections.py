"""How relays come to a host: those of Spark's tasks on this machine, and on others."""

import asyncio
from collections.abc import Iterable
from typing import Protocol

import msgspec

from sojourn.spark.host.heartbeats import Heartbeats
from sojourn.spark.host.relays import Relays
from sojourn.spark.wire.background import report
from sojourn.spark.wire.frame_connection import FrameConnection
from sojourn.spark.wire.frames import Frames
from sojourn.spark.wire.relay import FromRelay, with_rows_together

__all__ = ["RelayConnections", "RelayWatcher"]

_CHUNK = 1 << 16
_decode = msgspec.msgpack.Decoder(FromRelay).decode


class RelayWatcher(Protocol):
    """Who is told what relays do, by their number."""

    def relay_said(self, relay: int, message: FromRelay) -> None:
        """Hear what a relay says."""

    def relay_left(self, relay: int) -> None:
        """Take note that a relay is gone."""


class RelayConnections:
    """Lets *watcher* hear *relays*, and takes note of those that come and go.

    Whatever comes from one is a *heartbeat*.
    """

    def __init__(
        self, relays: Relays, watcher: RelayWatcher, heartbeats: Heartbeats[int]
    ) -> None:
        self._relays, self._watcher, self._heartbeats = relays, watcher, heartbeats

    def near(self) -> FrameConnection:
        """Return the connection of a relay on this machine, which comes now."""
        connection = FrameConnection(lambda bodies: self._heard(relay, bodies))
        relay = self._relays.came(connection)
        connection.closed.add_done_callback(lambda _: self._left(relay))
        return connection

    async def far(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a relay on another machine, until it leaves."""
        relay, frames = self._relays.came(_FarWriter(writer)), Frames()
        try:
            while some := await _read(reader):
                self._heartbeats.heard(relay)  # a large message may take long to be complete
                self._heard(relay, frames.fed(some))
        except asyncio.CancelledError:
            pass
        finally:  # else it would wait for ever
            self._left(relay)

    def _heard(self, relay: int, bodies: Iterable[bytes]) -> None:
        self._heartbeats.heard(relay)
        try:
            messages = list(with_rows_together(map(_decode, bodies)))
        except msgspec.MsgspecError:
            self._relays.left(relay)  # it is no relay of ours
            return
        try:
            for message in messages:
                self._watcher.relay_said(relay, message)
        except Exception as error:  # noqa: BLE001 - before it is decided what its end means
            report(error)
            self._relays.left(relay)

    def _left(self, relay: int) -> None:
        self._heartbeats.end(relay)
        self._relays.left(relay)
        self._watcher.relay_left(relay)


class _FarWriter:
    """Our end of a connection to a relay on another machine."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.write, self.is_closing, self.close = writer.write, writer.is_closing, writer.close
        self.abort = writer.transport.abort
        self.unsent_bytes = writer.transport.get_write_buffer_size


async def _read(reader: asyncio.StreamReader) -> bytes:
    """Return what a relay says; nothing if its connection is over, however it broke."""
    try:
        return await reader.read(_CHUNK)
    except OSError:
        return b""
