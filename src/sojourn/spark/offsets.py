"""How many records there are in topics, asked again and again.

What arrives is counted here and not where it is taken: an operator that cannot keep up takes
only what it can do.
"""

import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition

# the types of the package do not say that it exports both
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from sojourn.errors import EngineError

__all__ = ["Offsets"]

_ANSWER_S = 5.0
_KEPT = 5000
_SETTLES_S, _LOOK_S = 5.0, 0.05
_STARTS_S = 30.0
_NOT_YET = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
)

_Counted = tuple[float, Mapping[str, int]]


class Offsets:
    """End offsets of *topics* with their partitions, asked every *every_s*.

    Times are those of the machine's steady clock. A broker that does not answer is asked again.
    """

    def __init__(
        self, client: AdminClient, topics: Mapping[str, int], *, every_s: float = 0.2
    ) -> None:
        self._client, self._topics, self._every_s = client, dict(topics), every_s
        self._samples: deque[_Counted] = deque(maxlen=_KEPT)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

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
        """Return the offsets that come next now. Raise `EngineError` if no broker answers."""
        ends = self.partitions()
        totals = {topic: sum(parts.values()) for topic, parts in ends.items()}
        self._samples.append((time.monotonic(), totals))
        return ends

    def settle(self) -> None:
        """Look, and do so again while no broker answers: all start at once, and are busy."""
        until_s = time.monotonic() + _STARTS_S
        while True:
            try:
                self.look()
            except EngineError:
                if time.monotonic() > until_s:
                    raise
            else:
                return

    def arrivals(
        self, topics: Sequence[str], since_s: float, until_s: float, bins: int
    ) -> list[int]:
        """Return how many records came to *topics* in each of the *bins* of that time."""
        samples = sorted(self._samples)
        width_s = (until_s - since_s) / bins
        totals = [
            _at(samples, topics, since_s + width_s * number) for number in range(bins + 1)
        ]
        return [round(after) - round(before) for before, after in pairwise(totals)]

    def partitions(self, at: str | float = "latest") -> dict[str, dict[int, int]]:
        """Return the offset that comes next in each partition; or the earliest, or at a time.

        A time is in seconds since 1970.
        """
        until_s = time.monotonic() + _SETTLES_S
        while True:
            try:
                found = self._listed(_spec(at))
            except (KafkaException, TimeoutError) as error:
                if _passes(error) and time.monotonic() < until_s:
                    time.sleep(_LOOK_S)
                    continue
                raise EngineError(
                    f"Kafka did not say how many records there are: {error}"
                ) from error
            break
        if any(offset < 0 for parts in found.values() for offset in parts.values()):
            ends = self.partitions()  # nothing is as young as the time that was asked for
            found = {
                topic: {part: n if n >= 0 else ends[topic][part] for part, n in parts.items()}
                for topic, parts in found.items()
            }
        return found

    def _listed(self, spec: OffsetSpec) -> dict[str, dict[int, int]]:
        wanted = {
            TopicPartition(topic, partition): spec
            for topic, partitions in self._topics.items()
            for partition in range(partitions)
        }
        asked = self._client.list_offsets(
            wanted, isolation_level=IsolationLevel.READ_UNCOMMITTED, request_timeout=_ANSWER_S
        )
        found: dict[str, dict[int, int]] = {topic: {} for topic in self._topics}
        for place, answer in asked.items():
            found[place.topic][place.partition] = answer.result(_ANSWER_S).offset
        return found

    def _run(self) -> None:
        while not self._ended.wait(self._every_s):
            with suppress(EngineError):  # whoever looks is told
                self.look()


def _passes(error: Exception) -> bool:
    """Tell whether a topic is only too new: its broker does not lead it yet."""
    told = error.args[0] if error.args else None
    return isinstance(told, KafkaError) and told.code() in _NOT_YET


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
