"""The results of the micro-benchmark: with the defaults every operator yields one record.

So a record is a result once for each way from its source to a sink.
"""

from collections.abc import Iterator

from sojourn_papers.apps.catalogue import Record


def linear(_source: str, record: Record) -> Iterator[tuple[str, Record]]:
    """Yield the only result."""
    yield "op4", record


def diamond(_source: str, record: Record) -> Iterator[tuple[str, Record]]:
    """Yield the result of either side."""
    yield "op4", record
    yield "op4", record


def star(_source: str, record: Record) -> Iterator[tuple[str, Record]]:
    """Yield the results at both ends."""
    yield "op4", record
    yield "op5", record
