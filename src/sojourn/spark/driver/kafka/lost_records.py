"""Records that Kafka's retention deleted before an application read them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sojourn.errors import BadInput

__all__ = ["LostRecords", "lost_records", "refuse_lost", "told_lost"]

Positions = Mapping[str, Mapping[int, int]]


@dataclass(frozen=True, slots=True, order=True)
class LostRecords:
    """The lost offsets of a partition: from *first* to *end*, exclusive."""

    topic: str
    partition: int
    first: int
    end: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}] offsets {self.first} to {self.end - 1}"


def lost_records(positions: Iterable[Positions], earliest: Positions) -> list[LostRecords]:
    """Return the gaps between the offsets at which queries resume and the *earliest* in Kafka.

    >>> lost_records([{"orders": {0: 7, 1: 9}}], {"orders": {0: 9, 1: 9}})
    [LostRecords(topic='orders', partition=0, first=7, end=9)]
    """
    lowest: dict[tuple[str, int], int] = {}
    for each in positions:
        for topic, partitions in each.items():
            for partition, offset in partitions.items():
                place = topic, partition
                lowest[place] = min(offset, lowest.get(place, offset))
    return sorted(
        LostRecords(topic, partition, offset, end)
        for (topic, partition), offset in lowest.items()
        if offset < (end := earliest.get(topic, {}).get(partition, 0))
    )


def refuse_lost(lost: Sequence[LostRecords]) -> None:
    """Raise `BadInput` if anything is lost."""
    if lost:
        raise BadInput(
            f"Kafka deleted {told_lost(lost)} before the application read them; start with "
            "--skip-lost to skip them and keep all states, and increase the retention of the "
            "topics"
        )


def told_lost(lost: Sequence[LostRecords]) -> str:
    """Return the number of lost records and their offsets, for a message.

    >>> told_lost([LostRecords("orders", 0, 7, 9)])
    '2 records (orders[0] offsets 7 to 8)'
    """
    number = sum(each.end - each.first for each in lost)
    return f"{number} records ({', '.join(map(str, lost))})"
