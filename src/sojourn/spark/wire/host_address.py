"""The address at which a relay connects to the host of its part, and its encryption."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from sojourn.errors import EngineError
from sojourn.spark.wire.handshake import HANDSHAKE_S, NAME, introduce_socket, peer_context

_CONNECT_S = 10.0
_CHUNK = 1 << 16
# A live host answers a close immediately, and a dead one never does.
_CLOSE_S = 5.0
_Ends: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAddress:
    """A Unix socket on this machine, or a TCP port for other machines."""

    path: str = ""
    """Of the Unix socket."""
    machine: str = ""
    """Of the TCP port; empty for a Unix socket."""
    port: int = 0
    secret: bytes = field(default=b"", repr=False)
    """The secret of the run, by which both ends of a TCP connection authenticate."""
    certificate: str = field(default="", repr=False)
    """The certificate of the host; empty if connections are not encrypted."""

    def connect(self) -> socket.socket:
        """Return a connection, authenticated and encrypted over TCP.

        Raise `OSError` if there is none, and `EngineError` if the host refuses it.
        """
        if not self.machine:
            host = socket.socket(socket.AF_UNIX)
            try:
                host.connect(self.path)
            except OSError:
                host.close()
                raise
            return host
        host = socket.create_connection((self.machine, self.port), timeout=_CONNECT_S)
        try:
            # otherwise records wait for acknowledgements of earlier ones (Nagle's algorithm)
            host.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.certificate:
                host = encrypted(host, self.certificate)
            introduce_socket(host, self.secret, "relay")
        except BaseException:
            host.close()
            raise
        return host


def encrypted(host: socket.socket, certificate: str) -> socket.socket:
    """Return a socket whose data is exchanged with *host* over TLS; it takes over *host*.

    TLS in Python is not safe for one thread that reads while another writes. So the connection
    belongs to a third thread, which forwards data between it and one end of a socket pair; the
    two threads use the other end, which is returned.

    All data sent arrives, even if the socket is closed immediately afterwards, and all that the
    host sent before it closed can be read; data in flight in the other direction is lost then.
    Raise `OSError` if there is no connection, and `EngineError` if the host does not have this
    *certificate*.
    """
    context = peer_context(certificate)
    ours, theirs = socket.socketpair()
    connected: Future[None] = Future()
    threading.Thread(
        target=_run,
        args=(_carry(host, theirs, context, connected), connected),
        name="encryption",
        daemon=True,
    ).start()
    try:
        connected.result()
    except ssl.SSLError as error:
        ours.close()
        raise EngineError(
            f"the peer does not have the certificate of this run: {error.reason or error}"
        ) from error
    except BaseException:
        ours.close()
        raise
    return ours


def _run(carry: Coroutine[Any, Any, None], connected: "Future[None]") -> None:
    try:
        asyncio.run(carry)
    except BaseException as error:  # noqa: BLE001 - raised where the connection is awaited
        if not connected.done():
            connected.set_exception(error)


async def _carry(
    host: socket.socket,
    theirs: socket.socket,
    context: ssl.SSLContext,
    connected: "Future[None]",
) -> None:
    """Forward data in both directions until our end is closed."""
    with host, theirs:
        outside = await asyncio.open_connection(
            sock=host,
            ssl=context,
            server_hostname=NAME,
            ssl_handshake_timeout=HANDSHAKE_S,
            ssl_shutdown_timeout=_CLOSE_S,
        )
        inside = await asyncio.open_unix_connection(sock=theirs)
        connected.set_result(None)
        inwards = asyncio.create_task(_inwards(outside, inside))
        await _copy(inside[0], outside[1])
        inwards.cancel()
        for _, writer in (outside, inside):
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()  # after its buffered data


async def _inwards(outside: _Ends, inside: _Ends) -> None:
    await _copy(outside[0], inside[1])
    with suppress(OSError):
        if not inside[1].is_closing():
            # after its buffered data; our end closes when it has read that
            inside[1].write_eof()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the end of *reader*; data for a closed *writer* is dropped."""
    with suppress(OSError):  # a broken connection is an ended one
        while some := await reader.read(_CHUNK):
            if not writer.is_closing():
                writer.write(some)
                with suppress(OSError):
                    await writer.drain()
