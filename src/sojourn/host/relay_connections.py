"""How relays come to a host: those of Spark's tasks on this machine, and on others."""

import asyncio
from collections.abc import Iterable
from typing import Protocol

import msgspec

from sojourn.errors import SojournError
from sojourn.host.batch.relay_messages import FromRelay, with_rows_together
from sojourn.host.process.frame_connection import FrameConnection
from sojourn.host.process.messages import Frames
from sojourn.host.relays import Relays

__all__ = ["RelayConnections", "RelayWatcher"]

_CHUNK = 1 << 16
_decode = msgspec.msgpack.Decoder(FromRelay).decode


class RelayWatcher(Protocol):
    """Who is told what relays do, by their number."""

    def relay_said(self, relay: int, message: FromRelay) -> None:
        """Hear what a relay says."""

    def relay_left(self, relay: int) -> None:
        """Take note that a relay is gone."""

    def broken(self, reason: str) -> None:
        """Take note of what makes it impossible to go on."""


class RelayConnections:
    """Lets *watcher* hear *relays*, and takes note of those that come and go."""

    def __init__(self, relays: Relays, watcher: RelayWatcher) -> None:
        self._relays, self._watcher = relays, watcher

    def near(self) -> FrameConnection:
        """Return the connection of a relay on this machine, which comes now."""
        connection = FrameConnection(lambda bodies: self._heard(relay, bodies))
        relay = self._relays.came(connection)
        connection.closed.add_done_callback(lambda _: self._left(relay))
        return connection

    async def far(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a relay on another machine, until it leaves."""
        relay, frames = self._relays.came(writer), Frames()
        try:
            while some := await _read(reader):
                self._heard(relay, frames.fed(some))
        except asyncio.CancelledError:
            pass
        finally:  # else it would wait for ever
            self._left(relay)

    def _heard(self, relay: int, bodies: Iterable[bytes]) -> None:
        try:
            for message in with_rows_together(map(_decode, bodies)):
                self._watcher.relay_said(relay, message)
        except (SojournError, OSError) as error:  # its files cannot be read, or written
            self._watcher.broken(str(error))
            self._relays.left(relay)

    def _left(self, relay: int) -> None:
        self._relays.left(relay)
        self._watcher.relay_left(relay)


async def _read(reader: asyncio.StreamReader) -> bytes:
    """Return what a relay says; nothing if its connection is over, however it broke."""
    try:
        return await reader.read(_CHUNK)
    except OSError:
        return b""
