"""Where a relay reaches the host of its part: on this machine, or from another one."""

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
from sojourn.spark.wire.authentication import introduce_socket
from sojourn.spark.wire.encryption import HANDSHAKE_S, NAME, peer_context

__all__ = ["HostAddress", "encrypted"]

_CONNECT_S = 10.0
_CHUNK = 1 << 16
# A host answers a close at once, and one that is gone never does.
_CLOSE_S = 5.0
_Ends: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAddress:
    """A Unix socket at *path*; or, for other machines, a *port* of a *machine*.

    There a relay has to show that it knows the *secret* of the run; with a *certificate*, all
    that is said is encrypted, to a host that has it.
    """

    path: str = ""
    machine: str = ""
    port: int = 0
    secret: bytes = field(default=b"", repr=False)
    certificate: str = field(default="", repr=False)

    def connect(self) -> socket.socket:
        """Return a connection. Raise `OSError`, or `EngineError` if the host refuses it."""
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
            # records would wait for acknowledgements of those before
            host.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.certificate:
                host = encrypted(host, self.certificate)
            introduce_socket(host, self.secret, "relay")
        except BaseException:
            host.close()
            raise
        return host


def encrypted(host: socket.socket, certificate: str) -> socket.socket:
    """Return a socket that says to *host*, and hears from it, what is encrypted on the way.

    TLS in Python is not safe for one thread that reads while another writes. So the connection
    belongs to a third thread, which holds one end of a pair of sockets; the two use the other
    end.

    It takes over *host*. All that was sent arrives, even if the socket is closed at once, and
    all that the host said before it closed can be read; not so if the other end still speaks
    then. Raise `OSError` if there is no connection, and `EngineError` if the host does not have
    this *certificate*.
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
    except BaseException as error:  # noqa: BLE001 - who waits for the connection raises it
        if not connected.done():
            connected.set_exception(error)


async def _carry(
    host: socket.socket,
    theirs: socket.socket,
    context: ssl.SSLContext,
    connected: "Future[None]",
) -> None:
    """Carry both ways until our side has closed: what the host says no more is read then."""
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
                await writer.wait_closed()  # after what it holds


async def _inwards(outside: _Ends, inside: _Ends) -> None:
    await _copy(outside[0], inside[1])
    with suppress(OSError):
        if not inside[1].is_closing():
            inside[1].write_eof()  # after what it holds; our side closes when it has read that


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on what comes, until its end; what nobody takes any more is dropped."""
    with suppress(OSError):  # a connection that breaks has ended
        while some := await reader.read(_CHUNK):
            if not writer.is_closing():
                writer.write(some)
                with suppress(OSError):
                    await writer.drain()
