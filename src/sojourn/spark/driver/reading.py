"""Detects partitions whose waiting records are not read."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

# Well above the gap between two batches, which takes about a second.
_STALLED_S = 5.0
# The last offsets of a partition may be transaction markers instead of records.
_MARGIN = 8
_MOST_NAMED = 3

_Positions = Mapping[str, Mapping[int, int]]
_Place = tuple[str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Partition:
    """The progress of a reader in a partition."""

    first_end: int
    """The end offset at the first look."""
    position: int
    """The next offset to read."""
    since_s: float
    """The time since when records have been waiting without progress."""
    read: bool = False
    """Whether any record was read since the first look."""
    waits: bool = False


class Reading:
    """The progress of readers in their partitions, look by look.

    >>> reading = Reading()
    >>> for at_s, position, end in [(0, 0, 20), (1, 0, 30), (2, 30, 30)]:
    ...     reading.saw(at_s, {"split": {"lines": {0: position}}}, {"lines": {0: end}})
    ...     print(at_s, reading.waits_for or "reads")
    0 waiting for the first records of lines[0]
    1 waiting for the first records of lines[0]
    2 reads

    Once all partitions with waiting records have been read, only those count that make no
    progress for some seconds.

    >>> for at_s in (3, 8, 9):
    ...     reading.saw(at_s, {"split": {"lines": {0: 30}}}, {"lines": {0: 60}})
    >>> reading.notices
    ('split: records wait in lines[0], and none has been read for more than 5 s',)
    """

    def __init__(self) -> None:
        self._partitions: dict[_Place, _Partition] = {}
        self._began, self._paused = False, False
        self.waits_for = ""
        self.notices: tuple[str, ...] = ()

    @property
    def stands_still(self) -> bool:
        """Whether records wait that should have been read."""
        return bool(self.waits_for or self.notices)

    def pause(self) -> None:
        """Do not count the time until the next look, because no broker answers."""
        self._paused = True

    def saw(
        self,
        now_s: float,
        positions: Mapping[str, _Positions],
        ends: _Positions,
        oldest: _Positions | None = None,
        closed: Collection[str] = (),
    ) -> None:
        """Take in the *positions* of parts, and the *ends* and *oldest* offsets of topics.

        Parts that are *closed* read no records, because too many wait inside.
        """
        paused, self._paused = self._paused, False
        seen = {}
        for part, topics in positions.items():
            for topic, at in topics.items():
                for number, end in ends.get(topic, {}).items():
                    place = part, topic, number
                    position = max(
                        at.get(number, 0), (oldest or {}).get(topic, {}).get(number, 0)
                    )
                    before = self._partitions.get(
                        place, _Partition(first_end=end, position=position, since_s=now_s)
                    )
                    seen[place] = _moved(
                        before, position, end, now_s, still=not paused and part not in closed
                    )
        self._partitions = seen
        self._judge(now_s)

    def _judge(self, now_s: float) -> None:
        waiting = {place: each for place, each in self._partitions.items() if each.waits}
        late = {p for p, each in waiting.items() if now_s - each.since_s > _STALLED_S}
        unread = {p for p, each in waiting.items() if not each.read}
        self._began = self._began or not unread
        first = unread & late if self._began else unread
        self.waits_for = f"waiting for the first records of {_named(first)}" if first else ""
        self.notices = tuple(
            f"{part}: records wait in {_named(p for p in late - first if p[0] == part)}, and "
            f"none has been read for more than {_STALLED_S:g} s"
            for part in sorted({place[0] for place in late - first})
        )


def _moved(
    before: _Partition, position: int, end: int, now_s: float, *, still: bool
) -> _Partition:
    """Return the current progress in a partition.

    *still* is whether its part could have read since *before*: else the wait starts anew.
    """
    read = before.read or position != before.position
    # before the first read, a single record counts if it came after the first look; later,
    # the margin leaves out the markers of transactions, which are never read as records
    waits = end - position > _MARGIN or (not read and before.first_end < end > position)
    same = still and waits and before.waits and position == before.position
    return replace(
        before,
        position=position,
        read=read,
        waits=waits,
        since_s=before.since_s if same else now_s,
    )


def _named(places: Iterable[_Place]) -> str:
    names = [f"{topic}[{number}]" for _, topic, number in sorted(places)]
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
