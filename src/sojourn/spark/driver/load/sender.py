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
from sojourn.spark.driver.load.offered_load import Load, LoadReport, Source, payload
from sojourn.spark.driver.load.samples import Message, messages

__all__ = ["Sender"]

_KAFKA = {
    "linger.ms": 0,
    "sticky.partitioning.linger.ms": 0,  # each record goes to a partition of its own choice
    # A producer that never writes twice first asks for an id, which takes half a second that
    # the first records would wait.
    "enable.idempotence": False,
    "message.timeout.ms": 30_000,
    "log_level": 0,  # what fails is counted
}
_ANSWER_S = 30.0
# How long at most it does not notice that it is told to end.
_LOOK_S = 0.05
# Told to end, how long it waits for the broker to confirm; the watchdog gives it more.
_LAST_CONFIRMED_S = 5.0


class Sender:
    """A load on its way: `run` sends it, and returns early once `stop` was called.

    Brokers have *answer_s* to answer, and after `stop` *confirm_s* to confirm the last records.
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
        """Let `run` end, and return False. It may be called by a signal's handler."""
        self._stopped = True
        return False

    def run(self, progress: Callable[[int], None] = lambda _sent: None) -> LoadReport:
        """Send every record when it is due, or as soon as possible after.

        *progress* is told how many there were so far.
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
        """Raise `BrokerFailed` unless all are there; and be connected before the start."""
        try:
            there = self._producer.list_topics(timeout=self._answer_s).topics
        except KafkaException as error:
            problem = f"no broker answers at {self._load.servers}: {error}"
            raise BrokerFailed(problem, "start one, or correct the address") from error
        for source in self._load.sources:
            if source.topic not in there:
                raise BrokerFailed(f"there is no topic {source.topic}", "create it first")

    def _due(self) -> Iterator[tuple[float, Source, Message]]:
        """Yield what is due when, of all sources; a source ends when it has no more records."""
        due = (
            zip(self._load.arrivals(source), repeat(i), self._messages(source))
            for i, source in enumerate(self._load.sources)
        )
        for at_s, i, message in heapq.merge(*due, key=itemgetter(0, 1)):
            yield at_s, self._load.sources[i], message

    def _messages(self, source: Source) -> Iterator[Message]:
        if source.records:
            return messages(source.records, self._load.seed)
        return ((payload(number, source.size_bytes), {}) for number in count())

    def _waited(self, until_s: float) -> bool:
        """Return whether it is *until_s*, and not the end before."""
        while not self._stopped and (left_s := until_s - time.monotonic()) > 0:
            time.sleep(min(left_s, _LOOK_S))
            self._producer.poll(0)
        return not self._stopped

    def _produce(self, topic: str, message: Message) -> None:
        (value, headers), told = message, partial(self._told, topic)
        while not self._stopped:
            try:
                self._producer.produce(topic, value, headers=headers, on_delivery=told)
            except BufferError:  # the broker is slower than we
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
        """Return when the broker has confirmed all, or refused, or has had its time."""
        deadline_s = None
        while self._producer.flush(_LOOK_S):
            if self._stopped and deadline_s is None:
                deadline_s = time.monotonic() + self._confirm_s
            if deadline_s is not None and time.monotonic() > deadline_s:
                self._error = self._error or "the broker did not confirm them in time"
                self._failed = self._produced - self._sent
                return
