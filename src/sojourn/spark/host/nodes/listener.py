"""Where a host listens for other machines: who knows the secret comes in, others have to leave.

A stranger is whoever has connected and not yet shown that it knows the secret. From the first
moment there are only so many of them, also while they are still agreeing on encryption.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from sojourn.spark.wire.authentication import Purpose, admit
from sojourn.spark.wire.background import report
from sojourn.spark.wire.encryption import HANDSHAKE_S

__all__ = ["Door", "Serve"]

Serve: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""What is done with a connection, until it ends."""

_MOST_STRANGERS = 64
# With too many files open, nobody can come in for a moment.
_FULL_S = 1.0


class Door:
    """Listens at *end*, and lets each who knows the *secret* be served as it came for.

    With a *context*, all that is said is encrypted.
    """

    def __init__(
        self,
        end: socket.socket,
        *,
        secret: bytes,
        serve: Mapping[Purpose, Serve],
        context: ssl.SSLContext | None = None,
    ) -> None:
        end.setblocking(False)
        self._end, self._secret, self._serve, self._context = end, secret, serve, context
        self._strangers: dict[asyncio.Task[None], None] = {}
        self._inside: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Let others in, until this is cancelled."""
        with self._end:
            while True:
                try:
                    peer, _ = await asyncio.get_running_loop().sock_accept(self._end)
                except OSError:
                    await asyncio.sleep(_FULL_S)
                else:
                    self._came(peer)
                    await asyncio.sleep(0)  # however many come, others have their turn

    def _came(self, peer: socket.socket) -> None:
        self._strangers[asyncio.create_task(self._met(peer))] = None
        if len(self._strangers) > _MOST_STRANGERS:
            oldest = next(iter(self._strangers))  # who came to serve has shown it by now
            del self._strangers[oldest]
            oldest.cancel()

    async def _met(self, peer: socket.socket) -> None:
        """Serve who knows the secret; others learn nothing."""
        task = asyncio.current_task()
        if task is None:
            return
        try:
            reader, writer = await self._connected(peer)
            purpose = await self._purpose(reader, writer)
        except (Exception, asyncio.CancelledError):  # noqa: BLE001 - of a stranger, anything
            return  # it has no encryption, or was too slow; or the host ends
        finally:
            self._strangers.pop(task, None)
        if purpose is None:
            return
        self._inside.add(task)
        try:
            await self._serve[purpose](reader, writer)
        except Exception as error:  # noqa: BLE001 - nobody else would see it
            report(error)
        finally:
            self._inside.discard(task)

    async def _connected(
        self, peer: socket.socket
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        within_s = None if self._context is None else HANDSHAKE_S
        try:
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol, peer, ssl=self._context, ssl_handshake_timeout=within_s
            )
        except BaseException:
            peer.close()
            raise
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop)

    async def _purpose(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> Purpose | None:
        purpose = None
        try:
            purpose = await admit(reader, writer, self._secret)
        finally:
            if purpose is None:
                # at once: to close in order would be to wait for what it says
                writer.transport.abort()
        return purpose
