"""What a running application measures, for Prometheus, on this machine alone."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import isnan
from types import TracebackType
from typing import Any, Self
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from prometheus_client import (
    CollectorRegistry,
    generate_latest,
    make_wsgi_app,
    start_http_server,
)
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sojourn.errors import EngineError

__all__ = ["Metrics", "exposition"]

_HOST = "127.0.0.1"
_TOTAL = "_total"

_OF_OPERATORS = (
    ("running", "processors", "Processors that can take records."),
    ("wanted", "processors_wanted", "Processors that there should be."),
    ("arrivals_per_s", "arrivals_per_second", "Records that arrive."),
    ("served_per_s", "served_per_second", "Records that are served."),
    ("service_s", "service_seconds", "Mean time a record is served."),
    ("wait_s", "wait_seconds", "Mean time a record waits."),
    ("backlog", "backlog_records", "Records that wait."),
    ("utilisation", "utilisation_ratio", "Share of the time processors are busy."),
    ("restarts", "restarts_total", "How often it was started again."),
)

Status = Mapping[str, Any]
Values = list[tuple[Mapping[str, str], float | None]]
"""What is measured, by label."""


class Metrics:
    """Answers Prometheus at *port* of this machine while it is open; 0 takes any.

    Raise `EngineError` on entering if the port is taken.
    """

    def __init__(self, port: int, status: Callable[[], Status]) -> None:
        self._asked, self._registry = port, CollectorRegistry()
        self._registry.register(_StatusCollector(status))

    def __enter__(self) -> Self:
        try:
            self._server, self._thread = start_http_server(self._asked, _HOST, self._registry)
        except OSError as error:
            raise EngineError(
                f"port {self._asked} for Prometheus cannot be had: {error.strerror}; "
                "name another with --prometheus"
            ) from error
        self._server.set_app(_only_metrics(make_wsgi_app(self._registry)))
        # somebody went away, which is no news, and standard error may be a picture
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
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
        return self._server.server_port


def exposition(status: Status) -> str:
    """Return the metrics of an application whose status this is; what is not known is left out.

    >>> text = exposition({"name": "vld", "changes": 3})
    >>> print(text.splitlines()[2])
    sojourn_changes_total{app="vld"} 3.0
    """
    registry = CollectorRegistry()
    registry.register(_StatusCollector(lambda: status))
    return generate_latest(registry).decode()


class _StatusCollector(Collector):
    """Asks for the status whenever Prometheus does."""

    def __init__(self, status: Callable[[], Status]) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        """Yield every metric of which something is known; those in all are counters."""
        for name, says, values in _measured(self._status()):
            known = [
                (labels, value)
                for labels, value in values
                if value is not None and not isnan(value)
            ]
            if not known:
                continue
            kind = CounterMetricFamily if name.endswith(_TOTAL) else GaugeMetricFamily
            family = kind(f"sojourn_{name}", says, labels=list(known[0][0]))
            for labels, value in known:
                family.add_metric(list(labels.values()), value)
            yield family


def _measured(status: Status) -> Iterator[tuple[str, str, Values]]:
    """Yield names, what they mean, and their values; the status is read here alone."""
    app = {"app": status["name"]}
    measured, health = status.get("measured", {}), status.get("health", {})
    target, deciding = status.get("target") or {}, status.get("deciding")
    held, warning = status.get("inner_topics") or {}, status.get("warning")
    yield (
        "changes_total",
        "Changes of processors since the start.",
        [(app, status.get("changes"))],
    )
    for field, name, says in _OF_OPERATORS:
        yield (
            name,
            says,
            [
                ({**app, "operator": operator}, values.get(field))
                for operator, values in status.get("operators", {}).items()
            ],
        )
    times = {"mean": measured.get("mean_s"), **measured.get("percentiles_s", {})}
    yield (
        "time_seconds",
        "Sojourn time of roots in the last interval.",
        [({**app, "statistic": name}, value) for name, value in times.items()],
    )
    yield (
        "target_seconds",
        "What the statistic should stay below.",
        [({**app, "statistic": target.get("statistic", "")}, target.get("seconds"))],
    )
    away_s = (health["no_broker_s"] or 0.0) if "no_broker_s" in health else None
    for name, says, value in (
        ("roots_per_second", "Records that enter from outside.",
         measured.get("arrivals_per_s")),
        ("deciding", "1 while the loop carries out what it decides.",
         None if deciding is None else deciding == "active"),
        ("processors_most", "How many processors there may be in all.",
         status.get("max_processors")),
        ("target_reachable", "0 where no number of processors would meet the target.",
         None if warning is None else not warning),
        ("no_broker_seconds", "For how long no broker has answered.", away_s),
        ("inner_topics_records", "Records in topics between operators.", held.get("records")),
        ("inner_topics_bytes", "What they take up.", held.get("bytes")),
        ("dead_letters_total", "Records that were laid aside.", health.get("dead_letters")),
        ("replayed_total", "Records that came again.", health.get("replayed")),
        ("retried_total", "Records that were tried again.", health.get("retried")),
    ):  # fmt: skip
        yield name, says, [(app, value)]


def _only_metrics(every_path: WSGIApplication) -> WSGIApplication:
    """Return what refuses all paths but one; the library answers with metrics at any."""

    def answer(environ: WSGIEnvironment, respond: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] in ("/metrics", "/"):
            return every_path(environ, respond)
        respond("404 there is only /metrics", [("Content-Type", "text/plain")])
        return [b"there is only /metrics\n"]

    return answer
