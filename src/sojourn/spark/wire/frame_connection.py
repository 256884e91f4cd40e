"""A connection between processes of one machine, without an asyncio task that reads it."""

import asyncio
from collections.abc import Callable
from typing import cast

from sojourn.spark.wire.background import report
from sojourn.spark.wire.frames import Frames

__all__ = ["FrameConnection"]

_CHUNK = 1 << 16


class FrameConnection(asyncio.BufferedProtocol):
    """Calls *heard* with all frames that arrived together, until the connection is *closed*.

    It is faster than an asyncio stream, which wakes up a task in another turn of the event loop
    and may allocate a new buffer for each read.
    """

    def __init__(self, heard: Callable[[list[bytes]], None]) -> None:
        self._heard, self._frames = heard, Frames()
        self._buffer = memoryview(bytearray(_CHUNK))
        self._transport: asyncio.Transport | None = None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def write(self, frame: bytes) -> None:
        """Send a frame, if the connection is open."""
        if self._transport is not None:
            self._transport.write(frame)

    def is_closing(self) -> bool:
        """Return whether the connection is closed, closing or not open yet."""
        return self._transport is None or self._transport.is_closing()

    def close(self) -> None:
        """Close the connection once all buffered data is sent."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close the connection immediately, and drop buffered data."""
        if self._transport is not None:
            self._transport.abort()

    def unsent_bytes(self) -> int:
        """Return the size of the buffered data."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    # -- callbacks of the event loop --------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for received data, which is used again for each read."""
        del sizehint
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Pass on the frames that are complete."""
        if bodies := self._frames.fed(self._buffer[:nbytes]):
            try:
                self._heard(bodies)
            except Exception as error:  # noqa: BLE001 - asyncio would only close the connection
                report(error)
                self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Resolve *closed*, whatever the reason."""
        del exc
        if not self.closed.done():
            self.closed.set_result(None)
