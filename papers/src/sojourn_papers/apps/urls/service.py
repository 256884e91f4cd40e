"""A service that knows where short links lead: `python -m sojourn_papers.apps.urls.service`.

`GET /t.co/abc` is answered with a redirect (301) to where http://t.co/abc leads, or with 404.
The port is the lock: of several that are started, one serves, and the others end. Started by
the application it is nobody's child, and ends when nobody has been connected for a moment: it
outlives the processor that started it, but not the last one, however that ends.
"""

import argparse
import errno
import json
import math
import os
import sys
from dataclasses import replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from threading import Lock
from time import monotonic, sleep

from sojourn_papers.apps.data import data_file
from sojourn_papers.apps.urls.links import CLICKS, known_links, share, target
from sojourn_papers.apps.urls.settings import Settings

HOST = "127.0.0.1"
LINGER_S = 2.0
"""So long after the last connection, and after its start, a service of an application ends."""

_LOOK_S = 0.2


def described(settings: Settings) -> str:
    """Return what the service is and how it answers; another one on the port says otherwise."""
    data = str(data_file(CLICKS) or "")
    return json.dumps(
        ["sojourn_papers.apps.urls", float(settings.latency_s), float(settings.dead), data]
    )


class Service(ThreadingHTTPServer):
    """The service; raises an `OSError` if another program has the port."""

    daemon_threads = True
    allow_reuse_port = False
    request_queue_size = 128
    timeout = _LOOK_S

    def __init__(self, settings: Settings) -> None:
        super().__init__((HOST, settings.port), _Answer)
        self.settings = settings
        self.described = described(settings)
        self.known = known_links()
        self._open, self._closed_s, self._lock = 0, monotonic(), Lock()

    def serve(self, linger_s: float = math.inf) -> None:
        """Serve until nobody has been connected for *linger_s*."""
        while self._open or monotonic() < self._closed_s + linger_s:
            self.handle_request()

    def process_request(self, request: socket, client_address: object) -> None:  # type: ignore[override]
        """Count a connection, and serve it in a thread."""
        with self._lock:
            self._open += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request: socket) -> None:  # type: ignore[override]
        """Count off a connection that is closed."""
        super().shutdown_request(request)
        with self._lock:
            self._open -= 1
            self._closed_s = monotonic()

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing: a client that is gone is no error."""


class _Answer(BaseHTTPRequestHandler):
    """The requests of one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Service

    def do_GET(self) -> None:
        """Answer where a link leads, or at / what this is."""
        if self.path == "/":
            self._send(HTTPStatus.OK, self.server.described)
            return
        short, settings = f"http:/{self.path}", self.server.settings
        sleep(settings.latency_s * -math.log(1 - share("latency", short)))
        long = target(short, self.server.known, settings.dead)
        if long is None:
            self._send(HTTPStatus.NOT_FOUND)
        else:
            self._send(HTTPStatus.MOVED_PERMANENTLY, location=long)

    def _send(self, status: HTTPStatus, text: str = "", location: str = "") -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if location:
            self.send_header("Location", location)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - it overrides one
        """Nothing: the results say what was answered."""


def main() -> None:
    """Serve until interrupted, or with `--detach` in the background while it is needed."""
    settings = Settings.of_environment()
    parser = argparse.ArgumentParser(description="Tells where short links lead.")
    parser.add_argument("--port", type=int, default=settings.port)
    parser.add_argument("--detach", action="store_true", help="end when nobody is connected")
    given = parser.parse_args()
    try:
        service = Service(replace(settings, port=given.port))
    except OSError as error:
        if error.errno == errno.EADDRINUSE and given.detach:
            return  # another one was faster
        raise
    if given.detach:
        if os.fork():
            os._exit(0)  # who started it can connect now
        os.setsid()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
    service.serve(LINGER_S if given.detach else math.inf)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
