"""What travels with a record beside its payload, as Kafka headers.

A root's id is its position: topic, partition, offset; with a mark that tells this topic from
another of that name (`sojourn.spark.driver.kafka.id_epoch`). A child's derives from its
parent's, the operator and the place among the outputs, so that a record that is worked on again
gives children with the same ids, if the function gives the same outputs again.

Anybody may write to a topic: what cannot be is taken as if it were not there.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

import msgspec

__all__ = [
    "BIRTH",
    "BLOB",
    "ERROR",
    "FOR",
    "ID",
    "INPUT",
    "LATEST_S",
    "MOST_ID_BYTES",
    "MOST_TRACED",
    "OURS",
    "ROOT",
    "TRACE",
    "WRITTEN",
    "Header",
    "Lineage",
    "addressee",
    "identity_of",
    "is_retry",
    "lineage_of",
    "marked",
    "root_of",
]

ID, ROOT, BIRTH = "sojourn-id", "sojourn-root", "sojourn-birth"
"""Which record it is, of which root, and when that was born."""
WRITTEN, TRACE = "sojourn-written", "sojourn-trace"
"""When it was written to its stream, and for how many roots its own stands."""
INPUT = "sojourn-input"
"""Which record that entered a writer it comes of (`sojourn.spark.wire.signed_inputs`)."""
ERROR = "sojourn-error"
"""Why it is a dead letter."""
FOR = "sojourn-for"
"""The only operator that is to work on it: one that failed before."""
BLOB = "sojourn-column-"
"""What the name of a binary column follows."""

MOST_ID_BYTES = 1000
"""An id that is longer is taken as its hash: it is written with every record that follows."""
MOST_TRACED = 1_000_000
"""No root stands for more."""
LATEST_S = 253_402_300_799.0
"""The last second of the year 9999."""

OURS = "sojourn-"
"""What the names of our headers begin with."""

Header = tuple[str, bytes]


class Lineage(msgspec.Struct, frozen=True, kw_only=True):
    """Which record it is, of which root, born when, written when; and its binary columns.

    *traced* is the number of roots that its own stands for, 0 where it is not followed, and
    None where nobody has decided that yet: it is a root. *place* is the topic, partition and
    offset that it was read from, *key* that of its message, and *others* the headers that are
    not ours.
    """

    identity: str
    root: str
    birth_s: float
    written_s: float
    blobs: dict[str, bytes]
    traced: int | None = None
    place: str = ""
    key: bytes | None = None
    others: tuple[Header, ...] = ()


def lineage_of(  # noqa: PLR0913 - all that Kafka tells of a record
    headers: Iterable[tuple[str | None, bytes | None]],
    *,
    topic: str,
    partition: int,
    offset: int,
    timestamp_s: float,
    key: bytes | None = None,
    mark: str = "",
) -> Lineage:
    """Return what a record's headers say, or its position where they say nothing.

    >>> stranger = lineage_of([], topic="lines", partition=0, offset=7, timestamp_s=1.5)
    >>> stranger.identity, stranger.root, stranger.birth_s
    ('lines/0/7', 'lines/0/7', 1.5)
    """
    told: dict[str, bytes] = {}
    blobs: dict[str, bytes] = {}
    others: list[Header] = []
    for name, value in headers:
        if name is None or not name.startswith(OURS):
            others.append((name or "", value or b""))
        elif name.startswith(BLOB):
            blobs[name.removeprefix(BLOB)] = value or b""
        else:
            told[name] = value or b""
    place = f"{topic}/{partition}/{offset}"
    identity = root = f"{marked(topic, mark)}/{partition}/{offset}"
    birth_s, written_s, traced = timestamp_s, timestamp_s, None
    if told:  # of most roots nothing is, and they come in large numbers
        identity = _text(told, ID, identity)
        root = _text(told, ROOT, identity)
        birth_s = _seconds(told, BIRTH, timestamp_s)
        written_s = _seconds(told, WRITTEN, timestamp_s)
        traced = _traced(told)
    return Lineage(
        identity=identity,
        root=root,
        birth_s=birth_s,
        written_s=written_s,
        blobs=blobs,
        traced=traced,
        place=place,
        key=key,
        others=tuple(others),
    )


def addressee(dead_letters: str, operator: str) -> str:
    """Return what says `FOR` which operator a record is.

    The topic of its dead letters tells applications that read the same topic apart.

    >>> addressee("shop.dead-letters", "parse")
    'shop.dead-letters/parse'
    """
    return f"{dead_letters}/{operator}"


def is_retry(headers: Iterable[Mapping[str, Any]] | None) -> bool:
    """Tell whether a record, of which Spark has these headers, is for one operator only."""
    return any(header["key"] == FOR for header in headers or ())


def marked(topic: str, mark: str) -> str:
    """Return a topic as ids of its roots begin: neither a name nor a mark has such a letter.

    >>> marked("lines", "Xk3f9a2B-5f0c9e1a"), marked("lines", "")
    ('lines@Xk3f9a2B-5f0c9e1a', 'lines')
    """
    return f"{topic}@{mark}" if mark else topic


def identity_of(headers: Iterable[Mapping[str, Any]] | None) -> str | None:
    """Return the identity that headers, as Spark has them, tell; None where they do not."""
    return _told(headers, ID)


def root_of(headers: Iterable[Mapping[str, Any]] | None) -> str | None:
    """Return the id of the root that headers, as Spark has them, tell; None without one."""
    return _told(headers, ROOT)


def _told(headers: Iterable[Mapping[str, Any]] | None, name: str) -> str | None:
    for header in headers or ():
        if header["key"] == name and header["value"]:
            return bytes(header["value"]).decode(errors="replace")
    return None


def _text(told: dict[str, bytes], name: str, otherwise: str) -> str:
    given = told.get(name, b"")
    try:
        text = given.decode()
    except UnicodeDecodeError:  # a stranger may write anything
        return otherwise
    if len(given) > MOST_ID_BYTES:
        return sha256(given).hexdigest()
    return text or otherwise


def _seconds(told: dict[str, bytes], name: str, otherwise: float) -> float:
    try:
        seconds = float(told[name])
    except (KeyError, ValueError):
        return otherwise
    return seconds if 0 <= seconds <= LATEST_S else otherwise  # of NaN neither is true


def _traced(told: dict[str, bytes]) -> int | None:
    """Return what was decided where the root entered; None of a root itself."""
    if not {ID, ROOT} <= told.keys():  # a producer may give its records ids
        return None
    try:
        weight = int(told[TRACE])
    except (KeyError, ValueError):
        return 0
    return weight if 0 <= weight <= MOST_TRACED else 0
