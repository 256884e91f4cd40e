"""A TCP proxy with a delay, for systems without network namespaces."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Self

from sojourn.errors import BadInput

_CHUNK_BYTES = 65536
# Chunks in flight per direction of a connection. Beyond that the proxy stops reading, and TCP
# flow control slows the sender down.
_ON_THE_WAY = 1024


class DelayForwarder:
    """A proxy that listens on *listen* and forwards every connection to *target*.

    Each chunk arrives *delay_s* after it was sent, in both directions. Chunks keep their order,
    and the delay does not limit the throughput. Half-closed connections are supported: the end
    of one direction is delayed like data. Port 0 in *listen* selects a free port.

        async with DelayForwarder(("127.0.0.1", 9092), delay_s=0.002) as forwarder:
            host, port = forwarder.address
    """

    def __init__(
        self,
        target: tuple[str, int],
        *,
        delay_s: float,
        listen: tuple[str, int] = ("127.0.0.1", 0),
    ) -> None:
        if not 0 <= delay_s <= 60:  # also false for NaN
            raise BadInput(f"a delay of {delay_s} s is not possible; write 0 to 60 seconds")
        self._target, self._delay_s, self._listen = target, delay_s, listen
        self._server: asyncio.Server | None = None
        self._passing: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> tuple[str, int]:
        """The host and port that clients connect to."""
        if self._server is None:
            raise BadInput("the forwarder does not listen; enter it first")
        host, port = self._server.sockets[0].getsockname()[:2]
        return host, port

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, *self._listen)
        return self

    async def __aexit__(self, *_exception: object) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._passing:
            task.cancel()
        await asyncio.gather(*self._passing, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a server accepts in a task
        self._passing.add(task)
        try:
            await self._pass_on(reader, writer)
        except asyncio.CancelledError:
            pass  # by __aexit__; asyncio would log it as an error
        finally:
            self._passing.discard(task)

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Forward until both directions have ended, or one fails."""
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()  # the target refuses connections, so reset this one
            return
        try:
            await _all_or_none(self._carry(reader, far_writer), self._carry(far_reader, writer))
        finally:
            for each in (writer, far_writer):
                each.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one direction."""
        on_the_way = asyncio.Queue[tuple[float, bytes]](_ON_THE_WAY)
        # reading and writing are separate, so that many chunks can be in flight
        await _all_or_none(self._take(reader, on_the_way), _hand_over(on_the_way, writer))

    async def _take(
        self, reader: asyncio.StreamReader, on_the_way: asyncio.Queue[tuple[float, bytes]]
    ) -> None:
        now = asyncio.get_running_loop().time
        chunk = b"first"
        while chunk:
            chunk = await reader.read(_CHUNK_BYTES)
            await on_the_way.put((now() + self._delay_s, chunk))


async def _hand_over(
    on_the_way: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter
) -> None:
    """Write each chunk when it is due; an empty chunk is the end of the stream."""
    now = asyncio.get_running_loop().time
    while True:
        due_s, chunk = await on_the_way.get()
        await asyncio.sleep(due_s - now())
        if not chunk:
            break
        writer.write(chunk)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
    await writer.drain()


async def _all_or_none(*parts: Coroutine[Any, Any, None]) -> None:
    """Run *parts* concurrently; if one fails, cancel the others."""
    with suppress(BaseExceptionGroup):
        async with asyncio.TaskGroup() as group:
            for part in parts:
                group.create_task(part)
