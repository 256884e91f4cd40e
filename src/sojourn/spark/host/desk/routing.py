"""Routing of records: to operators of their part, or out of it."""

from collections.abc import Mapping

import msgspec

from sojourn.spark.host.batch.cut import OpenRecord
from sojourn.spark.host.desk.part_graph import PartGraph
from sojourn.spark.wire.headers import child_identity
from sojourn.spark.wire.processor import OutputRecord
from sojourn.spark.wire.record import Record, Root
from sojourn.spark.wire.relay import DeadResult, Row

__all__ = ["as_record", "passing_through", "read_by"]


def read_by(
    graph: PartGraph,
    root: Root,
    record: Record,
    keys: Mapping[str, str | None],
    only: str | None = None,
) -> list[OpenRecord]:
    """Return one open record for each operator that reads the stream, or for *only* one.

    *keys* has the key of the record by reader.
    """
    return [
        OpenRecord(root, reader, _as_read(graph, reader, record, keys))
        for reader in graph.readers.get(record.stream, ())
        if only is None or reader == only
    ]


def _as_read(
    graph: PartGraph, reader: str, record: Record, keys: Mapping[str, str | None]
) -> Record:
    everyone = (reader, record.stream) in graph.everyone
    key = keys.get(reader)
    if not everyone and key is None:
        return record
    return msgspec.structs.replace(record, everyone=everyone, key=key)


def passing_through(graph: PartGraph, row: Row, record: Record) -> Record | DeadResult | None:
    """Return the record or dead letter of a row that skips all operators, or None.

    That is a row that a projection refused, or a retry for a projection behind the part.
    """
    if row.refused is not None:
        operator, error = row.refused
        return DeadResult(operator, record, error, "", 1)
    if row.only is not None and graph.behind.get(row.only) == record.stream:
        return msgspec.structs.replace(record, stream=row.only)
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
