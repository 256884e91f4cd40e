"""Records sent at given times, from a thread: for what a load's process does not send.

The same times and numbers give the same records: two measurements that get the same can be
compared record by record, and chance is alike for both.
"""

import threading
import time
from itertools import islice, takewhile
from random import Random

from confluent_kafka import Producer

from sojourn.spark.driver.load.offered_load import arrivals_s, drawn_gaps

_LOOK_S = 0.05
_CONFIRMED_S = 30.0


class Producing:
    """Sends what *made* makes of 0, 1, 2 … when it is due, *due_s* after the start.

    *made* returns the payload and the headers. A context manager: leaving it stops it.
    """

    def __init__(self, servers, topic, due_s, made):
        self._topic, self._due_s, self._made = topic, list(due_s), made
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "linger.ms": 0,
                "sticky.partitioning.linger.ms": 0,
                "enable.idempotence": False,
                "log_level": 0,
            }
        )
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.sent, self.failed, self.late_s = 0, 0, 0.0

    def __enter__(self):
        # be connected before the start
        self._producer.list_topics(self._topic, timeout=_CONFIRMED_S)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self.wait()

    @property
    def running(self):
        """Whether there is more to send."""
        return self._thread.is_alive()

    def wait(self):
        """Return when all is sent and confirmed."""
        self._thread.join()

    def _run(self):
        zero_s = time.monotonic()
        for number, due_s in enumerate(self._due_s):
            while (left_s := zero_s + due_s - time.monotonic()) > 0:
                self._producer.poll(0)
                if self._ended.wait(min(left_s, _LOOK_S)):
                    break
            if self._ended.is_set():
                break
            value, headers = self._made(number)
            self._producer.produce(
                self._topic, value, headers=headers, on_delivery=self._delivered
            )
            self.late_s = max(self.late_s, time.monotonic() - zero_s - due_s)
        self._producer.flush(_CONFIRMED_S)

    def _delivered(self, error, _message):
        if error is None:
            self.sent += 1
        else:
            self.failed += 1


def poisson_s(per_s, *, seed, lasts_s=None, number=None):
    """Return the times of a Poisson stream, for so long or so many."""
    times = arrivals_s(((0.0, per_s),), drawn_gaps("poisson", Random(f"times {seed}")))
    if number is not None:
        return list(islice(times, number))
    return list(takewhile(lambda at_s: at_s < lasts_s, times))
