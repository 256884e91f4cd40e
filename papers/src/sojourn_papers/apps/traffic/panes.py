"""A sliding window of reports as panes: what is known of each slide, in sums.

A pane has the reports of one slide, so a window is as many panes as it has slides, and all
windows share them.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

SLOW_CM_S = 420
"""15 km/h: in a queue the average is at most this."""
FREE_CM_S = 550
"""20 km/h: vehicles come to the end of a queue from where they are as fast, or faster."""
LEAST_ENTRIES = 2
"""One vehicle alone may have stopped for another reason."""


class Pane(NamedTuple):
    """Reports of slide *number*: how many, the sum of their speeds, the highest, in cm/s.

    *entries* of them are the first of a vehicle in this cell, and *entry_sum* is the sum of the
    speeds that these had in the cells before.
    """

    number: int
    reports: int
    speed_sum: int
    highest: int
    entries: int
    entry_sum: int

    @property
    def average(self) -> int:
        """The average speed, rounded down."""
        return self.speed_sum // self.reports

    @property
    def is_queue_end(self) -> bool:
        """Whether vehicles come from where traffic is free, and are slow here.

        >>> Pane(0, 4, 1_000, 400, entries=2, entry_sum=2_400).is_queue_end
        True
        >>> Pane(0, 4, 1_000, 400, entries=2, entry_sum=600).is_queue_end  # inside the queue
        False
        """
        return (
            self.speed_sum <= SLOW_CM_S * self.reports
            and self.entries >= LEAST_ENTRIES
            and self.entry_sum >= FREE_CM_S * self.entries
        )


def added(panes: Sequence[Pane], report: Pane, keep: int) -> list[Pane]:
    """Return *panes* by number with a *report* more, without those that end before the last.

    Those of the last *keep* numbers stay.

    >>> one, two = Pane(7, 1, 500, 500, 0, 0), Pane(7, 1, 300, 300, 1, 900)
    >>> added([one], two, keep=3)
    [Pane(number=7, reports=2, speed_sum=800, highest=500, entries=1, entry_sum=900)]
    >>> [pane.number for pane in added([one], one._replace(number=10), keep=3)]
    [10]
    """
    others = [pane for pane in panes if pane.number != report.number]
    same = [pane for pane in panes if pane.number == report.number]
    found = sorted([*others, total(report.number, [*same, report])])
    oldest = found[-1].number - keep + 1
    return [pane for pane in found if pane.number >= oldest]


def total(number: int, panes: Iterable[Pane]) -> Pane:
    """Return all *panes*, of which there is one at least, as if they were one."""
    _, reports, speed_sums, highest, entries, entry_sums = zip(*panes, strict=True)
    return Pane(
        number, sum(reports), sum(speed_sums), max(highest), sum(entries), sum(entry_sums)
    )
