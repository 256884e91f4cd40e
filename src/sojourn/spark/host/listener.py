"""The listener of a host for other machines, and the heartbeats of those that it admits.

A client is unauthenticated until it has proved that it knows the secret. The number of such
clients is limited from the moment they connect, even during the TLS handshake.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Generic, TypeAlias, TypeVar

from sojourn.spark.wire.event_loop import report
from sojourn.spark.wire.handshake import HANDSHAKE_S, Purpose, admit

Sender = TypeVar("Sender", bound=Hashable)
Serve: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""Serves an authenticated connection until it ends."""

_MOST_STRANGERS = 64
# Seconds until the next attempt to accept, when too many files are open.
_FULL_S = 1.0
# The most that one check of heartbeats may add to the listening time; checks are a quarter
# second apart.
_MOST_S = 1.0
_CHUNK = 1 << 16


class Door:
    """Accepts connections at *end*, authenticates them, and serves each by its purpose.

    With a *context*, connections are encrypted.
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
        """Accept connections until cancelled."""
        with self._end:
            while True:
                try:
                    peer, _ = await asyncio.get_running_loop().sock_accept(self._end)
                except OSError:
                    await asyncio.sleep(_FULL_S)
                else:
                    self._came(peer)
                    await asyncio.sleep(0)  # a flood of clients must not block the event loop

    def _came(self, peer: socket.socket) -> None:
        self._strangers[asyncio.create_task(self._met(peer))] = None
        if len(self._strangers) > _MOST_STRANGERS:
            # The oldest: a genuine client would have authenticated by now.
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.cancel()

    async def _met(self, peer: socket.socket) -> None:
        """Authenticate a client, and serve it; a client that fails learns nothing."""
        task = asyncio.current_task()
        if task is None:
            return
        try:
            reader, writer = await self._connected(peer)
            purpose = await self._purpose(reader, writer)
        except (Exception, asyncio.CancelledError):  # noqa: BLE001 - it may send anything
            return  # no encryption, too slow, or the host ends
        finally:
            self._strangers.pop(task, None)
        if purpose is None:
            return
        self._inside.add(task)
        try:
            await self._serve[purpose](reader, writer)
        except Exception as error:  # noqa: BLE001 - this task is not awaited
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
                # Not `close`, which would wait for an unauthenticated client.
                writer.transport.abort()
        return purpose


class Heartbeats(Generic[Sender]):
    """The last heartbeat of each sender; one that is silent for *timeout_s* is lost.

    Machines may vanish without a message. Only time in which the host was listening counts: one
    that was suspended, or whose event loop was blocked, has received nothing, and then finds
    all heartbeats in its buffers.

    >>> heartbeats = Heartbeats[int](timeout_s=2.0)
    >>> heartbeats.begin(1)
    >>> [heartbeats.silent(now_s) for now_s in (10.0, 10.5, 600.0, 600.5, 601.0)]
    [[], [], [], [], [1]]
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._heard_s: dict[Sender, float] = {}
        self._looked_s: float | None = None
        self.listened_s = 0.0
        """How long the host was listening, as of the last check."""

    def begin(self, sender: Sender) -> None:
        """Watch a sender from now on."""
        self._heard_s[sender] = self.listened_s

    def heard(self, sender: Sender) -> None:
        """Record a sign of life of a sender, if it is watched."""
        if sender in self._heard_s:
            self._heard_s[sender] = self.listened_s

    def end(self, sender: Sender) -> None:
        """Stop watching a sender."""
        self._heard_s.pop(sender, None)

    def silent(self, now_s: float) -> list[Sender]:
        """Return the senders that have timed out; call this several times a second."""
        if self._looked_s is not None:
            self.listened_s += min(_MOST_S, now_s - self._looked_s)
        self._looked_s = now_s
        since_s = self.listened_s - self._timeout_s
        return [sender for sender, heard_s in self._heard_s.items() if heard_s < since_s]


async def received(reader: asyncio.StreamReader, within_s: float | None = None) -> bytes:
    """Return data; nothing if the connection is closed, has broken, or is silent *within_s*."""
    try:
        if within_s is None:
            return await reader.read(_CHUNK)
        async with asyncio.timeout(within_s):
            return await reader.read(_CHUNK)
    except OSError:  # includes the timeout
        return b""
