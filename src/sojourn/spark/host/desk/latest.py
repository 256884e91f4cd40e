"""The latest record of each key of a broadcast stream, for processors that start later."""

from dataclasses import dataclass, field

from sojourn.spark.wire.record import Record

__all__ = ["Latest"]


@dataclass(slots=True)
class Latest:
    """At most *most* records and *most_bytes*; a record beyond these limits is not kept.

    >>> latest = Latest(most=1)
    >>> latest.keep(1, Record("a", b"old", key="k"))
    ''
    >>> latest.keep(2, Record("b", b"new", key="k"))
    ''
    >>> [record.payload for record in latest.records]
    [b'new']
    >>> latest.keep(3, Record("c", b"more", key="other"))
    'the limit of 1 keys is reached'
    """

    most: int = 10_000
    most_bytes: int = 64 << 20
    _kept: dict[tuple[str, str], tuple[int, Record]] = field(default_factory=dict)
    _bytes: int = 0

    @property
    def records(self) -> list[Record]:
        """All records, in order of arrival."""
        return [record for _, record in sorted(self._kept.values(), key=lambda kept: kept[0])]

    def keep(self, number: int, record: Record) -> str:
        """Keep a record in place of the previous one of its key.

        Return the reason if a limit prevents that. A record with a lower *number* than the one
        kept is older, and ignored.
        """
        if record.key is None:
            return ""
        name = record.stream, record.key
        if self.has_newer(number, record):
            return ""
        self.drop(record)
        if len(self._kept) >= self.most:
            return f"the limit of {self.most} keys is reached"
        if self._bytes + record.size_bytes > self.most_bytes:
            return f"the limit of {self.most_bytes} bytes is reached"
        self._kept[name] = number, record
        self._bytes += record.size_bytes
        return ""

    def has_newer(self, number: int, record: Record) -> bool:
        """Return whether a later record of the same key is kept."""
        return record.key is not None and (
            self._kept.get((record.stream, record.key), (number, record))[0] > number
        )

    def has(self, record: Record) -> bool:
        """Return whether *record* itself is the one kept for its key."""
        if record.key is None:
            return False
        _, kept = self._kept.get((record.stream, record.key), (0, None))
        return kept is record

    def drop(self, record: Record) -> None:
        """Remove the record of the key of *record*."""
        if record.key is not None:
            _, kept = self._kept.pop((record.stream, record.key), (0, None))
            self._bytes -= kept.size_bytes if kept is not None else 0
