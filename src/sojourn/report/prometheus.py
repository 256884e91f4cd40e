"""The status of a running application as Prometheus metrics, served on localhost only."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from wsgiref.simple_server import WSGIServer
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from prometheus_client import CollectorRegistry, make_wsgi_app, start_http_server
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sojourn.engine import NodeHealth
from sojourn.errors import EngineError
from sojourn.report.terminal.nodes import traffic
from sojourn.service.status import Status

_HOST = "127.0.0.1"
_TOTAL = "_total"

_OF_OPERATORS = (
    ("running", "processors", "Processors that can take records."),
    ("wanted", "processors_wanted", "Processors that should run."),
    ("arrivals_per_s", "arrivals_per_second", "Records that arrive per second."),
    ("served_per_s", "served_per_second", "Records that are processed per second."),
    ("service_s", "service_seconds", "Mean service time of a record."),
    ("longest_service_s", "longest_service_seconds", "Longest service in the last minute."),
    ("wait_s", "wait_seconds", "Mean time a record waits."),
    ("backlog", "backlog_records", "Records that wait."),
    ("utilisation", "utilisation_ratio", "Fraction of the time processors are busy."),
    ("restarts", "restarts_total", "Restarts of its query or host."),
)

_OF_NODES = (
    ("cores", "cores", "Cores that the node may use."),
    ("busy_cores", "busy_cores",
     "Cores of the node that are busy, with whatever runs on them."),
    ("memory_bytes", "memory_bytes", "Memory of the processors on the node."),
    ("memory_used_bytes", "memory_used_bytes", "Memory of the node that is in use."),
    ("memory_limit_bytes", "memory_limit_bytes", "Memory that the node may use."),
    ("round_trip_s", "round_trip_seconds", "Round-trip time between driver and node."),
    ("clock_offset_s", "clock_offset_seconds",
     "Clock offset of the node relative to the driver."),
)  # fmt: skip

_Values = list[tuple[Mapping[str, str], float | None]]
"""The values of a metric with their labels; None is unknown."""


@contextmanager
def serve_metrics(port: int, status: Callable[[], Status | None]) -> Iterator[WSGIServer]:
    """Serve metrics on *port* of localhost, 0 for any free port, and yield the server.

    *status* returns None until the application has started.
    Raise `EngineError` if the port is not available.
    """
    # not the global registry, which has metrics of the Python process
    registry = CollectorRegistry()
    registry.register(_StatusCollector(status))
    try:
        server, thread = start_http_server(port, _HOST, registry)
    except OSError as error:
        raise EngineError(
            f"port {port} for Prometheus is not available: {error.strerror}; "
            "choose another with --prometheus"
        ) from error
    server.set_app(_only_metrics(make_wsgi_app(registry)))
    # wsgiref prints a traceback when a client disconnects, which would garble the live view
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _StatusCollector(Collector):
    def __init__(self, status: Callable[[], Status | None]) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        """Yield each metric that has a known value; names that end in _total are counters."""
        status = self._status()
        for name, help_text, values in () if status is None else _metrics(status):
            known = [(labels, value) for labels, value in values if value is not None]
            if not known:
                continue
            kind = CounterMetricFamily if name.endswith(_TOTAL) else GaugeMetricFamily
            family = kind(f"sojourn_{name}", help_text, labels=list(known[0][0]))
            for labels, value in known:
                family.add_metric(list(labels.values()), value)
            yield family


def _metrics(status: Status) -> Iterator[tuple[str, str, _Values]]:
    """Yield the name, the help text and the values of each metric."""
    app = {"app": status.name}
    measured, health, target = status.measured, status.health, status.target
    bill = status.bill
    yield "changes_total", "Changes of processors since the start.", [(app, status.changes)]
    for field, name, help_text in _OF_OPERATORS:
        yield (
            name,
            help_text,
            [
                ({**app, "operator": operator}, getattr(values, field))
                for operator, values in status.operators.items()
            ],
        )
    yield from _of_nodes(app, health.nodes)
    times = {"mean": measured.mean_s, **measured.percentiles_s}
    yield (
        "time_seconds",
        "Sojourn time of root records in the last interval.",
        [({**app, "statistic": name}, value) for name, value in times.items()],
    )
    if (objective := status.objective) is not None:
        judged, missed = objective.judged, objective.missed
        yield "slices_judged_total", "Time slices that were judged.", [(app, judged)]
        yield "slices_missed_total", "Time slices that missed the target.", [(app, missed)]
        yield (
            "roots_born_total",
            "Roots of the slices that were judged.",
            [(app, objective.born)],
        )
        yield (
            "roots_in_time_total",
            "Roots of the slices that were judged, if they completed within the target.",
            [(app, objective.in_time)],
        )
        yield (
            "slices_left",
            "Slices that may be missed within 24 hours.",
            [(app, objective.left)],
        )
        yield (
            "burn_rate",
            "Part of the budget used, over that part of the time.",
            [({**app, "over": over}, rate) for over, rate in objective.burn_rates.items()],
        )
        excused: _Values = [
            ({**app, "cause": each}, number) for each, number in objective.excused.items()
        ]
        yield (
            "slices_excused_total",
            "Missed slices, if more processors would not help.",
            excused,
        )
        yield (
            "objective_ratio",
            "Part of the slices that must keep it.",
            [(app, objective.kept)],
        )
        yield (
            "level_ratio",
            "Part of the load planned for in addition.",
            [(app, objective.level)],
        )
    yield (
        "target_seconds",
        "The target: what the statistic should not exceed.",
        [({**app, "statistic": target.statistic}, target.seconds)],
    )
    for name, help_text, value in (
        ("roots_per_second", "Root records that arrive per second.", measured.arrivals_per_s),
        ("deciding", "1 while the loop applies its decisions.", status.deciding == "active"),
        ("reading", "0 while records that wait in Kafka have not been read since the start.",
         not health.waits_for),
        ("processors_most", "Maximum number of processors in all.", status.max_processors),
        ("target_reachable", "0 if no number of processors meets the target.",
         not status.warning),
        ("no_broker_seconds", "Time since a broker last answered; 0 if one answers.",
         health.no_broker_s or 0.0),
        ("inner_topics_records", "Records in the topics between operators.",
         health.inner_topics.records),
        ("inner_topics_bytes", "Size of the topics between operators.",
         health.inner_topics.bytes),
        ("dead_letters_total", "Records in the dead-letter topic.", health.dead_letters),
        ("nulls_total", "Messages without a value that were skipped.", health.nulls),
        ("replayed_total", "Records that were replayed.", health.replayed),
        ("retried_total", "Records that were retried.", health.retried),
        ("node_adding_seconds", "Time from asking for a node until its processors run.",
         health.node_costs.adding_s),
        ("node_removing_seconds", "Time from deciding to remove a node until it has left.",
         health.node_costs.removing_s),
        ("node_seconds_total", "Node-seconds used since the start.",
         None if bill is None else 3600.0 * bill.node_hours),
        ("cost_total", "Cost of nodes, in the currency of their price per hour.",
         None if bill is None else bill.cost),
    ):  # fmt: skip
        yield name, help_text, [(app, value)]


def _of_nodes(
    app: Mapping[str, str], nodes: Iterable[NodeHealth]
) -> Iterator[tuple[str, str, _Values]]:
    each = [({**app, "node": node.name}, node) for node in nodes]
    yield (
        "node_usable",
        "1 if processors can run on the node.",
        [(labels, not node.reason) for labels, node in each],
    )
    for field, name, help_text in _OF_NODES:
        yield (
            f"node_{name}",
            help_text,
            [(labels, getattr(node, field)) for labels, node in each],
        )
    yield (
        "node_processors",
        "Processors on the node that can take records.",
        [
            ({**labels, "operator": operator}, number)
            for labels, node in each
            for operator, number in node.processors.items()
        ],
    )
    yield (
        "node_bytes_total",
        "Bytes of records to the node and of results back, since it has connected.",
        [
            ({**app, "from": sender, "to": receiver, "stream": stream}, size_bytes)
            for sender, receiver, stream, size_bytes in traffic(nodes)
        ],
    )


def _only_metrics(every_path: WSGIApplication) -> WSGIApplication:
    """Return the app restricted to /metrics; `prometheus_client` answers any path."""

    def answer(environ: WSGIEnvironment, respond: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] in ("/metrics", "/"):
            return every_path(environ, respond)
        respond("404 there is only /metrics", [("Content-Type", "text/plain")])
        return [b"there is only /metrics\n"]

    return answer
