"""The client side of the socket, for commands."""

import os
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from sojourn.errors import ApplicationStarting, BadInput, EngineError
from sojourn.service.entry import TOKEN, Entry, exit_status
from sojourn.service.folders import refuse_others
from sojourn.service.protocol import ANSWER_BYTES, STARTING, peer_uid, read_line, send_line
from sojourn.service.status import Status, from_json

__all__ = ["ask", "ask_status", "stop"]

# A change of processors may have to wait for processors that are starting.
_PATIENCE_S = 120.0
_POLL_S = 0.2


def ask(
    folder: Path,
    entry: Entry,
    request: Mapping[str, object],
    *,
    patience_s: float = _PATIENCE_S,
) -> dict[str, Any]:
    """Return the answer of the application to *request*, waiting for up to *patience_s*.

    Raise `BadInput` if it refuses the request, `ApplicationStarting` if it has not started yet,
    `EngineError` if it fails or does not answer.
    """
    token = folder / TOKEN
    if not token.exists():
        raise EngineError(f"{entry.name} (pid {entry.pid}) has ended")
    refuse_others(folder)
    refuse_others(token)
    try:
        secret = token.read_text(encoding="ascii")
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(patience_s)
            connection.connect(entry.socket)
            if peer_uid(connection) not in (None, os.getuid()):
                raise EngineError(f"{entry.socket} belongs to another user; nothing was sent")
            send_line(connection, {"token": secret, **request})
            answer = read_line(connection, ANSWER_BYTES)
    except OSError as error:
        busy = isinstance(error, TimeoutError | BlockingIOError)  # or its queue is full
        why = "is busy; try again" if busy else f"does not answer: {error}"
        raise EngineError(f"{entry.name} (pid {entry.pid}) {why}") from error
    if "answer" in answer and isinstance(answer["answer"], dict):
        return answer["answer"]
    if answer.get("kind") == STARTING:
        raise ApplicationStarting(str(answer.get("error")), entry.name)
    kind = BadInput if answer.get("kind") == "bad input" else EngineError
    raise kind(f"{entry.name}: {answer.get('error', 'no answer')}")


def ask_status(folder: Path, entry: Entry) -> Status:
    """Return the status of the application. Raise `EngineError` if it does not answer."""
    return from_json(ask(folder, entry, {"ask": "status"}))


def stop(
    folder: Path, entry: Entry, *, now: bool, progress: Callable[[str], None]
) -> int | None:
    """Stop the application as Ctrl-C in its terminal does; *now*, as a second Ctrl-C.

    Wait until it has ended, and return its exit status; None if it was killed. Raise
    `EngineError` if it does not accept the request.
    """
    request = {"ask": "stop", "now": now}  # repeated, it only returns the stage
    progress(str(ask(folder, entry, request)["stage"]))
    while entry.holds(folder):
        time.sleep(_POLL_S)
        with suppress(EngineError):  # it may have closed its socket
            progress(str(ask(folder, entry, request)["stage"]))
    return exit_status(folder, entry.pid)
