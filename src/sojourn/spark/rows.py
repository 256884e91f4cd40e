"""Kafka's rows as the records of a host, and what a host answers as rows for Kafka."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from zlib import crc32

import pyarrow as pa

from sojourn.app.codec import codec_of
from sojourn.app.stream import Stream
from sojourn.host.messages import Answer, Record
from sojourn.host.sizes import MOST_BYTES, message_bytes
from sojourn.spark.carry_over import PassedRecord
from sojourn.spark.headers import (
    LATEST_S,
    MOST_TRACED,
    Header,
    Lineage,
    child_headers,
    is_for_another,
    is_retry,
    lineage_of,
)
from sojourn.spark.letters import dead_letter
from sojourn.spark.sampling import Sampling

__all__ = ["OUTPUT", "SCHEMA", "Route", "Rows"]

OUTPUT = (
    "topic string, key binary, value binary, headers array<struct<key: string, value: binary>>"
)
"""What a relay hands to Spark's Kafka sink."""
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)
"""The same, for Arrow."""

# Numbers that are as long as any in the headers of a child.
_MOST_OUTPUTS, _LONGEST = 10**9, 1 / 3e300

Row = dict[str, Any]
"""The columns of a message, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where an operator's records come from and go to.

    *reads* are streams by the name of the topic, *writes* topics by that of the stream.
    *keyed* are the streams that are read by key, by topic, and *everyone* the topics whose
    records all processors get. About *trace_per_s* roots in a second are followed. No
    message is larger than *most_bytes*. Ids of roots carry *marks*, by topic.
    """

    operator: str
    reads: Mapping[str, str]
    writes: Mapping[str, str]
    dead_letters: str
    trace_per_s: float = 100.0
    keyed: Mapping[str, Stream] = field(default_factory=dict)
    everyone: frozenset[str] = frozenset()
    most_bytes: int = MOST_BYTES
    marks: Mapping[str, str] = field(default_factory=dict)


class Rows:
    """Makes records of what Kafka brings for an operator, and rows of what becomes of them."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self._keys = {t: (codec_of(s), s.key) for t, s in route.keyed.items()}
        self._sampling = Sampling(route.trace_per_s)
        self._room_bytes = route.most_bytes - _beside_bytes(route.operator)

    def is_for_another(self, row: Row) -> bool:
        """Tell whether a row is not for this operator, but put back in for another."""
        return is_for_another(row["headers"], self._route.dead_letters, self._route.operator)

    def record(self, row: Row) -> PassedRecord:
        """Return the record of a row, without a number, and where it comes from.

        It raises at nothing: a stranger may have written the row.
        """
        lineage = lineage_of(
            [(header["key"], header["value"]) for header in row["headers"] or ()],
            topic=row["topic"],
            partition=row["partition"],
            offset=row["offset"],
            timestamp_s=_moment_s(row["timestamp_us"]),
            key=row["key"],
            mark=self._route.marks.get(row["topic"], ""),
        )
        if lineage.traced is None:
            lineage = replace(lineage, traced=self._sampling.weight(time.monotonic()))
        payload = row["value"] or b""
        record = Record(
            0,
            _identity(lineage, payload, retried=is_retry(row["headers"])),
            payload,
            stream=self._route.reads[row["topic"]],
            blobs=lineage.blobs,
            key=self._key(row["topic"], payload),
            written_s=lineage.written_s,
            everyone=row["topic"] in self._route.everyone,
            root=lineage.root,
            birth_s=lineage.birth_s,
            traced=lineage.traced or 0,
            partition=row["partition"],
            offset=row["offset"],
            room=self._room(lineage),
            name=lineage.identity,
            place=lineage.place,
        )
        return lineage, record

    def _key(self, topic: str, payload: bytes) -> str | None:
        """Return what decides on the processor; None where any will do.

        A record that cannot be read fits no processor better than another.
        """
        if topic not in self._keys:
            return None
        codec, columns = self._keys[topic]
        return codec.key(payload, columns)

    def _room(self, lineage: Lineage) -> int:
        """Return how many bytes a child may have, beside the key and headers that it gets."""
        ids = len(lineage.identity.encode()) + len(lineage.root.encode())
        return max(1, self._room_bytes - ids - len(lineage.key or b""))

    def results(self, passed: PassedRecord, answer: Answer) -> Iterator[Row]:
        """Yield the rows of what became of a record."""
        lineage, record = passed
        now_s, operator = time.time(), self._route.operator
        for place, output in enumerate(answer.outputs):
            headers = child_headers(lineage, operator, place, now_s, output.blobs)
            yield _row(self._route.writes[output.stream], lineage.key, output.payload, headers)
        if answer.dead:
            letter = dead_letter(
                lineage,
                record,
                answer,
                operator=operator,
                now_s=now_s,
                most_bytes=self._route.most_bytes,
            )
            yield _row(self._route.dead_letters, letter.key, letter.value, letter.headers)


def _identity(lineage: Lineage, payload: bytes, *, retried: bool) -> str:
    """Return what is the same of a record that comes again, and of no other.

    An operator that repeats a batch writes the records of an inner stream again, at other
    offsets. Strangers may give different records the same id. What was put back in is tried
    again, whatever became of it before.
    """
    if retried or lineage.identity == lineage.root:
        return lineage.place
    checksum = crc32(payload)
    for name, blob in lineage.blobs.items():
        checksum = crc32(blob, crc32(name.encode(), checksum))
    return f"{lineage.identity} {checksum:08x}"


def _beside_bytes(operator: str) -> int:
    """Return what a message has at most beside payload, key and the ids of its parents."""
    nobody = Lineage(
        identity="", root="", birth_s=_LONGEST, written_s=0.0, blobs={}, traced=MOST_TRACED
    )
    headers = child_headers(nobody, operator, _MOST_OUTPUTS, _LONGEST, {})
    return message_bytes(None, b"", headers)


def _moment_s(timestamp_us: int | None) -> float:
    """Return when a message was written, or now where its writer's clock cannot be right."""
    if timestamp_us is None or not 0 <= timestamp_us <= LATEST_S * 1e6:
        return time.time()
    return timestamp_us / 1e6


def _row(
    topic: str, key: bytes | None, value: bytes | None, headers: list[Header]
) -> dict[str, object]:
    named = [{"key": name, "value": content} for name, content in headers]
    return {"topic": topic, "key": key, "value": value, "headers": named}
