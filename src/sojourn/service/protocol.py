"""The protocol of the socket: one line of JSON each way, between processes of one user."""

import json
import socket
import struct
from collections.abc import Mapping
from math import isfinite
from typing import Any

from sojourn.errors import EngineError

__all__ = ["ANSWER_BYTES", "REQUEST_BYTES", "STARTING", "peer_uid", "read_line", "send_line"]

REQUEST_BYTES, ANSWER_BYTES = 1 << 16, 1 << 24
"""The maximum length of a line."""

STARTING = "starting"
"""The kind of an answer that says what the start of the application is at."""

_CREDENTIALS = struct.Struct("3i")


def send_line(connection: socket.socket, message: Mapping[str, object]) -> None:
    """Send *message*; NaN and infinity are null."""
    text = json.dumps(_nulled(message), allow_nan=False, ensure_ascii=True)
    connection.sendall(text.encode() + b"\n")


def read_line(connection: socket.socket, most: int) -> dict[str, Any]:
    """Return the next message. Raise `EngineError` if it is longer than *most*, or no JSON."""
    received = bytearray()
    while not received.endswith(b"\n"):
        some = connection.recv(1 << 16)
        if not some:
            raise EngineError("the connection was closed before the answer")
        received += some
        if len(received) > most:
            raise EngineError(f"the message has more than {most} bytes")
    try:
        message = json.loads(received)
    except (ValueError, RecursionError) as error:
        raise EngineError("the message is not JSON") from error
    if not isinstance(message, dict):
        raise EngineError("the message is not a JSON object")
    return message


def peer_uid(connection: socket.socket) -> int | None:
    """Return the user of the other process; None if the system does not support it."""
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
