"""How large a message may be: Kafka refuses one beyond its limit, however often it is sent."""

from collections.abc import Iterable, Mapping

__all__ = ["MOST_BYTES", "blobs_bytes", "message_bytes"]

MOST_BYTES = 1 << 20
"""What Kafka's clients (`max.request.size`) and brokers take unless told otherwise."""

# As Java's client reckons before it sends: a batch of one record, and the lengths of its parts.
_MESSAGE, _HEADER = 61 + 21 + 15, 10
# What the name of a binary column follows in its header, and more.
_BLOB = 32


def message_bytes(
    key: bytes | None, value: bytes, headers: Iterable[tuple[str, bytes]] = ()
) -> int:
    """Return the most that a message takes.

    >>> message_bytes(b"k", b"value", [("name", b"content")])
    124
    """
    beside = sum(_HEADER + len(name.encode()) + len(content) for name, content in headers)
    return _MESSAGE + len(key or b"") + len(value) + beside


def blobs_bytes(blobs: Mapping[str, bytes]) -> int:
    """Return what binary columns take as headers."""
    return sum(_BLOB + len(name.encode()) + len(content) for name, content in blobs.items())
