"""Dead letters: the record as it was read, with headers that describe the failure.

Their id is `RECORD.OPERATOR.dead`, which no output has. A letter above Kafka's size limit is
truncated; the position header then tells where in Kafka the whole record is.
"""

from dataclasses import dataclass

from sojourn.spark.wire.headers import (
    BIRTH,
    BLOB,
    ERROR,
    ID,
    ROOT,
    WRITTEN,
    Header,
    child_identity,
)
from sojourn.spark.wire.record import message_bytes
from sojourn.spark.wire.relay import DeadResult

OPERATOR, STREAM, RECORD = "sojourn-operator", "sojourn-stream", "sojourn-record"
"""The operator that failed, and the stream and id of the record."""
POSITION = "sojourn-position"
"""Topic, partition and offset that the record was read from."""
TRACEBACK, TRIES = "sojourn-traceback", "sojourn-tries"
"""The traceback of the function, and the number of tries."""
CUT = "sojourn-cut"
"""The size of a truncated record: the letter has only the beginning of its payload."""

MOST_ERROR_BYTES, MOST_TRACEBACK_BYTES = 1000, 8000
_MOST_CUT_BYTES = 10_000


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter as a Kafka message."""

    key: bytes | None
    value: bytes | None
    headers: list[Header]


def dead_letter(letter: DeadResult, *, now_s: float, most_bytes: int) -> Letter:
    """Return the Kafka message of a letter, truncated to at most *most_bytes*."""
    record, operator = letter.record, letter.operator
    told = [
        (ID, child_identity(record.name, operator, "dead", root=record.root).encode()),
        (ROOT, record.root.encode()),
        (BIRTH, repr(record.birth_s).encode()),
        (WRITTEN, repr(now_s).encode()),
        (RECORD, record.name.encode()),
        (OPERATOR, operator.encode()),
        (STREAM, record.stream.encode()),
        (TRIES, str(max(1, letter.tries)).encode()),
        (ERROR, _sound(letter.error.encode(errors="replace")[:MOST_ERROR_BYTES])),
    ]
    if not letter.inner:
        told.append((POSITION, record.position.encode()))
    if letter.traceback:
        traceback = letter.traceback.encode(errors="replace")
        told.append((TRACEBACK, _sound(traceback[-MOST_TRACEBACK_BYTES:])))
    blobs = [(BLOB + name, content) for name, content in record.blobs.items()]
    headers = [*record.others, *blobs, *told]
    if message_bytes(record.message_key, record.payload, headers) <= most_bytes:
        return Letter(record.message_key, record.payload or None, headers)
    short = len(record.message_key or b"") <= _MOST_CUT_BYTES
    key = record.message_key if short else None
    told.append((CUT, str(record.size_bytes).encode()))
    room = max(0, most_bytes - message_bytes(key, b"", told))
    return Letter(key, record.payload[: min(_MOST_CUT_BYTES, room)], told)


def _sound(cut: bytes) -> bytes:
    """Drop the bytes of characters that the cut has split."""
    return cut.decode(errors="ignore").encode()
