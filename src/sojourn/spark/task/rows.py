"""Conversion of Kafka's rows to records of a part, and of its results to rows for Kafka."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from sojourn.app.codec import codec_of
from sojourn.app.reminder import reminders_of
from sojourn.app.state import key_fields, key_of_message
from sojourn.app.stream import Stream
from sojourn.spark.task.sampling import Sampling
from sojourn.spark.wire.dead_letter import STREAM, dead_letter
from sojourn.spark.wire.headers import (
    BIRTH,
    BLOB,
    FOR,
    ID,
    INPUT,
    LATEST_S,
    MOST_TRACED,
    ROOT,
    TRACE,
    WRITTEN,
    Header,
    addressee,
    child_identity,
    marked,
    record_of,
)
from sojourn.spark.wire.record import (
    MOST_BYTES,
    Partition,
    Record,
    Root,
    message_bytes,
    reminder_key,
)
from sojourn.spark.wire.relay import Results, Row
from sojourn.spark.wire.repetitions import Input
from sojourn.spark.wire.signed_inputs import LONGEST, SignedInputs

OUTPUT = (
    "topic string, partition int, key binary, value binary, "
    "headers array<struct<key: string, value: binary>>"
)
"""The schema of rows for Spark's Kafka sink; if partition is null, Kafka's client chooses."""
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)
"""The same, for Arrow."""

# Numbers with the longest text in the headers of a child.
_MOST_OUTPUTS, _LONGEST = 10**9, 1 / 3e300

SparkRow = dict[str, Any]
"""The columns of a message, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The input and output topics of a part, and how records are mapped to them."""

    part: str
    operators: tuple[str, ...]
    reads: Mapping[str, str]
    """Input streams by topic."""
    writes: Mapping[str, str]
    """Output topics by stream."""
    dead_letters: str
    """The topic of dead letters."""
    before: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Projections between a topic and the functions, and the stream they read, by topic."""
    behind: Mapping[str, str] = field(default_factory=dict)
    """The stream that a projection behind the functions reads, by projection."""
    retries: str = ""
    """The topic for retries of records that were never in a topic; empty if there are none."""
    trace_per_s: float = 100.0
    """The approximate number of roots traced per second."""
    keyed: Mapping[str, tuple[tuple[str, Stream], ...]] = field(default_factory=dict)
    """Operators that read a stream by key, by stream."""
    most_bytes: int = MOST_BYTES
    """The maximum size of a message."""
    marks: Mapping[str, str] = field(default_factory=dict)
    """Marks in the ids of roots, by topic."""
    partitions: Mapping[str, int] = field(default_factory=dict)
    """Partition counts of output topics that are deduplicated per partition.

    Results of one input partition always go to the same output partition.
    """
    deduplicates: frozenset[str] = frozenset()
    """Input topics that the part itself deduplicates."""
    signing_key: bytes = field(default=b"", repr=False)
    """Signs the headers with inputs; empty writes no such headers."""

    @property
    def topics(self) -> list[str]:
        """All input topics."""
        return [*self.reads, *([self.retries] if self.retries else [])]


