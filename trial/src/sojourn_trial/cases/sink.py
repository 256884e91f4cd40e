"""What the benchmarks on Spark share: who reads the sink, and a loop that does nothing."""

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
    """A record at the sink: which, of which root, born and read when."""

    identity: str
    root: str
    birth_s: float
    read_s: float

    @property
    def took_s(self):
        """From the birth of its root until it was read."""
        return self.read_s - self.birth_s


class Sink:
    """Reads topics from now on, in a thread of its own, and keeps what arrives."""

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
            # one at a time: to ask for several is to wait for them
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
        """Return whether it was not read before: a broker that comes back begins earlier."""
        place = message.topic(), message.partition()
        if message.offset() < self._next.get(place, 0):
            return False
        self._next[place] = message.offset() + 1
        return True

    def roots(self):
        """Return the roots that have arrived."""
        return self._roots.copy()

    def await_roots(self, number, *, patience_s=120.0):
        """Return whether so many roots have arrived, and wait for them."""
        until_s = time.monotonic() + patience_s
        while time.monotonic() < until_s:
            if len(self._roots) >= number:
                return True
            time.sleep(_POLL_S)
        return False

    def close(self):
        """Read no more."""
        self._ended.set()
        self._thread.join()
        self._consumer.close()


@contextmanager
def sink_of(app, servers):
    """Read all sinks of *app* until it is left."""
    sink = Sink(servers, [app.topic(sink.stream.name) for sink in app.sinks.values()])
    try:
        yield sink
    finally:
        sink.close()


def load_of(  # noqa: PLR0913 - a load is told by name what differs from the usual
    topology, app, servers, *, points=None, lasts_s=None, seed=1, gaps="poisson"
):
    """Return the load of *topology*: its declared rates, or *points* of one rate for all."""
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
    """Yield what the engine counted, for so long."""
    until_s = engine.now_s + lasts_s
    while engine.now_s < until_s - every_s / 2:
        yield engine.observe(engine.now_s + every_s)


def percentiles_ms(times_s, ratios=(50, 95, 99)):
    """Return percentiles in milliseconds."""
    return [1e3 * float(p) for p in np.percentile(times_s, ratios)]
