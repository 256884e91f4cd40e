"""How many records relays may bring: as many as operators want, and a part has room for.

An operator has its share of what is kept in memory. What comes to it beyond that is spilled to
disk, so that a slow operator does not hold up those beside it. Where there is nobody beside
it, records wait in Kafka instead: the entry is closed.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from sojourn.spark.host.batch.spill import Spill
from sojourn.spark.host.desk.instructions import GrantRelay
from sojourn.spark.host.desk.operator_desk import OperatorDesk
from sojourn.spark.host.desk.part_graph import PartGraph
from sojourn.spark.host.desk.visits import Visits
from sojourn.spark.wire.record import Record

__all__ = ["Admission", "Limits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a part holds at most: *records* and *bytes* in memory, and what is spilled.

    Beyond that none is taken from Kafka; what those inside send on is held in any case. A
    record that would let its root make more than *of_root* follows `on_error`.
    """

    records: int = 100_000
    bytes: int = 256 << 20
    spilled: int = 1_000_000
    spilled_bytes: int = 1 << 30
    of_root: int = 1_000_000


@dataclass(slots=True)
class _Relay:
    """A relay: rows that it may still hand over, and what the last that it did was of."""

    credit: int = 0
    stream: str | None = None
    topic: str | None = None


class Admission:
    """Who may bring records, of what is inside: *closed_by* are those who keep others out."""

    def __init__(
        self,
        graph: PartGraph,
        operators: Mapping[str, OperatorDesk],
        visits: Visits,
        spill: Spill,
        limits: Limits,
    ) -> None:
        self._graph, self._operators = graph, operators
        self._visits, self._spill, self._limits = visits, spill, limits
        self._relays: dict[int, _Relay] = {}
        self._records = self._bytes = 0
        self._bytes_of: Counter[str] = Counter()
        self._share = max(1, limits.records // len(operators))
        self._share_bytes = max(1, limits.bytes // len(operators))
        self._entries: set[str] = set()  # the operators that read what relays bring
        self._settled = False  # whether no relay lacks credit, until one of these changes
        self.closed_by: tuple[str, ...] = ()

    # -- what is inside ---------------------------------------------------------------------

    def entered(self, operator: str, record: Record) -> None:
        """Count a record that is in memory from now on."""
        size_bytes = record.size_bytes
        self._records += 1
        self._bytes += size_bytes
        self._bytes_of[operator] += size_bytes

    def left(self, operator: str, record: Record) -> None:
        """Count a record that is done."""
        size_bytes = record.size_bytes
        self._records -= 1
        self._bytes -= size_bytes
        self._bytes_of[operator] -= size_bytes

    def forget(self) -> None:
        """Begin to count anew."""
        self._records = self._bytes = 0
        self._bytes_of.clear()

    def spills(self, operator: str) -> bool:
        """Tell whether an operator has its share: what comes next has to wait on disk."""
        return (
            self._operators[operator].waiting >= self._share
            or self._bytes_of[operator] >= self._share_bytes
            or self._spill.waiting(operator) > 0
        )

    def fetches(self, operator: str) -> bool:
        """Tell whether there is room in memory again for what an operator has on disk."""
        return (
            self._spill.waiting(operator) > 0
            and 2 * self._operators[operator].waiting < self._share
            and 2 * self._bytes_of[operator] < self._share_bytes
        )

    # -- relays -----------------------------------------------------------------------------

    def relay_came(self, relay: int) -> None:
        """Take note of a relay; what it brings is not known before its first row."""
        self._relays[relay] = _Relay()
        self._settled = False

    def relay_left(self, relay: int) -> None:
        """Do without a relay."""
        self._relays.pop(relay, None)
        self._settled = False

    def row_came(self, relay: int, topic: str, stream: str | None) -> None:
        """Take note of what a relay has brought; of no *stream* if nobody here reads it."""
        if (here := self._relays.get(relay)) is not None:
            here.credit = max(0, here.credit - 1)
            self._settled = False
            if stream is not None:
                here.topic = topic
                if here.stream != stream:
                    here.stream = stream
                    self._entries.update(self._graph.readers.get(stream, ()))

    def grants(self, changed: Collection[str]) -> list[GrantRelay]:
        """Return credit for relays: what the operators that read them want, within the bound.

        *changed* are the operators that may want more than when this was last called. Each
        relay has its share, whatever the others have not used: one that has nothing to bring
        would otherwise keep another waiting.
        """
        if self._settled and self._entries.isdisjoint(changed):
            return []  # most often: this is called for every event
        granted: list[GrantRelay] = []
        full = self._full()
        self.closed_by = ()
        self._settled = not full
        for relay, here in self._relays.items():
            wanted = 1 if here.stream is None else self._wanted(here.stream, full)
            if wanted <= 2 * here.credit and not full:
                continue  # credit for single records would wake up the relay for each of them
            self._settled = False
            share = min(-(-wanted // self._sharing(here.stream)), self._bound(here, full))
            if (number := share - here.credit) > 0:
                here.credit += number
                granted.append(GrantRelay(relay, number))
        return granted

    def _full(self) -> list[str]:
        """Return the operators that have their share."""
        if self._records < self._share and self._bytes < self._share_bytes and not self._spill:
            return []  # nobody, even if one has all; a record for everyone counts once here
        return [name for name in self._operators if self.spills(name)]

    def _sharing(self, stream: str | None) -> int:
        """Return how many relays share what those who read a stream want."""
        if stream is None:
            return 1
        return sum(here.stream == stream for here in self._relays.values())

    def _wanted(self, stream: str, full: Iterable[str]) -> int:
        """Return how many records those who read a stream want in hand.

        As many as the one that wants most: others let them wait, up to their share.
        """
        readers = self._graph.readers.get(stream, ())
        rooms = [self._operators[name].room for name in readers if name not in full]
        return max(rooms, default=0 if readers else 1)

    def _bound(self, here: _Relay, full: list[str]) -> int:
        """Return how many roots there is room for, with all that comes of them."""
        limits = self._limits
        tree = 1.0 if here.topic is None else self._visits.tree(here.topic)
        if not self._records and not len(self._spill):
            return max(1, int(limits.records / tree))
        if (
            full
            and here.stream
            and (
                len(self._spill) >= limits.spilled
                or self._spill.bytes >= limits.spilled_bytes
                or not self._graph.leads_out(here.stream, full)
            )
        ):
            self.closed_by = tuple(full)
            return 0
        if self._bytes >= limits.bytes:
            return 0
        return int((limits.records - self._records) / tree)
