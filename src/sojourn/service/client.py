"""The end of the socket at which commands are."""

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sojourn.errors import BadInput, EngineError
from sojourn.service.entry import TOKEN, Entry
from sojourn.service.folders import refuse_others
from sojourn.service.protocol import ANSWER_BYTES, peer_uid, read_line, send_line
from sojourn.service.status import Status
from sojourn.service.status_json import from_json

__all__ = ["ask", "ask_status"]

# A change of processors may wait for those that are being started.
_PATIENCE_S = 120.0


def ask(folder: Path, entry: Entry, request: Mapping[str, object]) -> dict[str, Any]:
    """Return what the application answers to *request*.

    Raise `BadInput` for what it cannot accept, `EngineError` for what it cannot do, and
    where it does not answer.
    """
    token = folder / TOKEN
    if not token.exists():
        raise EngineError(f"{entry.name} (pid {entry.pid}) has ended")
    refuse_others(folder)
    refuse_others(token)
    try:
        secret = token.read_text(encoding="ascii")
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_PATIENCE_S)
            connection.connect(entry.socket)
            if peer_uid(connection) not in (None, os.getuid()):
                raise EngineError(f"{entry.socket} belongs to another user; it is not told")
            send_line(connection, {"token": secret, **request})
            answer = read_line(connection, ANSWER_BYTES)
    except OSError as error:
        busy = isinstance(error, TimeoutError | BlockingIOError)  # or too many wait already
        why = "is too busy to answer; try again" if busy else f"is gone: {error}"
        raise EngineError(f"{entry.name} (pid {entry.pid}) {why}") from error
    if "answer" in answer and isinstance(answer["answer"], dict):
        return answer["answer"]
    kind = BadInput if answer.get("kind") == "bad input" else EngineError
    raise kind(f"{entry.name}: {answer.get('error', 'it gave no answer')}")


def ask_status(folder: Path, entry: Entry) -> Status:
    """Return how the application is. Raise `EngineError` where it does not answer."""
    return from_json(ask(folder, entry, {"ask": "status"}))
