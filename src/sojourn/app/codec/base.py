"""The Protocol of a codec: records of one stream to and from Kafka messages."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

Payload: TypeAlias = tuple[bytes, dict[str, bytes]]
"""The body of a message, and the binary columns that go into headers, by name."""

NO_BINARIES: Mapping[str, bytes] = MappingProxyType({})


class Codec(Protocol):
    """Encodes and decodes the records of one stream, whose name prefixes errors.

    A codec is created in the process that uses it, from the definition of the stream. It must
    not keep a connection open, because processors are forked with it.
    """

    @property
    def lacking(self) -> tuple[str, ...]:
        """Required fields without a column; if there are any, the stream is read-only."""
        ...

    def encode(self, record: tuple[object, ...]) -> Payload:
        """Encode *record* for Kafka, or raise a `BadRecord` that names the column."""
        ...

    def decode(
        self, body: bytes, binaries: Mapping[str, bytes] = NO_BINARIES
    ) -> tuple[Any, ...]:
        """Decode a message into a record, or raise a `BadRecord` with the reason."""
        ...

    def key(self, body: bytes, columns: tuple[str, ...]) -> str | None:
        """Return the values of *columns* as JSON: equal values give equal text.

        The text does not depend on the format, so an operator can read streams in different
        formats by key. Return None if *body* is invalid: decoding it gives the reason.
        """
        ...
