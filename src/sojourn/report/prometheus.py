"""What a running application measures, for Prometheus: text format 0.0.4 on this machine."""

import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler
from math import isnan
from types import TracebackType
from typing import Any, Self

from sojourn.errors import EngineError

__all__ = ["Metrics", "exposition"]

_HOST = "127.0.0.1"
_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PATIENCE_S = 10.0

_OF_OPERATORS = (
    ("running", "processors", "gauge", "Processors that can take records."),
    ("wanted", "processors_wanted", "gauge", "Processors that there should be."),
    ("arrivals_per_s", "arrivals_per_second", "gauge", "Records that arrive."),
    ("served_per_s", "served_per_second", "gauge", "Records that are served."),
    ("service_s", "service_seconds", "gauge", "Mean time a record is served."),
    ("wait_s", "wait_seconds", "gauge", "Mean time a record waits."),
    ("backlog", "backlog_records", "gauge", "Records that wait."),
    ("utilisation", "utilisation_ratio", "gauge", "Share of the time processors are busy."),
    ("restarts", "restarts_total", "counter", "How often it was started again."),
)


def exposition(status: Mapping[str, Any]) -> str:
    """Return the metrics of an application whose status this is; what is not known is left out.

    >>> text = exposition({"name": "vld", "changes": 3})
    >>> print(text.splitlines()[2])
    sojourn_changes_total{app="vld"} 3
    """
    return "".join(f"{line}\n" for line in _lines(status))


class Metrics:
    """Answers Prometheus at *port* of this machine while it is open; 0 takes any.

    Raise `EngineError` on entering if the port is taken.
    """

    def __init__(self, port: int, status: Callable[[], Mapping[str, Any]]) -> None:
        self._asked, self._status = port, status

    def __enter__(self) -> Self:
        try:
            self._server = _Listener(self._asked, self._status)
        except OSError as error:
            raise EngineError(
                f"port {self._asked} for Prometheus cannot be had: {error.strerror}; "
                "name another with --prometheus"
            ) from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])


class _Listener(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, port: int, status: Callable[[], Mapping[str, Any]]) -> None:
        super().__init__((_HOST, port), _Answer)
        self.status = status

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: somebody went away, and standard error may be a picture."""


class _Answer(BaseHTTPRequestHandler):
    server: _Listener
    timeout = _PATIENCE_S

    def do_GET(self) -> None:
        """Answer with the metrics."""
        if self.path.partition("?")[0] not in ("/metrics", "/"):
            self.send_error(404, "there is only /metrics")
            return
        body = exposition(self.server.status()).encode()
        self.send_response(200)
        self.send_header("Content-Type", _TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Log nothing."""


def _lines(status: Mapping[str, Any]) -> Iterator[str]:
    app = {"app": status["name"]}
    measured, health = status.get("measured", {}), status.get("health", {})
    yield from _metric(
        "changes_total",
        "counter",
        "Changes of processors since the start.",
        [(app, status.get("changes"))],
    )
    for field, name, kind, says in _OF_OPERATORS:
        values = [
            ({**app, "operator": operator}, told.get(field))
            for operator, told in status.get("operators", {}).items()
        ]
        yield from _metric(name, kind, says, values)
    yield from _metric(
        "roots_per_second",
        "gauge",
        "Records that enter from outside.",
        [(app, measured.get("arrivals_per_s"))],
    )
    times = {"mean": measured.get("mean_s"), **measured.get("percentiles_s", {})}
    yield from _metric(
        "time_seconds",
        "gauge",
        "Sojourn time of roots in the last interval.",
        [({**app, "statistic": name}, value) for name, value in times.items()],
    )
    target = status.get("target") or {}
    yield from _metric(
        "target_seconds",
        "gauge",
        "What the statistic should stay below.",
        [({**app, "statistic": target.get("statistic", "")}, target.get("seconds"))],
    )
    deciding = status.get("deciding")
    yield from _metric(
        "deciding",
        "gauge",
        "1 while the loop carries out what it decides.",
        [(app, None if deciding is None else int(deciding == "active"))],
    )
    held, most = status.get("inner_topics") or {}, status.get("max_processors")
    away_s = health.get("no_broker_s")
    warning = status.get("warning")
    for name, says, value in (
        ("processors_most", "How many processors there may be in all.", most),
        ("target_reachable", "0 where no number of processors would meet the target.",
         None if warning is None else int(not warning)),
        ("no_broker_seconds", "For how long no broker has answered.",
         (away_s or 0.0) if "no_broker_s" in health else None),
        ("inner_topics_records", "Records in topics between operators.", held.get("records")),
        ("inner_topics_bytes", "What they take up.", held.get("bytes")),
    ):  # fmt: skip
        yield from _metric(name, "gauge", says, [(app, value)])
    for name, says in (
        ("dead_letters", "Records that were laid aside."),
        ("replayed", "Records that came again."),
        ("retried", "Records that were tried again."),
    ):
        yield from _metric(f"{name}_total", "counter", says, [(app, health.get(name))])


def _metric(
    name: str, kind: str, says: str, values: Sequence[tuple[Mapping[str, str], float | None]]
) -> Iterator[str]:
    known = [
        (labels, value) for labels, value in values if value is not None and not isnan(value)
    ]
    if not known:
        return
    yield f"# HELP sojourn_{name} {says}"
    yield f"# TYPE sojourn_{name} {kind}"
    for labels, value in known:
        told = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        yield f"sojourn_{name}{{{told}}} {value!r}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
