"""The server side of the socket: answers requests of the owner who has the token."""

import hmac
import os
import socketserver
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self, TypeAlias

from sojourn.errors import ApplicationStarting, BadInput, EngineError, SojournError
from sojourn.service.protocol import REQUEST_BYTES, STARTING, peer_uid, read_line, send_line

__all__ = ["Server"]

# A client sends its request at once.
_PATIENCE_S = 10.0

_Answer: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, object]]


class Server:
    """Answers requests at *socket* while it is open, in its own threads.

    *answer* is called with each accepted request; a `SojournError` that it raises is sent to
    the client.
    """

    def __init__(self, socket: Path, token: str, answer: _Answer) -> None:
        self._socket, self._token, self._answer = socket, token, answer

    def __enter__(self) -> Self:
        self._server = _Listener(str(self._socket), _Connection)
        self._server.token, self._server.answer = self._token, self._answer
        self._socket.chmod(0o600)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._socket.unlink(missing_ok=True)


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
        """Answer one request."""
        self.request.settimeout(_PATIENCE_S)
        try:
            told: Mapping[str, object] = {"answer": self._answered()}
        except BadInput as error:
            told = {"kind": "bad input", "error": str(error)}
        except ApplicationStarting as error:
            told = {"kind": STARTING, "error": error.stage}
        except SojournError as error:
            told = {"kind": "failed", "error": str(error)}
        send_line(self.request, told)

    def _answered(self) -> Mapping[str, object]:
        if peer_uid(self.request) not in (None, os.getuid()):
            raise EngineError("refused: only the user who runs the application may control it")
        request = read_line(self.request, REQUEST_BYTES)
        given = str(request.pop("token", "")).encode()
        if not hmac.compare_digest(given, self.server.token.encode()):
            raise EngineError("refused: the token is not valid for this run")
        try:
            return self.server.answer(request)
        except SojournError:
            raise
        except Exception as error:
            # the application continues
            raise EngineError(f"the request failed: {type(error).__name__}: {error}") from error
