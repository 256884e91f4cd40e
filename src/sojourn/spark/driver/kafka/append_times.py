"""Append times of records by the clock of this machine: between two polls of end offsets."""

import time
from bisect import bisect_right
from collections import deque
from collections.abc import Mapping

from confluent_kafka.admin import AdminClient

from sojourn.spark.driver.kafka.offsets import Offsets

__all__ = ["AppendTimes", "place_of"]

# Polls to keep: eight minutes of them, or two at four times the rate, under high load. That is
# longer than the latency of any record that matters to a target.
_KEPT = 2400


class AppendTimes(Offsets):
    """End offsets with a history by partition, and the wall-clock time of each poll."""

    def __init__(
        self, client: AdminClient, topics: Mapping[str, int], *, every_s: float = 0.2
    ) -> None:
        super().__init__(client, topics, every_s=every_s)
        self._looks: deque[tuple[float, dict[str, dict[int, int]]]] = deque(maxlen=_KEPT)

    def look(self) -> dict[str, dict[int, int]]:
        """Poll, keep the result, and return the end offsets.

        Raise `EngineError` if no broker answers.
        """
        ends = super().look()
        self._looks.append((time.time(), ends))
        return ends

    def appended(self, topic: str, partition: int, offset: int) -> tuple[float, float] | None:
        """Return the times of the polls before and after a record was appended.

        None if it was appended before the first poll in the history, or after the last.
        """
        looks = tuple(self._looks)
        later = bisect_right(
            looks, offset, key=lambda look: look[1].get(topic, {}).get(partition, 0)
        )
        if not 0 < later < len(looks):
            return None
        return looks[later - 1][0], looks[later][0]


def place_of(root: str) -> tuple[str, int, int] | None:
    """Return topic, partition and offset from the id of a root; None if it has another form.

    The topic may carry a mark (`headers.marked`), which is dropped.

    >>> place_of("orders@Xk3f9a2B-5f0c9e1a/3/1207"), place_of("an id of its own")
    (('orders', 3, 1207), None)
    """
    parts = root.rsplit("/", 2)
    if len(parts) != 3 or not (parts[1].isdecimal() and parts[2].isdecimal()):
        return None
    return parts[0].partition("@")[0], int(parts[1]), int(parts[2])
