"""A connection of a host to a process of the same machine, without a task that waits for it."""

import asyncio
from collections.abc import Callable
from typing import cast

from sojourn.spark.wire.background import report
from sojourn.spark.wire.frames import Frames

__all__ = ["FrameConnection"]

_CHUNK = 1 << 16


class FrameConnection(asyncio.BufferedProtocol):
    """Calls *heard* with the frames that came together, until the connection is *closed*.

    A stream would wake up a task for them, in another turn of the event loop, and may ask the
    system for new memory each time that something comes.
    """

    def __init__(self, heard: Callable[[list[bytes]], None]) -> None:
        self._heard, self._frames = heard, Frames()
        self._buffer = memoryview(bytearray(_CHUNK))
        self._transport: asyncio.Transport | None = None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def write(self, frame: bytes) -> None:
        """Send a frame, if the connection is made."""
        if self._transport is not None:
            self._transport.write(frame)

    def is_closing(self) -> bool:
        """Tell whether nothing is sent any more."""
        return self._transport is None or self._transport.is_closing()

    def close(self) -> None:
        """End the connection, once all is sent."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """End the connection at once, whatever was not sent."""
        if self._transport is not None:
            self._transport.abort()

    def unsent_bytes(self) -> int:
        """Return how much the other end has not taken yet."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    # -- what the event loop calls ----------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take note of where to send."""
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where to put what comes."""
        del sizehint
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Let what is complete be heard."""
        if bodies := self._frames.fed(self._buffer[:nbytes]):
            try:
                self._heard(bodies)
            except Exception as error:  # noqa: BLE001 - asyncio would only close the connection
                report(error)
                self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Take note of the end, whatever broke."""
        del exc
        if not self.closed.done():
            self.closed.set_result(None)
