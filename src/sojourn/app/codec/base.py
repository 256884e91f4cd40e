"""What every codec does: records of one stream to and from the messages of Kafka."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

__all__ = ["NO_BINARIES", "Codec", "Payload"]

Payload: TypeAlias = tuple[bytes, dict[str, bytes]]
"""The body of a message, and the binary columns that are beside it in headers, by name."""

NO_BINARIES: Mapping[str, bytes] = MappingProxyType({})


class Codec(Protocol):
    """Encodes and decodes the records of one stream, whose name comes first in errors.

    A codec is made where it is used, from the definition of the stream. It holds no connection,
    because processors are forked with it.
    """

    @property
    def lacking(self) -> tuple[str, ...]:
        """What a message must have, and the columns lack: such a stream can only be read."""
        ...

    def encode(self, record: tuple[object, ...]) -> Payload:
        """Return *record* as it is in Kafka, or raise a `BadRecord` that names the column."""
        ...

    def decode(
        self, body: bytes, binaries: Mapping[str, bytes] = NO_BINARIES
    ) -> tuple[Any, ...]:
        """Return the record that was encoded, or raise a `BadRecord` that says why not."""
        ...

    def key(self, body: bytes, columns: tuple[str, ...]) -> str | None:
        """Return the values of *columns* as JSON, the same for records that agree in them.

        It is the same in every format, so that an operator can read streams of several by key.
        Return None if they cannot be read: what is wrong is said when *body* is decoded.
        """
        ...
