"""What a sink holds already: the ids at the end of its topic, whatever partition they are in.

Only what is read from the topic is held, never what was merely handed to Spark: a batch that
fails may not have been written.
"""

from collections import OrderedDict
from collections.abc import Mapping
from operator import itemgetter
from typing import cast

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from sojourn.errors import EngineError
from sojourn.spark.headers import identity_of

__all__ = ["RecentIds", "SinkTail", "sink_tail"]

_ANSWER_S = 30.0
_READER = {
    "group.id": "sojourn",
    "enable.auto.commit": "false",
    # the last offset may be no record: a transaction's end, or what was compacted away
    "enable.partition.eof": "true",
    "isolation.level": "read_uncommitted",
    "fetch.wait.max.ms": "10",
    "log_level": "0",
}


class RecentIds:
    """The last *window* ids.

    >>> recent = RecentIds(2)
    >>> [recent.is_new(identity) for identity in ("a", "b", "a", "c", "b", "a")]
    [True, True, False, True, False, True]
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._known: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, identity: str) -> bool:
        return identity in self._known

    def is_new(self, identity: str) -> bool:
        """Return whether *identity* was not seen before, and remember it."""
        if identity in self._known:
            return False
        self._known[identity] = None
        if len(self._known) > self._window:
            self._known.popitem(last=False)
        return True


class SinkTail:
    """The ids of the last *window* records of *topic*, as it was when last read."""

    def __init__(self, topic: str, window: int) -> None:
        self._topic, self._window = topic, window
        self._ids = RecentIds(window)
        self._next: dict[int, int] = {}

    def __contains__(self, identity: str) -> bool:
        return identity in self._ids

    def read(self, clients: Mapping[str, str]) -> int:
        """Read what has been written since, and return how many records that were."""
        reader = Consumer({**clients, **_READER})
        try:
            found = self._found(reader, self._assign(reader))
        finally:
            reader.close()
        if len(self._next) > 1:
            # which of two partitions has the later one is told by the clock alone
            found.sort(key=itemgetter(0))
        for _, identity in found:
            if identity is not None:
                self._ids.is_new(identity)
        return len(found)

    def _assign(self, reader: Consumer) -> dict[int, int]:
        """Begin in each partition after what is known, and return where those with more end."""
        told = reader.list_topics(self._topic, timeout=_ANSWER_S).topics[self._topic]
        if told.error is not None:
            raise EngineError(f"{self._topic}: {told.error}")
        ends, places = {}, []
        for part in told.partitions:
            place = TopicPartition(self._topic, part)
            first, end = reader.get_watermark_offsets(place, timeout=_ANSWER_S)
            if self._next.get(part, 0) > end:  # another topic of that name
                self._ids, self._next = RecentIds(self._window), {}
                return self._assign(reader)
            begin = max(first, end - self._window, self._next.get(part, 0))
            self._next[part] = end
            if begin < end:
                ends[part] = end
                places.append(TopicPartition(self._topic, part, begin))
        reader.assign(places)
        return ends

    def _found(self, reader: Consumer, ends: dict[int, int]) -> list[tuple[int, str | None]]:
        """Return when the records before *ends* were written, and their ids."""
        found = []
        left = dict(ends)
        while left:
            message = reader.poll(_ANSWER_S)
            if message is None:
                raise EngineError(f"{self._topic}: no answer from Kafka within {_ANSWER_S:g} s")
            part, offset = cast("int", message.partition()), cast("int", message.offset())
            if (error := message.error()) is None:
                if offset < ends[part]:  # what comes later is read later
                    found.append((message.timestamp()[1], _identity(message)))
                offset += 1
            elif error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                raise EngineError(f"{self._topic}: {error}")
            if offset >= left.get(part, offset + 1):
                del left[part]
        return found


def _identity(message: Message) -> str | None:
    told = cast("list[tuple[str, bytes]]", message.headers() or [])
    return identity_of([{"key": name, "value": value} for name, value in told])


_held: dict[tuple[str, str, int], SinkTail] = {}


def sink_tail(clients: Mapping[str, str], topic: str, window: int) -> SinkTail:
    """Return the end of *topic* as it is now.

    Spark uses a process for many batches, so what one has read the next need not read again.
    """
    key = clients["bootstrap.servers"], topic, window
    end = _held.pop(key, None) or SinkTail(topic, window)
    end.read(clients)
    _held[key] = end  # not if it could not be read: then nobody knows how far it was
    return end
