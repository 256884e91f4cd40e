"""The size of messages: Kafka refuses one above its limit, however often it is retried."""

from collections.abc import Iterable, Mapping

__all__ = ["MOST_BYTES", "blobs_bytes", "message_bytes"]

MOST_BYTES = 1 << 20
"""The default limit of Kafka's clients (`max.request.size`) and brokers."""

# As estimated by the Java client: a batch of one record, and the lengths of its parts.
_MESSAGE, _HEADER = 61 + 21 + 15, 10
# The prefix of the name of a binary column in its header, and more.
_BLOB = 32


def message_bytes(
    key: bytes | None, value: bytes, headers: Iterable[tuple[str, bytes]] = ()
) -> int:
    """Return an upper bound of the size of a message.

    >>> message_bytes(b"k", b"value", [("name", b"content")])
    124
    """
    beside = sum(_HEADER + len(name.encode()) + len(content) for name, content in headers)
    return _MESSAGE + len(key or b"") + len(value) + beside


def blobs_bytes(blobs: Mapping[str, bytes]) -> int:
    """Return an upper bound of the size of binary columns as headers."""
    return sum(_BLOB + len(name.encode()) + len(content) for name, content in blobs.items())
