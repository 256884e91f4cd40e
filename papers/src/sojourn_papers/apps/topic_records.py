"""All records of a topic, with their ids."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from confluent_kafka import Consumer, Message, TopicPartition

from sojourn.app.codec.base import Codec
from sojourn.spark.wire.headers import record_of

_ANSWER_S = 30.0
_READER = {"group.id": "sojourn-check", "enable.auto.commit": False, "log_level": 0}
# An id names the topic with a mark that tells it from another of that name.
_MARK = re.compile("@[^/]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecord:
    """A record, its id, and the id of its root: `topic/partition/offset`."""

    record: tuple[Any, ...]
    identity: str
    root: str


def topic_records(
    clients: Mapping[str, str], topic: str, codec: Codec
) -> Iterator[TopicRecord]:
    """Yield the records that are in *topic* now."""
    reader = Consumer({**_READER, **clients})
    try:
        parts = reader.list_topics(topic, timeout=_ANSWER_S).topics[topic].partitions
        for part in parts:
            first, end = reader.get_watermark_offsets(
                TopicPartition(topic, part), timeout=_ANSWER_S
            )
            reader.assign([TopicPartition(topic, part, first)])
            while first < end:
                for message in reader.consume(1000, 0.1):
                    if message.error() is None:
                        first = (message.offset() or 0) + 1
                        yield _read(message, topic, codec)
    finally:
        reader.close()


def _read(message: Message, topic: str, codec: Codec) -> TopicRecord:
    headers = cast("list[tuple[str, bytes]]", message.headers() or [])
    read = record_of(
        headers,
        message.value() or b"",
        stream=topic,
        topic=topic,
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        timestamp_s=0.0,
    )
    return TopicRecord(
        record=codec.decode(read.payload, read.blobs),
        identity=read.name,
        root=_MARK.sub("", read.root),
    )
