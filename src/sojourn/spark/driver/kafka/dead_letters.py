"""The dead letters of an application, read from their topic.

When a letter is retried, an empty marker message with its position is appended to the same
partition. The marker is retained as long as the letter, so every reader sees the same list.
"""

import re
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from sojourn.errors import BadInput, BrokerFailed, EngineError
from sojourn.spark.wire.dead_letter import (
    CUT,
    OPERATOR,
    POSITION,
    RECORD,
    STREAM,
    TRACEBACK,
    TRIES,
)
from sojourn.spark.wire.headers import ERROR, Header

RETRIED = "sojourn-retried"
"""Header of a marker message: the partition and offset of a letter that was retried."""

_ANSWER_S, _AGAIN_S = 10.0, 0.1
_NO_LEADER = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)
_PLACE = re.compile(r"[\w.-]+/\d{1,9}/\d{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A record that an operator could not process, and the reason."""

    position: str
    """Partition and offset in the topic of dead letters."""
    at_s: float
    operator: str
    stream: str
    record: str
    """Id of the record."""
    came_from: str
    """Topic, partition and offset of the record; empty if unknown."""
    error: str
    traceback: str
    tries: int
    cut: bool
    """Whether the payload was truncated."""
    inner: bool
    """Whether the record came from a stream that is not in Kafka."""
    key: bytes | None = field(repr=False)
    value: bytes | None = field(repr=False)
    headers: tuple[Header, ...] = field(repr=False)


class DeadLetters:
    """The dead letters of *application*; *clients* are the client settings for its Kafka."""

    def __init__(self, application: str, clients: Mapping[str, str]) -> None:
        self.application, self.clients = application, dict(clients)

    @property
    def topic(self) -> str:
        return f"{self.application}.dead-letters"

    @property
    def retries(self) -> str:
        """Name of the topic through which records of streams outside Kafka are retried."""
        return f"{self.application}.retries"

    def found(self, since_s: float | None = None) -> list[DeadLetter]:
        """Return the letters that were not retried, the newest last."""
        letters: dict[str, DeadLetter] = {}
        for message in self._messages(since_s):
            headers = dict(headers_of(message))
            # a marker follows its letter in the same partition, so the letter is known by now
            if RETRIED in headers:
                letters.pop(headers[RETRIED].decode(errors="replace"), None)
            elif ERROR in headers:
                letter = _letter(message)
                letters[letter.position] = letter
        return sorted(letters.values(), key=lambda letter: letter.at_s)

    def chosen(
        self,
        since_s: float | None,
        positions: Collection[str],
        operators: Collection[str] = (),
    ) -> list[DeadLetter]:
        """Return the letters at *positions* and of *operators*; an empty filter matches all.

        Raise `BadInput` if a position or an operator has no letter.
        """
        found = self.found(since_s)
        for what, asked, there in (
            ("at", positions, {letter.position for letter in found}),
            ("of operator", operators, {letter.operator for letter in found}),
        ):
            for name in asked:
                if name not in there:
                    raise BadInput(
                        f"there is no dead letter {what} {name}, or it was retried; "
                        "`sojourn dead-letters` lists them"
                    )
        return [
            letter
            for letter in found
            if (not positions or letter.position in positions)
            and (not operators or letter.operator in operators)
        ]

    def _messages(self, since_s: float | None) -> Iterator[Message]:
        try:
            with closing(reader(self.clients)) as topic:
                # `left`: partitions of which the end has not been reached
                left = self._begun_in_time(topic, since_s)
                while left:
                    message = topic.poll(_ANSWER_S)
                    if message is None:
                        raise EngineError(
                            f"{self.topic}: no answer from Kafka within {_ANSWER_S:g} s"
                        )
                    if (error := message.error()) is None:
                        yield message
                    elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                        left.discard(cast("int", message.partition()))
                    else:
                        raise EngineError(f"{self.topic}: {error}")
        except KafkaException as error:
            raise unreachable(error) from error

    def _begun_in_time(self, topic: Consumer, since_s: float | None) -> set[int]:
        """Assign partitions; retry while one has no leader, as in a new topic."""
        until_s = time.monotonic() + _ANSWER_S
        while True:
            try:
                return self._begun(topic, since_s)
            except KafkaException as error:
                if error.args[0].code() not in _NO_LEADER or time.monotonic() > until_s:
                    raise
                time.sleep(_AGAIN_S)

    def _begun(self, topic: Consumer, since_s: float | None) -> set[int]:
        """Seek to the first offset to read, and return the partitions that are not empty."""
        told = topic.list_topics(self.topic, timeout=_ANSWER_S).topics[self.topic]
        if told.error is not None:
            raise EngineError(
                f"there is no topic {self.topic}; check the name of the application "
                f"({self.application}), and whether it ran with this Kafka"
            )
        since_ms = int((since_s or 0.0) * 1000)
        places = [TopicPartition(self.topic, part, since_ms) for part in told.partitions]
        begins = topic.offsets_for_times(places, timeout=_ANSWER_S)
        # a partition without messages since then answers with its end: nothing to read
        some = []
        for place in begins:
            _, end = topic.get_watermark_offsets(place, timeout=_ANSWER_S)
            if 0 <= place.offset < end:
                some.append(place)
        topic.assign(some)
        return {place.partition for place in some}


def reader(clients: Mapping[str, str]) -> Consumer:
    """Return a consumer that commits no offsets and reports the end of each partition."""
    return Consumer(
        {
            **clients,
            "group.id": "sojourn",
            "enable.auto.commit": "false",
            "enable.partition.eof": "true",
            "auto.offset.reset": "error",
            "log_level": "0",
        }
    )


def unreachable(error: KafkaException) -> BrokerFailed:
    return BrokerFailed(
        f"dead letters cannot be read from Kafka: {error.args[0].str()}",
        "check the address and the security options",
    )


def headers_of(message: Message) -> list[Header]:
    """Return the headers of a message, with empty bytes in place of null values."""
    told = cast("list[tuple[str, bytes | None]]", message.headers() or [])
    return [(name, value or b"") for name, value in told]


def _letter(message: Message) -> DeadLetter:
    headers = headers_of(message)
    told = {name: content.decode(errors="replace") for name, content in headers}
    tries, place = told.get(TRIES, "1"), told.get(POSITION, "")
    return DeadLetter(
        position=f"{message.partition()}/{message.offset()}",
        at_s=message.timestamp()[1] / 1000,
        operator=told.get(OPERATOR, ""),
        stream=told.get(STREAM, ""),
        record=told.get(RECORD, ""),
        came_from=place if _PLACE.fullmatch(place) else "",
        error=told[ERROR],
        traceback=told.get(TRACEBACK, ""),
        tries=int(tries) if tries.isdecimal() else 1,
        cut=CUT in told,
        inner=STREAM in told and POSITION not in told,
        key=message.key(),
        value=message.value(),
        headers=tuple(headers),
    )
