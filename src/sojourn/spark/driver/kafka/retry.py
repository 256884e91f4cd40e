"""Retries of dead letters, by the operator that failed.

The record is written again to the topic that it came from, or to the topic of retries if its
stream is not in Kafka. It keeps its id, so derived records get the same ids as without the
failure. A header addresses it to the operator that failed; other readers of the topic skip it.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition

from sojourn.spark.driver.kafka.dead_letters import (
    RETRIED,
    DeadLetter,
    DeadLetters,
    headers_of,
    reader,
    unreachable,
)
from sojourn.spark.wire.dead_letter import STREAM
from sojourn.spark.wire.headers import (
    BIRTH,
    BLOB,
    FOR,
    ID,
    OURS,
    ROOT,
    TRACE,
    WRITTEN,
    Header,
    addressee,
)

_ANSWER_S, _WRITTEN_S = 10.0, 60.0
# Letters that are retried before their markers are written. If writing the markers fails, the
# letters stay in the list, and may be retried twice.
_TOGETHER = 100

_Partitions = Mapping[str, Iterable[int]]


def retry_letters(
    letters: DeadLetters, chosen: Iterable[DeadLetter]
) -> Iterator[tuple[DeadLetter, str]]:
    """Retry the *chosen* letters; yield each with its error, empty on success."""
    given = list(chosen)
    partitions = _partitions(letters.clients)
    # the limit on the size of messages is left to the broker
    producer = Producer(
        {**letters.clients, "message.max.bytes": "1000000000", "log_level": "0"}
    )
    for start in range(0, len(given), _TOGETHER):
        some = given[start : start + _TOGETHER]
        records = {x.position: _record(letters, x, partitions) for x in some}
        why_not = {at: told for at, told in records.items() if isinstance(told, str)}
        why_not |= _written(
            producer, {at: told for at, told in records.items() if not isinstance(told, str)}
        )
        # markers only once their records are acknowledged: a crash repeats retries, loses none
        notes = {x.position: _note(letters, x) for x in some if not why_not[x.position]}
        why_not |= _written(producer, notes)
        yield from ((letter, why_not[letter.position]) for letter in some)


def _record(
    letters: DeadLetters, letter: DeadLetter, partitions: _Partitions
) -> dict[str, Any] | str:
    """Return the arguments of `Producer.produce` for a letter, or why it cannot be retried."""
    if letter.inner:
        return _inner_record(letters, letter, partitions)
    if not letter.came_from:
        return "the position of its record is not known"
    topic, partition, offset = letter.came_from.rsplit("/", 2)
    if int(partition) not in partitions.get(topic, ()):
        return f"{topic} has no partition {partition}"
    key, value, headers = letter.key, letter.value, letter.headers
    if letter.cut:
        whole = _whole(letters.clients, TopicPartition(topic, int(partition), int(offset)))
        if whole is None:
            return (
                "its payload was truncated, and Kafka no longer has the record "
                f"{letter.came_from}"
            )
        key, value, headers = whole.key(), whole.value(), tuple(headers_of(whole))
    return {
        "topic": topic,
        "partition": int(partition),
        "key": key,
        "value": value,
        "headers": [*_kept(headers), *_ours(letters, letter)],
    }


def _inner_record(
    letters: DeadLetters, letter: DeadLetter, partitions: _Partitions
) -> dict[str, Any] | str:
    """Return the same for a record whose stream is not in Kafka."""
    if letters.retries not in partitions:
        return f"there is no topic {letters.retries}, through which records are retried"
    if letter.cut:
        return f"its payload was truncated, and stream {letter.stream} is not in Kafka"
    ours = [*_ours(letters, letter), (STREAM, letter.stream.encode())]
    return {
        "topic": letters.retries,
        "partition": 0,
        "key": letter.key,
        "value": letter.value,
        "headers": [*_kept(letter.headers), *ours],
    }


def _ours(letters: DeadLetters, letter: DeadLetter) -> list[Header]:
    told = dict(letter.headers)
    return [
        (ID, letter.record.encode()),
        (ROOT, told.get(ROOT, b"")),
        (BIRTH, told.get(BIRTH, b"")),
        (WRITTEN, repr(time.time()).encode()),
        (TRACE, b"0"),  # the latency of a retry must not enter the measurement
        (FOR, addressee(letters.topic, letter.operator).encode()),
    ]


def _note(letters: DeadLetters, letter: DeadLetter) -> dict[str, Any]:
    """Return the marker message of a letter that was retried."""
    return {
        "topic": letters.topic,
        "partition": int(letter.position.partition("/")[0]),
        "value": None,
        "headers": [(RETRIED, letter.position.encode())],
    }


def _kept(headers: Iterable[Header]) -> list[Header]:
    """Return the headers to keep: binary columns, and headers that Sojourn did not set."""
    return [
        (name, value)
        for name, value in headers
        if name.startswith(BLOB) or not name.startswith(OURS)
    ]


def _partitions(clients: Mapping[str, str]) -> _Partitions:
    try:
        with closing(reader(clients)) as asking:
            found = asking.list_topics(timeout=_ANSWER_S).topics
    except KafkaException as error:
        raise unreachable(error) from error
    return {name: set(topic.partitions) for name, topic in found.items()}


def _whole(clients: Mapping[str, str], place: TopicPartition) -> Message | None:
    """Return the message at *place*; None if Kafka no longer has it."""
    with closing(reader(clients)) as topic:
        topic.assign([place])
        message = topic.poll(_ANSWER_S)
    if message is None or message.error() is not None or message.offset() != place.offset:
        return None
    return message


def _written(producer: Producer, messages: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """Write *messages*; return the error of each, empty on success."""
    why_not = dict.fromkeys(messages, "Kafka did not confirm the write")

    def told(name: str, error: KafkaError | None, _: object) -> None:
        why_not[name] = "" if error is None else error.str()

    for name, message in messages.items():
        try:
            producer.produce(**message, on_delivery=partial(told, name))
        except (KafkaException, BufferError) as error:
            why_not[name] = str(error)
    producer.flush(_WRITTEN_S)
    return why_not
