"""The metadata of a record, as Kafka headers.

The id of a root is its position: topic, partition, offset; with a mark that distinguishes a
recreated topic of the same name (`sojourn.spark.driver.kafka.id_epoch`). The id of a child
derives from its parent's, the operator and its place among the outputs. So the children of a
record that is processed again have the same ids, if the function is deterministic.

Any client may write to a topic, so headers with invalid values are ignored.
"""

from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any

from sojourn.spark.wire.record import Record

ID, ROOT, BIRTH = "sojourn-id", "sojourn-root", "sojourn-birth"
"""The id of the record, the id of its root, and the birth time of the root."""
WRITTEN, TRACE = "sojourn-written", "sojourn-trace"
"""When it was written to its stream, and how many roots its own stands for (sampling)."""
INPUT = "sojourn-input"
"""The input of a writer that it derives from (`sojourn.spark.wire.signed_inputs`)."""
ERROR = "sojourn-error"
"""Why it is a dead letter."""
FOR = "sojourn-for"
"""The only operator that processes it, on a retry."""
BLOB = "sojourn-column-"
"""The prefix of the names of binary columns."""

MOST_ID_BYTES = 1000
"""A longer id is replaced by its hash, because every derived record carries it."""
MOST_TRACED = 1_000_000
"""The maximum number of roots that one stands for."""
LATEST_S = 253_402_300_799.0
"""The last second of the year 9999."""

LONGEST_CHILD = 160
"""The maximum letters of an id beyond its root's: ids grow with each round of a loop."""
CHILD_HEAD = 104
"""The letters that a longer id keeps, which include the operator at which the root entered."""
CHILD_DIGEST = 32
"""The digits of its SHA-256 that replace the rest."""

OURS = "sojourn-"
"""The prefix of the names of our headers."""

Header = tuple[str, bytes]


def record_of(  # noqa: PLR0913 - all that Kafka has of a record
    headers: Iterable[tuple[str | None, bytes | None]],
    payload: bytes,
    *,
    stream: str,
    topic: str,
    partition: int,
    offset: int,
    timestamp_s: float,
    key: bytes | None = None,
    mark: str = "",
    room_bytes: int = 0,
    weight: Callable[[], int] = lambda: 0,
) -> Record:
    """Return the record of a message; without our headers, its position identifies it.

    Ids and key are part of *room_bytes*, the room of its children. *weight* returns how many
    roots it stands for if it is a root itself.

    >>> place = {"topic": "lines", "partition": 0, "offset": 7, "timestamp_s": 1.5}
    >>> foreign = record_of([], b"", stream="lines", **place)
    >>> foreign.name, foreign.root, foreign.birth_s
    ('lines/0/7', 'lines/0/7', 1.5)
    """
    ours: dict[str, bytes] = {}
    blobs: dict[str, bytes] = {}
    others: list[Header] = []
    for name, value in headers:
        if name is None or not name.startswith(OURS):
            others.append((name or "", value or b""))
        elif name.startswith(BLOB):
            blobs[name.removeprefix(BLOB)] = value or b""
        else:
            ours[name] = value or b""
    identity = root = f"{marked(topic, mark)}/{partition}/{offset}"
    birth_s, written_s, traced = timestamp_s, timestamp_s, None
    if ours:  # most roots have none, and they come in large numbers
        identity = _text(ours, ID, identity)
        root = _text(ours, ROOT, identity)
        birth_s = _seconds(ours, BIRTH, timestamp_s)
        written_s = _seconds(ours, WRITTEN, timestamp_s)
        traced = _traced(ours)
    beside = len(identity.encode()) + len(root.encode()) + len(key or b"")
    return Record(
        identity,
        payload,
        stream,
        blobs,
        written_s=written_s,
        root=root,
        birth_s=birth_s,
        traced=weight() if traced is None else traced,
        room=max(1, room_bytes - beside),
        position=f"{topic}/{partition}/{offset}",
        message_key=key,
        others=tuple(others),
    )


def child_identity(parent: str, operator: str, index: int | str, *, root: str) -> str:
    """Return the id of output number *index* of *operator* for the record *parent*.

    It is deterministic: a record that is processed again has children with the same ids.

    >>> child_identity("lines/0/7", "split", 2, root="lines/0/7")
    'lines/0/7.split.2'
    """
    identity = f"{parent}.{operator}.{index}"
    if len(identity) <= len(root) + LONGEST_CHILD:
        return identity
    digest = sha256(identity.encode()).hexdigest()[:CHILD_DIGEST]
    return f"{identity[: len(root) + CHILD_HEAD]}~{digest}"


def addressee(dead_letters: str, operator: str) -> str:
    """Return the value of the header `FOR` that addresses *operator*.

    The dead-letter topic distinguishes applications that read the same topic.

    >>> addressee("shop.dead-letters", "parse")
    'shop.dead-letters/parse'
    """
    return f"{dead_letters}/{operator}"


def is_retry(headers: Iterable[Mapping[str, Any]] | None) -> bool:
    """Return whether a record with these headers, as Spark has them, is a retry."""
    return any(header["key"] == FOR for header in headers or ())


def marked(topic: str, mark: str) -> str:
    """Return the topic as it begins the ids of its roots; "@" is in no name and no mark.

    >>> marked("lines", "Xk3f9a2B-5f0c9e1a"), marked("lines", "")
    ('lines@Xk3f9a2B-5f0c9e1a', 'lines')
    """
    return f"{topic}@{mark}" if mark else topic


def position_of(root: str) -> tuple[str, int, int] | None:
    """Return topic, partition and offset from the id of a root; None if it has another form.

    The topic may carry a mark (`marked`), which is dropped.

    >>> position_of("orders@Xk3f9a2B-5f0c9e1a/3/1207"), position_of("an id of its own")
    (('orders', 3, 1207), None)
    """
    parts = root.rsplit("/", 2)
    if len(parts) != 3 or not (parts[1].isdecimal() and parts[2].isdecimal()):
        return None
    return parts[0].partition("@")[0], int(parts[1]), int(parts[2])


def id_in(headers: Iterable[Mapping[str, Any]] | None, name: str) -> str | None:
    """Return the id in the header *name*, `ID` or `ROOT`, of headers as Spark has them.

    None if there is none.
    """
    for header in headers or ():
        if header["key"] == name and header["value"]:
            return bytes(header["value"]).decode(errors="replace")
    return None


def _text(ours: dict[str, bytes], name: str, otherwise: str) -> str:
    given = ours.get(name, b"")
    try:
        text = given.decode()
    except UnicodeDecodeError:  # any client may write headers
        return otherwise
    if len(given) > MOST_ID_BYTES:
        return sha256(given).hexdigest()
    return text or otherwise


def _seconds(ours: dict[str, bytes], name: str, otherwise: float) -> float:
    try:
        seconds = float(ours[name])
    except (KeyError, ValueError):
        return otherwise
    return seconds if 0 <= seconds <= LATEST_S else otherwise  # NaN fails both comparisons


def _traced(ours: dict[str, bytes]) -> int | None:
    """Return the sampling decision made when the root entered; None of a root itself."""
    if not {ID, ROOT} <= ours.keys():  # a producer may give its records ids
        return None
    try:
        weight = int(ours[TRACE])
    except (KeyError, ValueError):
        return 0
    return weight if 0 <= weight <= MOST_TRACED else 0
