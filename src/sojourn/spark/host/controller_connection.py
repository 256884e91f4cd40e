"""The connection of a host to its controller."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec

from sojourn.spark.wire.controller import Bye, FromController
from sojourn.spark.wire.frames import Frames, framed

__all__ = ["ControllerConnection"]

_CHUNK = 1 << 16
# A controller that has not read so much is not going to: reports wait, and nothing else.
_MOST_UNREAD_BYTES = 1 << 20

_from_controller = msgspec.msgpack.Decoder(FromController).decode


class ControllerConnection:
    """What a host says to its controller, and is told by it."""

    def __init__(self) -> None:
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def open(self, path: Path) -> None:
        """Connect."""
        self._streams = await asyncio.open_unix_connection(path)

    @property
    def is_behind(self) -> bool:
        """Whether the controller does not read what it is told, or is not there."""
        if self._streams is None:
            return True
        unread = self._streams[1].transport.get_write_buffer_size()
        return unread > _MOST_UNREAD_BYTES

    def tell(self, message: msgspec.Struct) -> None:
        """Say something, if somebody may still hear it."""
        if self._streams is not None and not self._streams[1].is_closing():
            self._streams[1].write(framed(message))

    async def obeyed(self, told: Callable[[FromController], None]) -> bool:
        """Let *told* do what is said until the end; return whether it took its leave."""
        if self._streams is None:
            return False
        reader, frames = self._streams[0], Frames()
        while some := await _read(reader):
            for body in frames.fed(some):
                message = _from_controller(body)
                if isinstance(message, Bye):
                    return True
                told(message)
        return False

    def close(self) -> None:
        """Hang up."""
        if self._streams is not None:
            self._streams[1].close()


async def _read(reader: asyncio.StreamReader) -> bytes:
    """Return what a controller says; nothing if it was killed, and had not read all."""
    try:
        return await reader.read(_CHUNK)
    except ConnectionError:
        return b""
