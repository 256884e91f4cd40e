"""What travels with a record beside its payload, as Kafka headers.

A root's id is its position: topic, partition, offset. A child's derives from its parent's, the
operator and the place among the outputs, so that a record that is worked on again gives
children with the same ids, if the function gives the same outputs again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sojourn.host.tracing import child_identity

__all__ = [
    "BIRTH",
    "BLOB",
    "ERROR",
    "ID",
    "ROOT",
    "TRACE",
    "WRITTEN",
    "Lineage",
    "child_headers",
    "identity_of",
    "lineage_of",
]

ID, ROOT, BIRTH = "sojourn-id", "sojourn-root", "sojourn-birth"
"""Which record it is, of which root, and when that was born."""
WRITTEN, TRACE = "sojourn-written", "sojourn-trace"
"""When it was written to its stream, and for how many roots its own stands."""
ERROR = "sojourn-error"
"""Why it is a dead letter."""
BLOB = "sojourn-column-"
"""What the name of a binary column follows."""

Header = tuple[str, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """Which record it is, of which root, born when, written when; and its binary columns.

    *traced* is the number of roots that its own stands for, 0 where it is not followed, and
    None where nobody has decided that yet: it is a root.
    """

    identity: str
    root: str
    birth_s: float
    written_s: float
    blobs: dict[str, bytes]
    traced: int | None = None


def lineage_of(
    headers: Iterable[Header], *, topic: str, partition: int, offset: int, timestamp_s: float
) -> Lineage:
    """Return what a record's headers say, or its position where they say nothing.

    >>> stranger = lineage_of([], topic="lines", partition=0, offset=7, timestamp_s=1.5)
    >>> stranger.identity, stranger.root, stranger.birth_s
    ('lines/0/7', 'lines/0/7', 1.5)
    """
    told: dict[str, bytes] = {}
    blobs: dict[str, bytes] = {}
    for name, value in headers:
        if name.startswith(BLOB):
            blobs[name.removeprefix(BLOB)] = value
        else:
            told[name] = value
    place = f"{topic}/{partition}/{offset}"
    return Lineage(
        identity=_text(told, ID, place),
        root=_text(told, ROOT, place),
        birth_s=_seconds(told, BIRTH, timestamp_s),
        written_s=_seconds(told, WRITTEN, timestamp_s),
        blobs=blobs,
        traced=_traced(told),
    )


def identity_of(headers: Iterable[Mapping[str, Any]] | None) -> str | None:
    """Return the identity that headers, as Spark has them, tell; None where they do not."""
    for header in headers or ():
        if header["key"] == ID and header["value"]:
            return bytes(header["value"]).decode(errors="replace")
    return None


def child_headers(
    parent: Lineage, operator: str, place: int, written_s: float, blobs: dict[str, bytes]
) -> list[Header]:
    """Return the headers of the record at *place* among the outputs of *operator*.

    >>> root = lineage_of([], topic="lines", partition=0, offset=7, timestamp_s=1.5)
    >>> dict(child_headers(root, "split", 2, 2.0, {}))["sojourn-id"]
    b'lines/0/7.split.2'
    """
    return [
        (ID, child_identity(parent.identity, operator, place).encode()),
        (ROOT, parent.root.encode()),
        (BIRTH, repr(parent.birth_s).encode()),
        (WRITTEN, repr(written_s).encode()),
        (TRACE, str(parent.traced or 0).encode()),
        *((BLOB + name, value) for name, value in blobs.items()),
    ]


def _text(told: dict[str, bytes], name: str, otherwise: str) -> str:
    try:
        return told[name].decode() or otherwise
    except (KeyError, UnicodeDecodeError):  # a stranger may write anything
        return otherwise


def _seconds(told: dict[str, bytes], name: str, otherwise: float) -> float:
    try:
        return float(told[name])
    except (KeyError, ValueError):
        return otherwise


def _traced(told: dict[str, bytes]) -> int | None:
    """Return what was decided where the root entered; None of a root itself."""
    if ID not in told:
        return None
    try:
        return max(0, int(told[TRACE]))
    except (KeyError, ValueError):
        return 0
