"""Deletion of records that all readers have committed, so that topics do not grow forever.

Topics that Sojourn creates have unlimited retention, because an application may be stopped for
any time. In two kinds of them, records are useless once all readers have committed them: topics
of retries, and topics between native and other operators. Sources, sinks and durable streams,
which others may read, and topics that Sojourn did not create, are never trimmed.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Self

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from sojourn.errors import SojournError

__all__ = ["Trimming", "read_by_all"]

_ANSWER_S = 10.0

Positions = Mapping[str, Mapping[int, int]]


def read_by_all(positions: Iterable[Positions]) -> dict[str, dict[int, int]]:
    """Return the lowest committed offset by topic and partition.

    >>> read_by_all([{"words": {0: 7, 1: 4}}, {"words": {0: 5}, "lines": {0: 2}}])
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
        lowest = read_by_all(self._committed())
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
