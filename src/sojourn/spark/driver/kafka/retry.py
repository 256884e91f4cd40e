"""Dead letters that are put back in, to be worked on again by the operator that failed.

A record goes to the topic it came from, or if it never was in one to that for such retries,
with its id, so that what comes of it has the ids that it would have had; other operators that
read the topic pass it by.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
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

__all__ = ["retry_letters"]

_ANSWER_S, _WRITTEN_S = 10.0, 60.0
# So many are put back in before it is noted: if that fails in between, they come twice.
_TOGETHER = 100

_Partitions = Mapping[str, Iterable[int]]


def retry_letters(
    letters: DeadLetters, chosen: Iterable[DeadLetter]
) -> Iterator[tuple[DeadLetter, str]]:
    """Put *chosen* letters back in; yield each, with the reason if it could not be done."""
    given = list(chosen)
    partitions = _partitions(letters.clients)
    # the broker decides what is too large
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
        notes = {x.position: _note(letters, x) for x in some if not why_not[x.position]}
        why_not |= _written(producer, notes)
        yield from ((letter, why_not[letter.position]) for letter in some)


def _record(
    letters: DeadLetters, letter: DeadLetter, partitions: _Partitions
) -> dict[str, Any] | str:
    """Return the record of a letter as Kafka takes it, or why there is none."""
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
    """Return a record that went from operator to operator as Kafka takes it, or why not."""
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
        (TRACE, b"0"),  # when it is done says nothing about how long records take
        (FOR, addressee(letters.topic, letter.operator).encode()),
    ]


def _note(letters: DeadLetters, letter: DeadLetter) -> dict[str, Any]:
    """Return what says that a letter was put back in."""
    return {
        "topic": letters.topic,
        "partition": int(letter.position.partition("/")[0]),
        "value": None,
        "headers": [(RETRIED, letter.position.encode())],
    }


def _kept(headers: Iterable[Header]) -> list[Header]:
    """Return binary columns, and the headers of others."""
    return [
        (name, value)
        for name, value in headers
        if name.startswith(BLOB) or not name.startswith(OURS)
    ]


def _partitions(clients: Mapping[str, str]) -> _Partitions:
    asking = reader(clients)
    try:
        found = asking.list_topics(timeout=_ANSWER_S).topics
    except KafkaException as error:
        raise unreachable(error) from error
    finally:
        asking.close()
    return {name: set(topic.partitions) for name, topic in found.items()}


def _whole(clients: Mapping[str, str], place: TopicPartition) -> Message | None:
    """Return the message at *place*, if it is still there."""
    topic = reader(clients)
    try:
        topic.assign([place])
        message = topic.poll(_ANSWER_S)
    finally:
        topic.close()
    there = message is not None and message.error() is None
    return message if there and message and message.offset() == place.offset else None


def _written(producer: Producer, messages: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """Return for each message why it was not written; empty where it was."""
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
