"""Traffic between a host and the agent of a node: bytes by stream, and recent rates.

Frames are counted as a whole, so names, headers and states of keys are included.
"""

from collections import deque
from collections.abc import Sequence

from sojourn.spark.wire.processor import OutputRecord, Result
from sojourn.spark.wire.record import Record

__all__ = ["Traffic"]

# One mark per second, so six of them give the rate of the last five seconds.
_MARKS = 6


class Traffic:
    """Bytes by stream, to a node and back, since it connected.

    >>> traffic = Traffic()
    >>> traffic.mark(10.0)
    >>> traffic.gave([Record("lines/0/7", b"a b", "lines")], 60)
    >>> traffic.got([Result([OutputRecord("words", b"a"), OutputRecord("ends", b"b")])], 41)
    >>> traffic.got([Result([])], 20)
    >>> traffic.to, traffic.back
    ({'lines': 60}, {'words': 20, 'ends': 21, '': 20})
    >>> traffic.mark(12.0)
    >>> traffic.per_s
    (30.0, 30.5)
    """

    def __init__(self) -> None:
        self.to: dict[str, int] = {}
        self.back: dict[str, int] = {}
        self._marks: deque[tuple[float, int, int]] = deque(maxlen=_MARKS)

    def gave(self, records: Sequence[Record], size_bytes: int) -> None:
        """Count a frame with *records* for a processor."""
        _count(self.to, records, size_bytes)

    def got(self, results: Sequence[Result], size_bytes: int) -> None:
        """Count a frame with *results*; without outputs it counts for the stream `""`."""
        if len(results) == 1:
            outputs: Sequence[OutputRecord] = results[0].outputs
        else:
            outputs = [output for result in results for output in result.outputs]
        _count(self.back, outputs, size_bytes)

    def mark(self, now_s: float) -> None:
        """Record the totals, from which `per_s` derives rates."""
        self._marks.append((now_s, sum(self.to.values()), sum(self.back.values())))

    @property
    def per_s(self) -> tuple[float, float]:
        """Bytes per second to the node and back, over the last marks."""
        if len(self._marks) < 2:
            return 0.0, 0.0
        (since_s, to, back), (at_s, to_now, back_now) = self._marks[0], self._marks[-1]
        lasted_s = max(at_s - since_s, 1e-9)
        return (to_now - to) / lasted_s, (back_now - back) / lasted_s


def _count(
    total: dict[str, int], records: Sequence[Record | OutputRecord], size_bytes: int
) -> None:
    """Add a frame to the stream of its records, or divide it if they are of several."""
    stream = records[0].stream if records else ""
    if len(records) > 1 and any(record.stream != stream for record in records):
        _divide(total, records, size_bytes)
    else:
        total[stream] = total.get(stream, 0) + size_bytes


def _divide(
    total: dict[str, int], records: Sequence[Record | OutputRecord], size_bytes: int
) -> None:
    """Divide a frame among streams in proportion to their bytes, without a remainder."""
    carried: dict[str, int] = {}
    for record in records:
        # An empty record counts too, because its name takes space.
        carried[record.stream] = carried.get(record.stream, 0) + 1 + record.size_bytes
    left, weights = size_bytes, sum(carried.values())
    # Each gets its share of the rest, and the last all of it, so rounding loses nothing.
    for stream, weight in carried.items():
        share = left * weight // weights if weights > weight else left
        total[stream] = total.get(stream, 0) + share
        left, weights = left - share, weights - weight
