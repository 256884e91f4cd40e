"""How many records there are in topics, asked again and again.

What arrives is counted here and not where it is taken: an operator that cannot keep up takes
only what it can do. Whoever asks all the time is also the first to know that no broker answers.
"""

import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from math import inf
from operator import itemgetter
from typing import Literal, TypeAlias

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

__all__ = ["Offsets", "Standing"]

Standing: TypeAlias = Literal["well", "shaky", "away"]
"""All answer; some partitions have no answer, or had none a while ago; no broker answers."""

_ANSWER_S = 5.0
_KEPT = 5000
_SETTLES_S, _LOOK_S = 5.0, 0.05
_STARTS_S = 30.0
# Kafka's clients give up a record after two minutes: so long after an outage it makes failures.
_AFTERMATH_S = 180.0
# How often to ask for what changes seldom: the number of partitions, the oldest records.
_SELDOM_S = 10.0
# From so many records in a second on, a record may not get to Python as soon as it comes.
_MANY_PER_S = 1000.0

_Counted = tuple[float, Mapping[str, int]]
_Ends = dict[str, dict[int, int]]


class Offsets:
    """End offsets of *topics* with their partitions, asked every *every_s*.

    While many records come they are asked more often. *followers* are told each time. Times
    are those of the machine's steady clock. A broker that does not answer is asked again; of
    a partition that has no answer the last one counts.
    """

    def __init__(
        self, client: AdminClient, topics: Mapping[str, int], *, every_s: float = 0.2
    ) -> None:
        self._client, self._topics, self._every_s = client, dict(topics), every_s
        self._at_start = dict(topics)
        self._samples: deque[_Counted] = deque(maxlen=_KEPT)
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
        """For how long no broker has answered; None if one does."""
        return time.monotonic() - self._answered_s if self._away else None

    @property
    def standing(self) -> Standing:
        """How the brokers are."""
        if self._away:
            return "away"
        return "well" if time.monotonic() - self._troubled_s > _AFTERMATH_S else "shaky"

    @property
    def silent(self) -> dict[tuple[str, int], float]:
        """Partitions without an answer, and for how many seconds."""
        now_s = time.monotonic()
        with self._lock:
            return {place: now_s - since_s for place, since_s in self._silent.items()}

    @property
    def numbers(self) -> dict[str, int]:
        """How many partitions each topic has."""
        with self._lock:
            return dict(self._topics)

    @property
    def grown(self) -> dict[str, tuple[int, int]]:
        """Topics that have got partitions since the start: how many there were, and are."""
        with self._lock:
            return {
                topic: (self._at_start[topic], number)
                for topic, number in self._topics.items()
                if number > self._at_start[topic]
            }

    @property
    def oldest(self) -> dict[str, dict[int, int]]:
        """The offsets of the oldest records, as of some seconds ago, where they are known."""
        with self._lock:
            return {topic: dict(parts) for topic, parts in self._first.items()}

    def held(self, topics: Iterable[str]) -> int:
        """Return how many records *topics* hold, as it was some seconds ago."""
        with self._lock:
            return sum(
                max(0, end - self._first[topic].get(part, end))
                for topic in topics
                if topic in self._first
                for part, end in self._ends[topic].items()
            )

    def start(self) -> None:
        """Begin to ask."""
        self.settle()
        self._thread.start()

    def stop(self) -> None:
        """Ask no more."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(2 * _ANSWER_S)

    def look(self) -> dict[str, dict[int, int]]:
        """Return the offsets that come next now. Raise `BrokerAway` if no broker answers."""
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
                # two may look at once, and what was asked first may be answered last
                for part, end in parts.items():
                    self._ends[topic][part] = max(end, self._ends[topic].get(part, 0))
            ends = {topic: dict(parts) for topic, parts in self._ends.items()}
            totals = {topic: sum(parts.values()) for topic, parts in ends.items()}
            self._samples.append((now_s, totals))
        return ends

    def settle(self) -> None:
        """Look until all partitions have an answer: all start at once, and are busy."""
        until_s = time.monotonic() + _STARTS_S
        while True:
            try:
                self.look()
                if not self._silent:
                    self._troubled_s = -inf  # topics that were just made have no leader yet
                    return
                time.sleep(_LOOK_S)
            except BrokerAway:
                if time.monotonic() > until_s:
                    raise
            if time.monotonic() > until_s:
                raise EngineError(
                    f"{_named(self._silent)} has no leader after {_STARTS_S:g} s; "
                    "see the broker's log"
                )

    def arrivals(
        self, topics: Sequence[str], since_s: float, until_s: float, bins: int
    ) -> list[int]:
        """Return how many records came to *topics* in each of the *bins* of that time."""
        with self._lock:
            samples = sorted(self._samples, key=itemgetter(0))
        width_s = (until_s - since_s) / bins
        totals = [
            _at(samples, topics, since_s + width_s * number) for number in range(bins + 1)
        ]
        return [round(after) - round(before) for before, after in pairwise(totals)]

    def partitions(self, at: str | float = "latest") -> dict[str, dict[int, int]]:
        """Return the offset that comes next in each partition; or the earliest, or at a time.

        A time is in seconds since 1970. Raise `EngineError` if a partition has no answer.
        """
        until_s = time.monotonic() + _SETTLES_S
        while True:
            found, silent = self._listed(_spec(at))
            if not silent:
                break
            if time.monotonic() > until_s:
                raise EngineError(
                    f"no offsets of {_named(silent)} from Kafka within {_SETTLES_S:g} s: "
                    f"{next(iter(silent.values()))}"
                )
            time.sleep(_LOOK_S)
        if any(n == OFFSET_END for parts in found.values() for n in parts.values()):
            ends = self.partitions()  # nothing is as young as the time that was asked for
            found = {
                topic: {p: ends[topic][p] if n == OFFSET_END else n for p, n in parts.items()}
                for topic, parts in found.items()
            }
        return found

    def _listed(self, spec: OffsetSpec) -> tuple[_Ends, dict[tuple[str, int], str]]:
        """Return the offsets that brokers tell, and why they do not tell the others."""
        with self._lock:
            topics = dict(self._topics)
        wanted = {
            TopicPartition(topic, partition): spec
            for topic, partitions in topics.items()
            for partition in range(partitions)
        }
        asked = self._client.list_offsets(
            wanted, isolation_level=IsolationLevel.READ_UNCOMMITTED, request_timeout=_ANSWER_S
        )
        found: _Ends = {topic: {} for topic in topics}
        silent: dict[tuple[str, int], str] = {}
        for place, answer in asked.items():
            try:
                offset = answer.result(2 * _ANSWER_S).offset
            except (KafkaException, TimeoutError) as error:
                silent[place.topic, place.partition] = str(error)
                continue
            # what the client says of a partition whose broker is gone: no error
            if offset == OFFSET_INVALID:
                silent[place.topic, place.partition] = "its broker does not answer"
            else:
                found[place.topic][place.partition] = offset
        if silent:
            with suppress(KafkaException):  # so that the client asks those that lead them now
                self._client.list_topics(timeout=_ANSWER_S)
        return found, silent

    def _run(self) -> None:
        seldom_s, before, wait_s = 0.0, 0, self._every_s
        while not self._ended.wait(wait_s):
            with suppress(EngineError):  # whoever looks is told
                ends = self.look()
                for follower in self.followers:
                    follower(ends)
                total = sum(sum(parts.values()) for parts in ends.values())
                busy = total - before > _MANY_PER_S * wait_s
                before, wait_s = total, self._every_s / (4 if busy else 1)
                if time.monotonic() > seldom_s:
                    self._count()
                    seldom_s = time.monotonic() + _SELDOM_S

    def _count(self) -> None:
        """Note what changes seldom: partitions that were added, and the oldest records."""
        try:
            told = self._client.list_topics(timeout=_ANSWER_S).topics
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


def _at(samples: Sequence[_Counted], topics: Sequence[str], at_s: float) -> float:
    """Return how many records there were at a time, between two samples in proportion."""
    place = bisect_right(samples, at_s, key=lambda sample: sample[0])
    before = samples[max(0, place - 1)]
    after = samples[min(place, len(samples) - 1)]
    low, high = (sum(sample[1][topic] for topic in topics) for sample in (before, after))
    if after[0] <= before[0] or at_s <= before[0]:
        return float(low)
    return low + (high - low) * min(1.0, (at_s - before[0]) / (after[0] - before[0]))
