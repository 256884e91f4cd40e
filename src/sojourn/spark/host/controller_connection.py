"""The connection of a host to its controller."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from sojourn.spark.host.listener import received
from sojourn.spark.wire.controller import Bye, FromController
from sojourn.spark.wire.frames import Frames, framed

# Beyond this many unread bytes the controller is behind, and gets no reports.
_MOST_UNREAD_BYTES = 1 << 20
# The limit for a controller to read the last messages and close its end.
_CLOSES_WITHIN_S = 5.0
_CHUNK = 1 << 16

_from_controller = msgspec.msgpack.Decoder(FromController).decode


class ControllerConnection:
    """Sends messages to the controller, and receives its commands."""

    def __init__(self) -> None:
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def open(self, path: Path) -> None:
        self._streams = await asyncio.open_unix_connection(path)

    @property
    def is_behind(self) -> bool:
        """Whether the controller has much unread data, or is not connected."""
        if self._streams is None:
            return True
        unread = self._streams[1].transport.get_write_buffer_size()
        return unread > _MOST_UNREAD_BYTES

    def tell(self, message: msgspec.Struct) -> None:
        """Send a message, if the connection is open."""
        if self._streams is not None and not self._streams[1].is_closing():
            self._streams[1].write(framed(message))

    async def obeyed(self, told: Callable[[FromController], None]) -> bool:
        """Pass messages to *told* until the connection ends; return whether by `Bye`."""
        if self._streams is None:
            return False
        reader, frames = self._streams[0], Frames()
        while some := await received(reader):
            for body in frames.fed(some):
                message = _from_controller(body)
                if isinstance(message, Bye):
                    return True
                told(message)
        return False

    async def close(self) -> None:
        """Close the connection once the controller has read everything.

        It may be sending a command now. At a connection that is closed, that fails, and the
        controller would drop messages that it has not read: why the host ends, for instance.
        """
        if self._streams is None:
            return
        reader, writer = self._streams
        with suppress(OSError):  # includes the timeout
            async with asyncio.timeout(_CLOSES_WITHIN_S):
                writer.write_eof()
                while await reader.read(_CHUNK):
                    pass
        writer.close()
