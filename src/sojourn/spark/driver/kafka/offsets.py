"""End offsets of topics, polled continuously.

Arrivals are counted here and not where operators read records, because an operator that cannot
keep up reads only what it can process. The same polling detects an outage of the brokers first.
"""

import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from operator import itemgetter
from typing import Literal, TypeAlias

import numpy as np
from confluent_kafka import (
    OFFSET_END,
    OFFSET_INVALID,
    IsolationLevel,
    KafkaException,
    TopicPartition,
)

# the types of the package do not say that it exports both
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from sojourn.errors import BrokerAway, EngineError

Standing: TypeAlias = Literal["well", "shaky", "away"]
"""Health of the brokers.

`well`: all partitions answer, and have for the last three minutes. `shaky`: some do not, or did
not in that time. `away`: no broker answers.
"""

_KEPT = 5000
# Polls to keep with the offsets of each partition: eight minutes of them, or two at four times
# the rate, under high load. That is longer than the latency of any record that matters to a
# target.
_KEPT_BY_PARTITION = 2400
_LOOK_S = 0.05
# Kafka's clients give up a record after two minutes, so an outage causes failures until then.
_AFTERMATH_S = 180.0
# From this rate on, a record may not get to Python immediately.
_MANY_PER_S = 1000.0

_Ends = dict[str, dict[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PollTimes:
    """How often offsets are polled, and how long an answer is waited for."""

    every_s: float = 0.2
    """Interval of polls; a quarter of that above 1,000 records per second."""
    seldom_s: float = 10.0
    """Interval for values that seldom change: numbers of partitions, earliest offsets."""
    answer_s: float = 5.0
    """How long a broker may take to answer."""
    retry_s: float = 5.0
    """How long `Offsets.partitions` retries until all partitions answer."""
    start_s: float = 30.0
    """How long the partitions of new topics may take to get a leader."""


class Offsets:
    """End offsets of *topics*, given with their numbers of partitions.

    The polling thread calls all *followers* with the offsets. Times are those of the monotonic
    clock, if nothing else is said. A partition that does not answer keeps its last offset, and
    is polled again.
    """

    def __init__(
        self,
        client: AdminClient,
        topics: Mapping[str, int],
        times: PollTimes = PollTimes(),  # noqa: B008 - it is frozen
    ) -> None:
        self._client, self._topics, self._times = client, dict(topics), times
        self._at_start = dict(topics)
        self._samples: deque[tuple[float, Mapping[str, int]]] = deque(maxlen=_KEPT)
        # by the wall clock: times of records are compared with it
        self._looks: deque[tuple[float, _Ends]] = deque(maxlen=_KEPT_BY_PARTITION)
        self._ends: _Ends = {topic: {} for topic in topics}
        self._first: _Ends = {}
        self._silent: dict[tuple[str, int], float] = {}
        self._answered_s = time.monotonic()
        self._troubled_s = -inf
        self._away = False
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.followers: list[Callable[[Mapping[str, Mapping[int, int]]], None]] = []

    @property
    def away_s(self) -> float | None:
        """Seconds since a broker last answered; None if the last poll got an answer."""
        return time.monotonic() - self._answered_s if self._away else None

    @property
    def standing(self) -> Standing:
        if self._away:
            return "away"
        return "well" if time.monotonic() - self._troubled_s > _AFTERMATH_S else "shaky"

    @property
    def silent(self) -> dict[tuple[str, int], float]:
        """Partitions that do not answer, with the seconds since the first failed poll."""
        now_s = time.monotonic()
        with self._lock:
            return {place: now_s - since_s for place, since_s in self._silent.items()}

    @property
    def numbers(self) -> dict[str, int]:
        with self._lock:
            return dict(self._topics)

    @property
    def grown(self) -> dict[str, tuple[int, int]]:
        """Topics with added partitions: the numbers of partitions at the start and now."""
        with self._lock:
            return {
                topic: (self._at_start[topic], number)
                for topic, number in self._topics.items()
                if number > self._at_start[topic]
            }

    @property
    def oldest(self) -> dict[str, dict[int, int]]:
        """Earliest offsets, as far as they are known; up to some seconds old."""
        with self._lock:
            return {topic: dict(parts) for topic, parts in self._first.items()}

    def held(self, topics: Iterable[str]) -> int:
        """Return the number of records in *topics*; earliest offsets may be seconds old."""
        with self._lock:
            return sum(
                max(0, end - self._first[topic].get(part, end))
                for topic in topics
                if topic in self._first
                for part, end in self._ends[topic].items()
            )

    def start(self) -> None:
        """Wait until all partitions answer, then poll in a thread."""
        self.settle()
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(2 * self._times.answer_s)

    def look(self) -> dict[str, dict[int, int]]:
        """Poll, and return the end offsets. Raise `BrokerAway` if no broker answers."""
        asked_s = time.monotonic()
        found, silent = self._listed(_spec("latest"))
        now_s = time.monotonic()
        with self._lock:
            self._silent = {place: self._silent.get(place, asked_s) for place in silent}
            self._away = not any(found.values())
            if silent:
                self._troubled_s = now_s
            if self._away:
                raise BrokerAway(now_s - self._answered_s)
            self._answered_s = now_s
            for topic, parts in found.items():
                # two threads may poll concurrently, and answers may arrive out of order
                for part, end in parts.items():
                    self._ends[topic][part] = max(end, self._ends[topic].get(part, 0))
            ends = {topic: dict(parts) for topic, parts in self._ends.items()}
            totals = {topic: sum(parts.values()) for topic, parts in ends.items()}
            self._samples.append((now_s, totals))
        self._looks.append((time.time(), ends))
        return ends

    def settle(self) -> None:
        """Poll until all partitions answer; those of new topics may not have a leader yet."""
        until_s = time.monotonic() + self._times.start_s
        while True:
            try:
                self.look()
                if not self._silent:
                    self._troubled_s = -inf  # a missing leader at the start is no outage
                    return
                time.sleep(_LOOK_S)
            except BrokerAway:
                if time.monotonic() > until_s:
                    raise
            if time.monotonic() > until_s:
                raise EngineError(
                    f"{_named(self._silent)} has no leader after {self._times.start_s:g} s; "
                    "see the broker's log"
                )

    def arrivals(
        self, topics: Sequence[str], since_s: float, until_s: float, bins: int
    ) -> list[int]:
        """Return the number of records that arrived in *topics*, in *bins* of equal width."""
        with self._lock:
            # concurrent polls may have appended out of order
            samples = sorted(self._samples, key=itemgetter(0))
        times_s = [at_s for at_s, _ in samples]
        totals = [sum(ends[topic] for topic in topics) for _, ends in samples]
        at_edges = np.interp(np.linspace(since_s, until_s, bins + 1), times_s, totals)
        counted: list[int] = np.diff(np.rint(at_edges).astype(int)).tolist()
        return counted

    def appended(self, topic: str, partition: int, offset: int) -> tuple[float, float] | None:
        """Return the wall-clock times of the polls before and after a record was appended.

        None if it was appended before the first poll in the history, or after the last.
        """
        looks = tuple(self._looks)
        later = bisect_right(
            looks, offset, key=lambda look: look[1].get(topic, {}).get(partition, 0)
        )
        if not 0 < later < len(looks):
            return None
        return looks[later - 1][0], looks[later][0]

    def partitions(self, at: str | float = "latest") -> dict[str, dict[int, int]]:
        """Return the offset of each partition: `latest`, `earliest`, or the first from a time.

        A time is in seconds since 1970. Raise `EngineError` if a partition does not answer.
        """
        until_s = time.monotonic() + self._times.retry_s
        while True:
            found, silent = self._listed(_spec(at))
            if not silent:
                break
            if time.monotonic() > until_s:
                raise EngineError(
                    f"no offsets of {_named(silent)} from Kafka within "
                    f"{self._times.retry_s:g} s: {next(iter(silent.values()))}"
                )
            time.sleep(_LOOK_S)
        if any(n == OFFSET_END for parts in found.values() for n in parts.values()):
            ends = self.partitions()  # for partitions without records since then
            found = {
                topic: {p: ends[topic][p] if n == OFFSET_END else n for p, n in parts.items()}
                for topic, parts in found.items()
            }
        return found

    def _listed(self, spec: OffsetSpec) -> tuple[_Ends, dict[tuple[str, int], str]]:
        """Return the offsets of partitions that answer, and the errors of the others."""
        with self._lock:
            topics = dict(self._topics)
        wanted = {
            TopicPartition(topic, partition): spec
            for topic, partitions in topics.items()
            for partition in range(partitions)
        }
        asked = self._client.list_offsets(
            wanted,
            isolation_level=IsolationLevel.READ_UNCOMMITTED,
            request_timeout=self._times.answer_s,
        )
        found: _Ends = {topic: {} for topic in topics}
        silent: dict[tuple[str, int], str] = {}
        for place, answer in asked.items():
            try:
                offset = answer.result(2 * self._times.answer_s).offset
            except (KafkaException, TimeoutError) as error:
                silent[place.topic, place.partition] = str(error)
                continue
            # for a partition whose broker is gone, the client returns this and no error
            if offset == OFFSET_INVALID:
                silent[place.topic, place.partition] = "its broker does not answer"
            else:
                found[place.topic][place.partition] = offset
        if silent:
            with suppress(KafkaException):  # refreshes the client's metadata: new leaders
                self._client.list_topics(timeout=self._times.answer_s)
        return found, silent

    def _run(self) -> None:
        seldom_s, before, wait_s = 0.0, 0, self._times.every_s
        while not self._ended.wait(wait_s):
            with suppress(EngineError):  # `away_s` and `silent` report it
                ends = self.look()
                for follower in self.followers:
                    follower(ends)
                total = sum(sum(parts.values()) for parts in ends.values())
                busy = total - before > _MANY_PER_S * wait_s
                before, wait_s = total, self._times.every_s / (4 if busy else 1)
                if time.monotonic() > seldom_s:
                    self._count()
                    seldom_s = time.monotonic() + self._times.seldom_s

    def _count(self) -> None:
        """Update values that seldom change: numbers of partitions, and earliest offsets."""
        try:
            told = self._client.list_topics(timeout=self._times.answer_s).topics
        except KafkaException:
            return
        with self._lock:
            for topic, before in self._topics.items():
                if topic in told:
                    self._topics[topic] = max(before, len(told[topic].partitions))
        first, _ = self._listed(_spec("earliest"))
        with self._lock:
            for topic, parts in first.items():
                self._first.setdefault(topic, {}).update(parts)


def _named(places: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{topic}[{partition}]" for topic, partition in sorted(places))


def _spec(at: str | float) -> OffsetSpec:
    spec: OffsetSpec
    if isinstance(at, str):
        spec = getattr(OffsetSpec, at)()
    else:
        spec = OffsetSpec.for_timestamp(round(1e3 * at))
    return spec
