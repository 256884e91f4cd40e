"""Asks the service where short links lead, and remembers the answers."""

import os
import subprocess
import sys
from functools import lru_cache
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import TypeAlias

from sojourn.errors import EngineError
from sojourn_papers.apps.urls.links import MOST_REDIRECTS, is_short
from sojourn_papers.apps.urls.service import HOST, described
from sojourn_papers.apps.urls.settings import Settings

Resolved: TypeAlias = tuple[str | None, str | None]
"""Where a link leads, or why it leads nowhere."""

_ANSWER_S = 30.0
# A service that ends just now is met once, hardly twice.
_ATTEMPTS = 5


class Resolver:
    """Resolves links at the service of this machine, which it starts if need be.

    Its connection stays open: the service ends when it has none. Failures to reach the service
    are raised, and not remembered.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._service = connect(settings)
        self.resolve = lru_cache(maxsize=settings.cache)(self._followed)

    def close(self) -> None:
        """Let go of the service."""
        self._service.close()

    def _followed(self, short: str) -> Resolved:
        url = short
        for _ in range(MOST_REDIRECTS):
            answer, _ = self._asked(url)
            if answer.status != HTTPStatus.MOVED_PERMANENTLY:
                return None, f"{answer.status} {answer.reason}"
            url = answer.headers["Location"]
            if not is_short(url):
                return url, None
        return None, f"more than {MOST_REDIRECTS} redirects"

    def _asked(self, url: str) -> tuple[HTTPResponse, bytes]:
        path = url.partition(":/")[2]
        try:
            return _got(self._service, path)
        except (OSError, HTTPException):
            self._service.close()
            self._service = connect(self._settings)
            return _got(self._service, path)


def connect(settings: Settings) -> HTTPConnection:
    """Return a connection to the service, started here unless it runs.

    Raise `EngineError` if another program has its port, or it does not start.
    """
    for _ in range(_ATTEMPTS):
        service = HTTPConnection(HOST, settings.port, timeout=_ANSWER_S)
        try:
            _, text = _got(service, "/")
        except (OSError, HTTPException):
            service.close()
            _start(settings)
            continue
        found = text.decode(errors="replace")
        if found == described(settings):
            return service
        service.close()
        raise EngineError(
            f"port {settings.port} has another program, or a service with other settings "
            f"({found[:100]}); name another port with SOJOURN_URLS_PORT"
        )
    raise EngineError(f"the service at port {settings.port} does not answer")


def _got(service: HTTPConnection, path: str) -> tuple[HTTPResponse, bytes]:
    service.request("GET", path)
    answer = service.getresponse()
    return answer, answer.read()  # read, so that the next can be asked


def _start(settings: Settings) -> None:
    started = subprocess.run(
        [sys.executable, "-m", "sojourn_papers.apps.urls.service", "--detach"],
        env={**os.environ, **settings.variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if started.returncode:
        last = started.stderr.strip().rpartition("\n")[2]
        raise EngineError(f"the service at port {settings.port} did not start: {last}")
