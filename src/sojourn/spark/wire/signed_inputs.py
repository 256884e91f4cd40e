"""The header with the input that a record derives from, signed with a key of the application.

Readers drop duplicates by these headers (`sojourn.spark.wire.repetitions`), and a forged floor
could make them drop every later record. So a header counts only with the signature of this
application: HMAC-SHA256 over its text, truncated to 128 bits. It does not cover the id, because
a valid header on another record suppresses nothing: its offset was already written.
"""

import hmac
import re
from binascii import hexlify
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sojourn.spark.wire.headers import INPUT, Header
from sojourn.spark.wire.repetitions import Input, Provenance

SIGNATURE = 32
"""Hexadecimal digits of a signature."""
# Kafka's offsets have 63 bits. No leading zeros: the signature covers text.
_NUMBER = "(0|[1-9][0-9]{0,18})"
_NAME = "[A-Za-z0-9._-]+"
# Groups: 1 the signed text, 2 writer, 3 topic, 4 partition, 5 offset, 6 floor, 7 signature.
_FORM = re.compile(
    f"(({_NAME}) ([^/ ]+)/{_NUMBER}/{_NUMBER} {_NUMBER}) ([0-9a-f]{{{SIGNATURE}}})".encode()
)
# Each query of Spark's own adds one; verifying more would only cost time.
_MOST = 32
LONGEST = 480
"""The maximum length of a header: names of operators have up to 100 letters, topics 249."""


@dataclass(frozen=True, slots=True)
class SignedInputs:
    """Writes and verifies input headers with *key*, for records of *topics*.

    Topics are written as in ids, with the mark that distinguishes recreated ones. Without a key
    no headers are written, and none are accepted.

    >>> signed = SignedInputs(b"secret", frozenset(["lines@m"]))
    >>> entered = Input(writer="split", topic="lines@m", partition=0, offset=7, floor=5)
    >>> name, value = signed.header(entered)[0]
    >>> value.rpartition(b" ")[0]
    b'split lines@m/0/7 5'
    >>> signed.inputs([{"key": name, "value": value}]) == (entered,)
    True
    >>> signed.inputs([{"key": name, "value": value.replace(b"/7 ", b"/9 ")}])
    ()
    """

    key: bytes = field(default=b"", repr=False)
    topics: frozenset[str] = frozenset()

    def header(self, entered: Input) -> list[Header]:
        """Return the header of a record that derives from *entered*; none without a key."""
        if not self.key:
            return []
        text = f"{entered.writer} {entered.position} {entered.floor}".encode()
        return [(INPUT, b"%b %b" % (text, self._signature(text)))]

    def inputs(self, headers: Iterable[Mapping[str, Any]] | None) -> tuple[Input, ...]:
        """Return the verified inputs in headers, as Spark has them; the nearest writer last."""
        if not self.key:
            return ()
        values = [header["value"] for header in headers or () if header["key"] == INPUT]
        found = (self._verified(bytes(value)) for value in values[:_MOST] if value)
        return tuple(entered for entered in found if entered is not None)

    def provenance(
        self,
        identity: str,
        root: str,
        headers: Iterable[Mapping[str, Any]] | None,
        *,
        given: bool,
    ) -> Provenance | None:
        """Return the provenance by which duplicates are detected; None if there can be none.

        *given* is whether the record has an id in a header, not only a position. A root whose
        id is a position in one of our topics was not named by a producer.
        """
        inputs = self.inputs(headers)
        named = root.rsplit("/", 2)[0] not in self.topics if inputs else given
        if not inputs and not named:
            return None
        return Provenance(identity=identity, inputs=inputs, named=named)

    def _verified(self, value: bytes) -> Input | None:
        told = _FORM.fullmatch(value)
        if told is None or not hmac.compare_digest(self._signature(told[1]), told[7]):
            return None
        topic = told[3].decode(errors="replace")
        partition, offset, floor = (int(told[group]) for group in (4, 5, 6))
        if topic not in self.topics or floor > offset:
            return None
        return Input(
            writer=told[2].decode(),
            topic=topic,
            partition=partition,
            offset=offset,
            floor=floor,
        )

    def _signature(self, text: bytes) -> bytes:
        return hexlify(hmac.digest(self.key, text, "sha256")[: SIGNATURE // 2])
