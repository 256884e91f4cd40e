"""The streams between the operators of a part, and the records on them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import msgspec

from sojourn.spark.host.batch.host_log import Leaving
from sojourn.spark.wire.headers import child_identity
from sojourn.spark.wire.processor import OutputRecord
from sojourn.spark.wire.record import Record, Root
from sojourn.spark.wire.relay import DeadResult, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class PartGraph:
    """The operators and streams of a part."""

    readers: Mapping[str, tuple[str, ...]]
    """Operators that read a stream."""
    emits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Streams that an operator emits."""
    leaving: frozenset[str] = frozenset()
    """Streams that leave the part, through relays."""
    everyone: frozenset[tuple[str, str]] = field(default=frozenset())
    """Broadcast streams, each as the operator that reads it and its name."""
    inner: frozenset[str] = frozenset()
    """Streams whose records have not been in a topic when they are read."""
    behind: Mapping[str, str] = field(default_factory=dict)
    """The stream that a projection behind the part reads, by the projection's name."""
    stateful: frozenset[str] = frozenset()
    """Operators with a state for each key."""
    nulls: frozenset[str] = frozenset()
    """Operators that also read messages without a value."""

    def leads_out(self, stream: str, without: Collection[str]) -> bool:
        """Return whether records of a stream can reach an exit *without* some operators.

        An exit is an operator that emits nothing, or a stream that leaves the part.

        >>> graph = PartGraph(
        ...     readers={"lines": ("split",), "words": ("count", "store")},
        ...     emits={"split": ("words",), "count": (), "store": ()},
        ... )
        >>> graph.leads_out("lines", ["store"]), graph.leads_out("lines", ["store", "count"])
        (True, False)
        """
        left, seen = list(self.readers.get(stream, ())), set(without)
        while left:
            operator = left.pop()
            if operator in seen:
                continue
            seen.add(operator)
            emits = self.emits.get(operator, ())
            if not emits or any(name in self.leaving for name in emits):
                return True
            left += [reader for name in emits for reader in self.readers.get(name, ())]
        return False

    def as_read(self, record: Record, reader: str, key: str | None) -> Record:
        """Return a record as an operator reads it: by its *key* there, or broadcast."""
        everyone = (reader, record.stream) in self.everyone
        if not everyone and key is None:
            return record
        return msgspec.structs.replace(record, everyone=everyone, key=key)

    def passing_through(self, root: Root, row: Row, record: Record) -> Leaving | None:
        """Return the record or dead letter of a row that skips all operators, or None.

        That is a row that a projection refused, or a retry for a projection behind the part.
        """
        if row.refused is not None:
            operator, error = row.refused
            return Leaving(root, None, DeadResult(operator, record, error, "", 1))
        if row.only is not None and self.behind.get(row.only) == record.stream:
            return Leaving(root, msgspec.structs.replace(record, stream=row.only))
        return None


def as_record(
    parent: Record, operator: str, number: int, output: OutputRecord, written_s: float
) -> Record:
    """Return the record of output *number*, with the root and the message of its parent."""
    name = child_identity(parent.name, operator, number, root=parent.root)
    return Record(
        name,
        output.payload,
        output.stream,
        output.blobs,
        written_s=written_s,
        root=parent.root,
        birth_s=parent.birth_s,
        traced=parent.traced,
        # a longer id leaves less room in a Kafka message
        room=max(1, parent.room + len(parent.name) - len(name)) if parent.room else 0,
        position=parent.position,
        message_key=parent.message_key,
    )
