"""Records that are deleted from Kafka: what all readers have committed, and what was lost.

Topics that Sojourn creates have unlimited retention, because an application may be stopped for
any time. In two kinds of them, records are useless once all readers have committed them: topics
of retries, and topics between native and other operators. They are trimmed, so that they do not
grow forever. Sources, sinks and durable streams, which others may read, and topics that Sojourn
did not create, are never trimmed; there, Kafka's retention may delete records before an
application has read them.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from sojourn.errors import BadInput, SojournError

_ANSWER_S = 10.0

Positions = Mapping[str, Mapping[int, int]]


def _read_by_all(positions: Iterable[Positions]) -> dict[str, dict[int, int]]:
    """Return the lowest committed offset by topic and partition.

    >>> _read_by_all([{"words": {0: 7, 1: 4}}, {"words": {0: 5}, "lines": {0: 2}}])
    {'words': {0: 5, 1: 4}, 'lines': {0: 2}}
    """
    lowest: dict[str, dict[int, int]] = {}
    for each in positions:
        for topic, partitions in each.items():
            known = lowest.setdefault(topic, {})
            for partition, offset in partitions.items():
                known[partition] = min(offset, known.get(partition, offset))
    return lowest


class Trimming:
    """Trims topics every *every_s*; a context manager.

    *committed* returns the committed offsets of each reader, of the topics that may be trimmed.
    If a broker does not answer, or denies the request, the next turn retries it.
    """

    def __init__(
        self,
        client: AdminClient,
        committed: Callable[[], Iterable[Positions]],
        *,
        every_s: float = 60.0,
    ) -> None:
        self._client, self._committed, self._every_s = client, committed, every_s
        self._removed: dict[tuple[str, int], int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._ended.set()
        self._thread.join()

    def trim(self) -> None:
        """Delete the records that all readers have committed by now."""
        lowest = _read_by_all(self._committed())
        places = [
            TopicPartition(topic, partition, offset)
            for topic, partitions in lowest.items()
            for partition, offset in partitions.items()
            if offset > self._removed.get((topic, partition), 0)  # skip requests without effect
        ]
        if not places:
            return
        asked = self._client.delete_records(places, request_timeout=_ANSWER_S)
        for place, done in asked.items():
            with suppress(KafkaException):
                done.result(_ANSWER_S)
                self._removed[place.topic, place.partition] = place.offset

    def _run(self) -> None:
        while not self._ended.wait(self._every_s):
            with suppress(SojournError, KafkaException, OSError, ValueError, TimeoutError):
                self.trim()


@dataclass(frozen=True, slots=True, order=True)
class LostRecords:
    """The lost offsets of a partition: from *first* to *end*, exclusive."""

    topic: str
    partition: int
    first: int
    end: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}] offsets {self.first} to {self.end - 1}"


def lost_records(positions: Iterable[Positions], earliest: Positions) -> list[LostRecords]:
    """Return the gaps between the offsets at which queries resume and the *earliest* in Kafka.

    >>> lost_records([{"orders": {0: 7, 1: 9}}], {"orders": {0: 9, 1: 9}})
    [LostRecords(topic='orders', partition=0, first=7, end=9)]
    """
    return sorted(
        LostRecords(topic, partition, offset, end)
        for topic, partitions in _read_by_all(positions).items()
        for partition, offset in partitions.items()
        if offset < (end := earliest.get(topic, {}).get(partition, 0))
    )


def refuse_lost(lost: Sequence[LostRecords]) -> None:
    """Raise `BadInput` if anything is lost."""
    if lost:
        raise BadInput(
            f"Kafka deleted {told_lost(lost)} before the application read them; start with "
            "--skip-lost to skip them and keep all states, and increase the retention of the "
            "topics"
        )


def told_lost(lost: Sequence[LostRecords]) -> str:
    """Return the number of lost records and their offsets, for a message.

    >>> told_lost([LostRecords("orders", 0, 7, 9)])
    '2 records (orders[0] offsets 7 to 8)'
    """
    number = sum(each.end - each.first for each in lost)
    return f"{number} records ({', '.join(map(str, lost))})"
