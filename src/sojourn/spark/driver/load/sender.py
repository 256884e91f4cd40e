"""Sends a load to a broker, each record when it is due."""

import heapq
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, repeat
from operator import itemgetter

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import Message as Confirmed

from sojourn.errors import BadWorkload, BrokerFailed
from sojourn.spark.driver.load.offered_load import (
    Load,
    LoadReport,
    Message,
    Source,
    messages,
    payload,
)

_KAFKA = {
    "linger.ms": 0,
    "sticky.partitioning.linger.ms": 0,  # a random partition for each record
    # An idempotent producer first requests a producer id, which delays the first records by
    # half a second.
    "enable.idempotence": False,
    "message.timeout.ms": 30_000,
    "log_level": 0,  # failures are counted in the report
}
_ANSWER_S = 30.0
# Maximum delay until `run` notices `stop`.
_LOOK_S = 0.05
# Time limit for acknowledgements after `stop`; the grace of the watchdog is longer.
_LAST_CONFIRMED_S = 5.0


class Sender:
    """Produces a load: `run` sends it, and returns early after `stop`.

    *answer_s* is the time limit for the connection to brokers, *confirm_s* the time limit for
    the acknowledgements of the last records after `stop`.
    """

    def __init__(
        self,
        load: Load,
        *,
        answer_s: float = _ANSWER_S,
        confirm_s: float = _LAST_CONFIRMED_S,
    ) -> None:
        self._load, self._stopped = load, False
        self._answer_s, self._confirm_s = answer_s, confirm_s
        try:
            self._producer = Producer(
                {"bootstrap.servers": load.servers, **_KAFKA, **load.kafka}
            )
        except KafkaException as error:
            raise BadWorkload(f"kafka: {error}; see the settings of librdkafka") from error
        self._produced, self._sent, self._failed = (
            Counter[str](),
            Counter[str](),
            Counter[str](),
        )
        self._late_s, self._error = 0.0, ""

    def stop(self) -> bool:
        """Make `run` return soon. Safe in a signal handler; always False."""
        self._stopped = True
        return False

    def run(self, progress: Callable[[int], None] = lambda _sent: None) -> LoadReport:
        """Send each record when it is due, or as soon as possible after that.

        *progress* is called with the number of records so far.
        """
        self._check_topics()
        started_s, zero_s = time.time(), time.monotonic()
        for at_s, source, message in self._due():
            if not self._waited(zero_s + at_s):
                break
            self._produce(source.topic, message)
            progress(self._produced.total())
            self._late_s = max(self._late_s, time.monotonic() - zero_s - at_s)
        if self._load.lasts_s is not None:
            self._waited(zero_s + self._load.lasts_s)
        self._flush()
        topics = [source.topic for source in self._load.sources]
        return LoadReport(
            started_s=started_s,
            lasted_s=time.monotonic() - zero_s,
            sent={topic: self._sent[topic] for topic in topics},
            failed={topic: self._failed[topic] for topic in topics},
            late_s=self._late_s,
            error=self._error,
        )

    def _check_topics(self) -> None:
        """Connect before the clock starts; raise `BrokerFailed` if a topic is missing."""
        try:
            there = self._producer.list_topics(timeout=self._answer_s).topics
        except KafkaException as error:
            problem = f"no broker answers at {self._load.servers}: {error}"
            raise BrokerFailed(problem, "start one, or correct the address") from error
        for source in self._load.sources:
            if source.topic not in there:
                raise BrokerFailed(f"there is no topic {source.topic}", "create it first")

    def _due(self) -> Iterator[tuple[float, Source, Message]]:
        """Yield the messages of all sources in the order of their due times."""
        due = (
            zip(self._load.arrivals(source), repeat(i), self._messages(source))
            for i, source in enumerate(self._load.sources)
        )
        # by time, then source: messages themselves cannot be compared
        for at_s, i, message in heapq.merge(*due, key=itemgetter(0, 1)):
            yield at_s, self._load.sources[i], message

    def _messages(self, source: Source) -> Iterator[Message]:
        if source.records:
            return messages(source.records, self._load.seed)
        return ((payload(number, source.size_bytes), {}) for number in count())

    def _waited(self, until_s: float) -> bool:
        """Wait until *until_s*; return False if `stop` was called before."""
        while not self._stopped and (left_s := until_s - time.monotonic()) > 0:
            time.sleep(min(left_s, _LOOK_S))
            self._producer.poll(0)
        return not self._stopped

    def _produce(self, topic: str, message: Message) -> None:
        (value, headers), told = message, partial(self._told, topic)
        while not self._stopped:
            try:
                self._producer.produce(topic, value, headers=headers, on_delivery=told)
            except BufferError:  # the producer's queue is full: wait for acknowledgements
                self._producer.poll(_LOOK_S)
            except KafkaException as error:
                self._produced[topic] += 1
                told(error.args[0])
                return
            else:
                self._produced[topic] += 1
                self._producer.poll(0)
                return

    def _told(
        self, topic: str, error: KafkaError | None, _message: Confirmed | None = None
    ) -> None:
        if error is None:
            self._sent[topic] += 1
        else:
            self._failed[topic] += 1
            self._error = self._error or str(error)

    def _flush(self) -> None:
        """Wait until brokers have acknowledged or rejected all records, or time is up."""
        deadline_s = None
        while self._producer.flush(_LOOK_S):
            if self._stopped and deadline_s is None:
                deadline_s = time.monotonic() + self._confirm_s
            if deadline_s is not None and time.monotonic() > deadline_s:
                self._error = self._error or "the broker did not confirm them in time"
                self._failed = self._produced - self._sent
                return
