"""Shared by benchmarks on Spark: a reader of sinks, a load, and an observation loop."""

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from confluent_kafka import Consumer

from sojourn.app.waiting_app import entrances
from sojourn.spark.driver.load.offered_load import Load, Source
from sojourn.spark.driver.load.producer import LoadProcess

_POLL_S = 0.1


@dataclass(frozen=True)
class Arrived:
    """A record that was read from a sink."""

    identity: str
    root: str
    birth_s: float
    """Birth of the root, in seconds since 1970."""
    read_s: float

    @property
    def took_s(self):
        """Seconds from the birth of the root until the record was read."""
        return self.read_s - self.birth_s


class Sink:
    """Reads topics in a thread, and collects the records."""

    def __init__(self, servers, topics, *, group="sink"):
        self.arrived = []
        self._roots, self._next = set(), {}
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 5,
                "log_level": 0,
            }
        )
        self._consumer.subscribe(list(topics))
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        while not self._ended.is_set():
            # one at a time: a request for several waits until it has all of them
            message = self._consumer.poll(_POLL_S)
            if message is not None and message.error() is None:
                self._keep(message)

    def _keep(self, message):
        if not self._is_new(message):
            return
        told = dict(message.headers() or [])
        self.arrived.append(
            Arrived(
                told["sojourn-id"].decode(),
                told["sojourn-root"].decode(),
                float(told["sojourn-birth"]),
                time.time(),
            )
        )
        self._roots.add(self.arrived[-1].root)

    def _is_new(self, message):
        """Return whether a message is new: after a restart of the broker, some are re-read."""
        place = message.topic(), message.partition()
        if message.offset() < self._next.get(place, 0):
            return False
        self._next[place] = message.offset() + 1
        return True

    def roots(self):
        """Return the roots of which a record has arrived."""
        return self._roots.copy()

    def await_roots(self, number, *, patience_s=120.0):
        """Wait until *number* roots have arrived; return False after *patience_s*."""
        until_s = time.monotonic() + patience_s
        while time.monotonic() < until_s:
            if len(self._roots) >= number:
                return True
            time.sleep(_POLL_S)
        return False

    def close(self):
        """Stop reading, and close the consumer."""
        self._ended.set()
        self._thread.join()
        self._consumer.close()


@contextmanager
def sink_of(app, servers):
    """Read all sinks of *app* within the block."""
    sink = Sink(servers, [app.topic(sink.stream.name) for sink in app.sinks.values()])
    try:
        yield sink
    finally:
        sink.close()


def load_of(  # noqa: PLR0913 - keyword arguments with defaults
    topology, app, servers, *, points=None, lasts_s=None, seed=1, gaps="poisson"
):
    """Return the load of *topology*: its declared rates, or *points* for every source."""
    sources = [
        Source(
            topic=app.topic(arrival.name),
            points=points or [(0.0, arrival.per_s), (3600.0, arrival.per_s)],
            gaps=gaps,
        )
        for arrival in entrances(topology)
    ]
    return LoadProcess(Load(servers=servers, sources=sources, lasts_s=lasts_s, seed=seed))


def watched(engine, lasts_s, every_s=1.0):
    """Yield the report of the engine every *every_s*, for *lasts_s*."""
    until_s = engine.now_s + lasts_s
    while engine.now_s < until_s - every_s / 2:
        yield engine.observe(engine.now_s + every_s)


def percentiles_ms(times_s, ratios=(50, 95, 99)):
    """Return percentiles in milliseconds."""
    return [1e3 * float(p) for p in np.percentile(times_s, ratios)]
