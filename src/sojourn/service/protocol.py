"""What goes over the socket: a line of JSON each way, and whose process is at the other end."""

import json
import socket
import struct
from collections.abc import Mapping
from math import isfinite
from typing import Any

from sojourn.errors import EngineError

__all__ = ["ANSWER_BYTES", "REQUEST_BYTES", "peer_uid", "read_line", "send_line"]

REQUEST_BYTES, ANSWER_BYTES = 1 << 16, 1 << 24
"""No line is longer."""

_CREDENTIALS = struct.Struct("3i")


def send_line(connection: socket.socket, message: Mapping[str, object]) -> None:
    """Send *message*; numbers that JSON does not have are null."""
    text = json.dumps(_nulled(message), allow_nan=False, ensure_ascii=True)
    connection.sendall(text.encode() + b"\n")


def read_line(connection: socket.socket, most: int) -> dict[str, Any]:
    """Return the next message of at most so many bytes. Raise `EngineError` if it is none."""
    received = bytearray()
    while not received.endswith(b"\n"):
        some = connection.recv(1 << 16)
        if not some:
            raise EngineError("the other end closed the connection before it had answered")
        received += some
        if len(received) > most:
            raise EngineError(f"a message of more than {most} bytes")
    try:
        message = json.loads(received)
    except (ValueError, RecursionError) as error:
        raise EngineError("a message that is not JSON") from error
    if not isinstance(message, dict):
        raise EngineError("a message that is not an object")
    return message


def peer_uid(connection: socket.socket) -> int | None:
    """Return the user at the other end; None where the system does not tell."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    told = connection.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(told)[1])


def _nulled(value: object) -> object:
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): _nulled(inside) for name, inside in value.items()}
    if isinstance(value, tuple | list):
        return [_nulled(inside) for inside in value]
    return value