class Rows:
    """Converts rows of Kafka to records of a part, and its results to rows."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self._keys = {
            name: [(reader, codec_of(stream), stream) for reader, stream in keyed]
            for name, keyed in route.keyed.items()
        }
        self._reminders = {reminders_of(name): name for name in route.operators}
        projections = [name for name, _ in route.before.values()]
        self._addressees = {
            addressee(route.dead_letters, name).encode(): name
            for name in (*route.operators, *projections, *route.behind)
        }
        self._topics = {name: [topic] for name, topic in route.writes.items()}
        for made, stream in route.behind.items():
            self._topics.setdefault(stream, []).append(route.writes[made])
        self._inputs = SignedInputs(
            route.signing_key,
            frozenset(marked(name, mark) for name, mark in route.marks.items()),
        )
        self._read = frozenset(route.topics)
        self._sampling = Sampling(route.trace_per_s)
        self._room_bytes = route.most_bytes - _beside_bytes(max(route.operators, key=len))

    def came(self, row: SparkRow) -> Row:
        """Return the message to the host for a row of Kafka.

        It accepts every record, valid or not, because any client may write to the topic. A
        record that a projection could not read is unchanged. Raise `RegistryAway` if the key is
        in Avro and the schema registry does not answer.
        """
        topic, headers = row["topic"], row["headers"] or ()
        projection, unchanged = self._route.before.get(topic, ("", ""))
        refused = (projection, row["error"]) if row.get("error") else None
        record = record_of(
            [(header["key"], header["value"]) for header in headers],
            row["value"] or b"",
            stream=self._stream(topic, headers) if refused is None else unchanged,
            topic=topic,
            partition=row["partition"],
            offset=row["offset"],
            timestamp_s=_moment_s(row["timestamp_us"]),
            key=row["key"],
            mark=self._route.marks.get(topic, ""),
            room_bytes=self._room_bytes,
            weight=self._weight,
        )
        told_for = [header["value"] for header in headers if header["key"] == FOR]
        # of a retry: empty if it is addressed to another part or application
        only = self._addressees.get(told_for[-1] or b"", "") if told_for else None
        if projection:  # a retry at the projection is for all readers of its output
            only = None if only in (None, projection) else ""
        return Row(
            (topic, row["partition"]),
            row["offset"],
            record,
            self._keys_of(record),
            only,
            refused,
            None
            if told_for or topic not in self._route.deduplicates
            else self._inputs.provenance(
                record.name,
                record.root,
                headers,
                given=any(header["key"] == ID for header in headers),
            ),
            null=not record.payload and refused is None,
        )

    def _weight(self) -> int:
        return self._sampling.weight(time.monotonic())

    def _keys_of(self, record: Record) -> dict[str, str | None]:
        """Return the keys of a record, by the operators that read it by key.

        The key of a message without a value is its Kafka key.
        """
        if (operator := self._reminders.get(record.stream)) is not None:
            return {operator: reminder_key(record.payload)}
        return {
            reader: codec.key(record.payload, read.key)
            if record.payload
            else key_of_message(key_fields(read), record.message_key)
            for reader, codec, read in self._keys.get(record.stream, ())
        }

    def _stream(self, topic: str, headers: Iterable[SparkRow]) -> str:
        """Return the stream of a row: of its topic, or in the header of a retry."""
        if topic != self._route.retries:
            return self._route.reads[topic]
        told = [header["value"] for header in headers if header["key"] == STREAM]
        return bytes(told[-1] or b"").decode(errors="replace") if told else ""

    def left(self, results: Results) -> list[SparkRow]:
        """Return the rows of results; projections behind the part are not applied yet."""
        rows, partitions = [], self._route.partitions
        for record, root, floor in results.records:
            headers = _headers(record)
            for topic in self._topics[record.stream]:
                row = _row(topic, record.message_key, record.payload, headers)
                if topic in partitions:  # only these are deduplicated
                    row["partition"] = self._entered(record, root) % partitions[topic]
                    row["headers"] += _named(self._input(root, floor))
                rows.append(row)
        for letter, _, _ in results.letters:
            made = dead_letter(letter, now_s=time.time(), most_bytes=self._route.most_bytes)
            rows.append(_row(self._route.dead_letters, made.key, made.value, made.headers))
        return rows

    def _entered(self, record: Record, root: Root) -> int:
        """Return the input partition that a result derives from.

        A reminder was in no partition, so the record that requested it counts.
        """
        topic, partition = root.partition
        if topic in self._read:
            return partition
        return int(record.position.rsplit("/", 2)[1])

    def _input(self, root: Root, floor: int) -> list[Header]:
        """Return the header with the input offset and the floor of a result."""
        (topic, partition), offset = root
        return self._inputs.header(
            Input(
                writer=self._route.part,
                topic=marked(topic, self._route.marks.get(topic, "")),
                partition=partition,
                offset=offset,
                floor=floor,
            )
        )


def end_row(name: str, source: Partition, end: int) -> SparkRow:
    """Return a control row with the end offset of a partition for Java; it has no topic."""
    topic, partition = source
    told = {"key": f"{name}/{topic}/{partition}".encode(), "value": str(end).encode()}
    return {"topic": None, "partition": None, "headers": [], **told}


def _headers(record: Record) -> list[Header]:
    return [
        (ID, record.name.encode()),
        (ROOT, record.root.encode()),
        (BIRTH, repr(record.birth_s).encode()),
        (WRITTEN, repr(record.written_s).encode()),
        (TRACE, str(record.traced).encode()),
        *((BLOB + name, value) for name, value in record.blobs.items()),
    ]


def _beside_bytes(operator: str) -> int:
    """Return the maximum size of a message without payload, key and the ids of its parents."""
    name = child_identity("", operator, _MOST_OUTPUTS, root="")
    nobody = Record(
        name, b"", birth_s=_LONGEST, written_s=_LONGEST, traced=MOST_TRACED, root=""
    )
    return message_bytes(None, b"", [*_headers(nobody), (INPUT, b"x" * LONGEST)])


def _moment_s(timestamp_us: int | None) -> float:
    """Return the timestamp of a message in seconds; 0 if it is missing or not plausible.

    The host replaces 0 by its own clock: on a cluster the task is on another machine.
    """
    if timestamp_us is None or not 0 <= timestamp_us <= LATEST_S * 1e6:
        return 0.0
    return timestamp_us / 1e6


def _row(topic: str, key: bytes | None, value: bytes | None, headers: list[Header]) -> SparkRow:
    named = _named(headers)
    return {"topic": topic, "partition": None, "key": key, "value": value, "headers": named}


def _named(headers: list[Header]) -> list[SparkRow]:
    return [{"key": name, "value": content} for name, content in headers]
