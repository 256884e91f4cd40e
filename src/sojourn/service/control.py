"""The control socket: one line of JSON each way, between processes of one user.

A run answers with `serving`; commands send requests with `ask`. Both ends check the user of the
other, and a request carries the token of the run.
"""

import hmac
import json
import os
import socket
import socketserver
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from math import isfinite
from pathlib import Path
from typing import Any, TypeAlias

from sojourn.errors import ApplicationStarting, BadInput, EngineError, SojournError
from sojourn.service.folders import TOKEN, Entry, exit_status, refuse_others
from sojourn.service.status import Status, from_json

REQUEST_BYTES, _ANSWER_BYTES = 1 << 16, 1 << 24
"""The maximum length of a line."""

# The kind of an answer while the application starts: its error is the stage of the start.
_STARTING = "starting"
_CREDENTIALS = struct.Struct("3i")
# A client sends its request immediately.
_REQUEST_WITHIN_S = 10.0
# A change of processors may have to wait for processors that are starting.
_PATIENCE_S = 120.0
_POLL_S = 0.2

_Answer: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, object]]


def _send_line(connection: socket.socket, message: Mapping[str, object]) -> None:
    """Send *message*; NaN and infinity are null."""
    text = json.dumps(_nulled(message), allow_nan=False, ensure_ascii=True)
    connection.sendall(text.encode() + b"\n")


def _read_line(connection: socket.socket, most: int) -> dict[str, Any]:
    """Return the next message. Raise `EngineError` if it is not JSON, or exceeds *most* bytes.

    The limit keeps a client from filling the memory.
    """
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
    """Return the user id of the other process; None if the system does not support it."""
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


@contextmanager
def serving(path: Path, token: str, answer: _Answer) -> Iterator[None]:
    """Answer requests at the socket *path* meanwhile, each in a thread of its own.

    *answer* is called with each authenticated request; a `SojournError` that it raises is sent
    to the client.
    """
    with _Listener(str(path), _Connection) as listener:
        listener.token, listener.answer = token, answer
        path.chmod(0o600)
        thread = threading.Thread(
            target=listener.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            listener.shutdown()
            thread.join()
            path.unlink(missing_ok=True)


class _Listener(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 64
    block_on_close = False
    token: str
    answer: _Answer

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that disconnect: stderr may show the live view."""


class _Connection(socketserver.BaseRequestHandler):
    server: _Listener

    def handle(self) -> None:
        self.request.settimeout(_REQUEST_WITHIN_S)
        try:
            told: Mapping[str, object] = {"answer": self._answered()}
        except BadInput as error:
            told = {"kind": "bad input", "error": str(error)}
        except ApplicationStarting as error:
            told = {"kind": _STARTING, "error": error.stage}
        except SojournError as error:
            told = {"kind": "failed", "error": str(error)}
        _send_line(self.request, told)

    def _answered(self) -> Mapping[str, object]:
        if peer_uid(self.request) not in (None, os.getuid()):
            raise EngineError("refused: only the user who runs the application may control it")
        request = _read_line(self.request, REQUEST_BYTES)
        given = str(request.pop("token", "")).encode()
        if not hmac.compare_digest(given, self.server.token.encode()):
            raise EngineError("refused: the token is not valid for this run")
        try:
            return self.server.answer(request)
        except SojournError:
            raise
        except Exception as error:
            # a request that fails must not stop the application
            raise EngineError(f"the request failed: {type(error).__name__}: {error}") from error


def ask(
    folder: Path,
    entry: Entry,
    request: Mapping[str, object],
    *,
    patience_s: float = _PATIENCE_S,
) -> dict[str, Any]:
    """Return the application's answer to *request*, waiting for up to *patience_s*.

    Raise `BadInput` if it refuses the request, `ApplicationStarting` if it has not started yet,
    and `EngineError` if it fails or does not answer.
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
            _send_line(connection, {"token": secret, **request})
            answer = _read_line(connection, _ANSWER_BYTES)
    except OSError as error:
        busy = isinstance(error, TimeoutError | BlockingIOError)  # or its queue is full
        why = "is busy; try again" if busy else f"does not answer: {error}"
        raise EngineError(f"{entry.name} (pid {entry.pid}) {why}") from error
    if "answer" in answer and isinstance(answer["answer"], dict):
        return answer["answer"]
    if answer.get("kind") == _STARTING:
        raise ApplicationStarting(str(answer.get("error")), entry.name)
    kind = BadInput if answer.get("kind") == "bad input" else EngineError
    raise kind(f"{entry.name}: {answer.get('error', 'no answer')}")


def ask_status(folder: Path, entry: Entry) -> Status:
    return from_json(ask(folder, entry, {"ask": "status"}))


def stop(
    folder: Path, entry: Entry, *, now: bool, progress: Callable[[str], None]
) -> int | None:
    """Stop the application as Ctrl-C in its terminal does; *now*, as a second Ctrl-C.

    Wait until it has ended, and return its exit status; None if it was killed. Raise
    `EngineError` if it does not accept the request.
    """
    request = {"ask": "stop", "now": now}  # idempotent: repeated, it only returns the stage
    progress(str(ask(folder, entry, request)["stage"]))
    while entry.holds(folder):
        time.sleep(_POLL_S)
        with suppress(EngineError):  # it may have closed its socket
            progress(str(ask(folder, entry, request)["stage"]))
    return exit_status(folder, entry.pid)
