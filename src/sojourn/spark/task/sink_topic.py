"""The ids of the records in the topic of a sink.

They are read from the topic itself: records that were only handed to Spark may not have been
written, if their batch failed.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from operator import itemgetter
from typing import cast

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from sojourn.errors import EngineError
from sojourn.spark.wire.headers import ID, id_in

_ANSWER_S = 30.0
_READER = {
    "group.id": "sojourn",
    "enable.auto.commit": "false",
    # the last offset may have no record, but the end of a transaction or a compacted one
    "enable.partition.eof": "true",
    "isolation.level": "read_uncommitted",
    "fetch.wait.max.ms": "10",
    "log_level": "0",
}


@dataclass(frozen=True, slots=True)
class SinkTopic:
    """The topic of a sink; *clients* are options of Kafka's clients."""

    name: str
    clients: Mapping[str, str] = field(repr=False)

    def end(self, partition: int) -> int:
        with self._reader(partition) as reader:
            return _bounds(reader, self.name, partition)[1]

    def since(self, partition: int, offset: int) -> list[str]:
        """Return the ids in a partition from *offset* on."""
        with self._reader(partition) as reader:
            first, end = _bounds(reader, self.name, partition)
            if offset > end:  # the topic was recreated
                offset = first
            found = _found(reader, self.name, {partition: (max(first, offset), end)})
        return [identity for _, identity in found]

    def last(self, partition: int, number: int) -> list[str]:
        """Return the last *number* ids of all partitions, of which *partition* must be one."""
        spans = {}
        with self._reader(partition) as reader:
            for part in _partitions(reader, self.name):
                first, end = _bounds(reader, self.name, part)
                spans[part] = max(first, end - number), end
            found = _found(reader, self.name, spans)
        if len(spans) > 1:
            # between partitions only timestamps give an order
            found.sort(key=itemgetter(0))
        return [identity for _, identity in found[-number:]]

    @contextmanager
    def _reader(self, partition: int) -> Iterator[Consumer]:
        """Open a consumer. Raise `EngineError` if there is no such partition."""
        with closing(Consumer({**self.clients, **_READER})) as reader:
            there = _partitions(reader, self.name)
            if partition not in there:
                raise EngineError(
                    f"{self.name} has {len(there)} partitions, but the stream that is written "
                    f"to it has more; increase them to {partition + 1} or more"
                )
            yield reader


def _partitions(reader: Consumer, topic: str) -> list[int]:
    told = reader.list_topics(topic, timeout=_ANSWER_S).topics[topic]
    if told.error is not None:
        raise EngineError(f"{topic}: {told.error}")
    return list(told.partitions)


def _bounds(reader: Consumer, topic: str, partition: int) -> tuple[int, int]:
    """Return the first and the end offset of a partition."""
    return reader.get_watermark_offsets(TopicPartition(topic, partition), timeout=_ANSWER_S)


def _found(
    reader: Consumer, topic: str, spans: Mapping[int, tuple[int, int]]
) -> list[tuple[int, str]]:
    """Return timestamps and ids in *spans*: first and end offset, by partition."""
    found = []
    left = {part: end for part, (begin, end) in spans.items() if begin < end}
    reader.assign([TopicPartition(topic, part, spans[part][0]) for part in left])
    while left:
        message = reader.poll(_ANSWER_S)
        if message is None:
            raise EngineError(f"{topic}: no answer from Kafka within {_ANSWER_S:g} s")
        part, offset = cast("int", message.partition()), cast("int", message.offset())
        if (error := message.error()) is None:
            # records after the span are ignored
            if offset < spans[part][1] and (identity := _identity(message)) is not None:
                found.append((message.timestamp()[1], identity))
            offset += 1
        elif error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
            raise EngineError(f"{topic}: {error}")
        if offset >= left.get(part, offset + 1):
            del left[part]
    return found


def _identity(message: Message) -> str | None:
    told = cast("list[tuple[str, bytes]]", message.headers() or [])
    return id_in([{"key": name, "value": value} for name, value in told], ID)
