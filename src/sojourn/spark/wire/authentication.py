"""Both ends of a connection between machines show that they know the secret of the run.

Neither sends the secret: each proves that it knows it by a keyed hash over two numbers that
were drawn for this connection, so what was overheard is of no use for another one. A stranger
learns nothing, and is sent away after a moment.
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
# Long enough for a busy machine, and short for somebody who says nothing.
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
    """Return what a peer that shows *within_s* that it knows the *secret* came for, or None."""
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
    return next((each for each in get_args(Purpose) if each == named), None)


def _answer(
    greeting: bytes, secret: bytes, purpose: Purpose
) -> tuple[bytes, Callable[[bytes], bool]]:
    """Return what to answer to a greeting, and what tells whether the reply is a proof."""
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
    """Show a host that we know the *secret*. Raise `EngineError` unless it knows it too."""
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
    """Do as `introduce`, with a socket that blocks."""
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
