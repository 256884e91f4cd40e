"""Mutual authentication of a connection between machines, with the secret of the run.

A challenge-response handshake; the secret itself is never sent. Each end proves that it knows
the secret by an HMAC over two random numbers, one drawn by each end for this connection, so a
recorded handshake cannot be replayed. An unauthenticated client learns nothing, and is
disconnected after a timeout.

    host   -> client   greeting, host's number
    client -> host     purpose, client's number, HMAC("client", purpose, both numbers)
    host   -> client   HMAC("server", purpose, both numbers)
"""

import asyncio
import hmac
import socket
from collections.abc import Callable
from secrets import token_bytes
from typing import Literal, TypeAlias, get_args

from sojourn.errors import EngineError

__all__ = ["Purpose", "admit", "introduce", "introduce_socket"]

Purpose: TypeAlias = Literal["agent", "relay"]

_GREETING = b"sojourn1"
_NUMBER = _PROOF = 32
_PURPOSE = 8
# Long enough for a busy machine, short enough to drop silent clients.
_WITHIN_S = 10.0


def _proof(secret: bytes, who: str, purpose: bytes, drawn: bytes) -> bytes:
    return hmac.digest(secret, who.encode() + purpose + drawn, "sha256")


async def admit(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    secret: bytes,
    *,
    within_s: float = _WITHIN_S,
) -> Purpose | None:
    """Return the purpose of a peer, or None unless it knows the *secret* and a purpose of ours.

    The peer must complete the handshake within *within_s*.
    """
    ours = token_bytes(_NUMBER)
    writer.write(_GREETING + ours)
    try:
        async with asyncio.timeout(within_s):
            told = await reader.readexactly(_PURPOSE + _NUMBER + _PROOF)
    except (TimeoutError, OSError, asyncio.IncompleteReadError):
        return None
    purpose, drawn = told[:_PURPOSE], ours + told[_PURPOSE:-_PROOF]
    known = hmac.compare_digest(told[-_PROOF:], _proof(secret, "client", purpose, drawn))
    named = purpose.rstrip().decode(errors="replace")
    if not known:
        return None
    writer.write(_proof(secret, "server", purpose, drawn))
    # None for a client that knows the secret, but names another purpose
    return next((each for each in get_args(Purpose) if each == named), None)


def _answer(
    greeting: bytes, secret: bytes, purpose: Purpose
) -> tuple[bytes, Callable[[bytes], bool]]:
    """Return the client's answer to a greeting, and a check of the host's reply."""
    if not greeting.startswith(_GREETING):
        raise EngineError("the peer is not a host of this application")
    padded, ours = purpose.encode().ljust(_PURPOSE), token_bytes(_NUMBER)
    drawn = greeting[len(_GREETING) :] + ours
    expected = _proof(secret, "server", padded, drawn)
    answer = padded + ours + _proof(secret, "client", padded, drawn)
    return answer, lambda reply: hmac.compare_digest(reply, expected)


async def introduce(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    secret: bytes,
    purpose: Purpose,
) -> None:
    """Authenticate to a host. Raise `EngineError` unless it knows the *secret* too."""
    try:
        async with asyncio.timeout(_WITHIN_S):
            greeting = await reader.readexactly(len(_GREETING) + _NUMBER)
            answer, is_proof = _answer(greeting, secret, purpose)
            writer.write(answer)
            proved = is_proof(await reader.readexactly(_PROOF))
    except (TimeoutError, OSError, asyncio.IncompleteReadError) as error:
        raise EngineError("the host did not accept the secret of this run") from error
    if not proved:
        raise EngineError("the other end does not know the secret of this run")


def introduce_socket(host: socket.socket, secret: bytes, purpose: Purpose) -> None:
    """Authenticate as `introduce` does, on a blocking socket."""
    host.settimeout(_WITHIN_S)
    try:
        answer, is_proof = _answer(_received(host, len(_GREETING) + _NUMBER), secret, purpose)
        host.sendall(answer)
        proved = is_proof(_received(host, _PROOF))
    except OSError as error:
        raise EngineError("the host did not accept the secret of this run") from error
    if not proved:
        raise EngineError("the other end does not know the secret of this run")
    host.settimeout(None)


def _received(host: socket.socket, number: int) -> bytes:
    told = b""
    while len(told) < number:
        some = host.recv(number - len(told))
        if not some:
            raise ConnectionResetError
        told += some
    return told
