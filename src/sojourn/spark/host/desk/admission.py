"""Credit for relays: as many records as operators want, and as a part has room for.

Each operator has a share of the part's memory. Records beyond that share are spilled to disk,
so that a slow operator does not block the branches beside it. If every path leads through the
slow operator, spilling helps no other branch: relays get no credit, and records wait in Kafka.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of the records in a part.

    Beyond them no record is taken from Kafka; outputs of records inside are held in any case.
    """

    records: int = 100_000
    """Records in memory."""
    bytes: int = 256 << 20
    """Bytes in memory."""
    spilled: int = 1_000_000
    """Records on disk."""
    spilled_bytes: int = 1 << 30
    """Bytes on disk."""
    of_root: int = 1_000_000
    """Records in the tree of a root; the one that exceeds it is handled by `on_error`."""


@dataclass(slots=True)
class _Relay:
    """The credit of a relay, and the origin of its last row."""

    credit: int = 0
    """Rows that it may still hand over."""
    stream: str | None = None
    topic: str | None = None


class Admission:
    """Counts the records in a part, and grants relays credit for more."""

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
        self._entries: set[str] = set()  # the operators that read the streams of relays
        # Whether no relay lacks credit; holds until a relay or one of the entries changes.
        self._settled = False
        self.closed_by: tuple[str, ...] = ()
        """Operators that are full, and for which relays get no credit."""

    # -- records in memory ------------------------------------------------------------------

    def entered(self, operator: str, record: Record) -> None:
        size_bytes = record.size_bytes
        self._records += 1
        self._bytes += size_bytes
        self._bytes_of[operator] += size_bytes

    def left(self, operator: str, record: Record) -> None:
        size_bytes = record.size_bytes
        self._records -= 1
        self._bytes -= size_bytes
        self._bytes_of[operator] -= size_bytes

    def forget(self) -> None:
        self._records = self._bytes = 0
        self._bytes_of.clear()

    def spills(self, operator: str) -> bool:
        """Return whether an operator has used up its share: its next record goes to disk."""
        return (
            self._operators[operator].waiting >= self._share
            or self._bytes_of[operator] >= self._share_bytes
            or self._spill.waiting(operator) > 0
        )

    def fetches(self, operator: str) -> bool:
        """Return whether memory has room again for the records an operator has on disk."""
        return (
            self._spill.waiting(operator) > 0
            and 2 * self._operators[operator].waiting < self._share
            and 2 * self._bytes_of[operator] < self._share_bytes
        )

    # -- relays -----------------------------------------------------------------------------

    def relay_came(self, relay: int) -> None:
        """Add a relay; its stream is unknown until its first row."""
        self._relays[relay] = _Relay()
        self._settled = False

    def relay_left(self, relay: int) -> None:
        self._relays.pop(relay, None)
        self._settled = False

    def row_came(self, relay: int, topic: str, stream: str | None) -> None:
        """Subtract a row from a relay's credit; *stream* is None if a projection refused it."""
        if (here := self._relays.get(relay)) is not None:
            here.credit = max(0, here.credit - 1)
            self._settled = False
            if stream is not None:
                here.topic = topic
                if here.stream != stream:
                    here.stream = stream
                    self._entries.update(self._graph.readers.get(stream, ()))

    def grants(self, changed: Collection[str]) -> list[GrantRelay]:
        """Return credit for relays: as many records as their operators want, within limits.

        *changed* are the operators that may want more records than at the last call. Relays of
        a stream have equal shares, whatever credit the others have not used: a relay without
        rows would otherwise starve them.
        """
        if self._settled and self._entries.isdisjoint(changed):
            return []  # the usual case: this is called for every event
        granted: list[GrantRelay] = []
        full = self._full()
        self.closed_by = ()
        self._settled = not full
        for relay, here in self._relays.items():
            wanted = 1 if here.stream is None else self._wanted(here.stream, full)
            if wanted <= 2 * here.credit and not full:
                continue  # credit for one record at a time would wake up the relay for each
            self._settled = False
            share = min(-(-wanted // self._sharing(here.stream)), self._bound(here, full))
            if (number := share - here.credit) > 0:
                here.credit += number
                granted.append(GrantRelay(relay, number))
        return granted

    def _full(self) -> list[str]:
        if self._records < self._share and self._bytes < self._share_bytes and not self._spill:
            return []  # no operator can be full; in this sum a broadcast record counts once
        return [name for name in self._operators if self.spills(name)]

    def _sharing(self, stream: str | None) -> int:
        if stream is None:
            return 1
        return sum(here.stream == stream for here in self._relays.values())

    def _wanted(self, stream: str, full: Iterable[str]) -> int:
        """Return the records that the readers of a stream want.

        The reader that wants most decides: the others queue them, up to their share.
        """
        readers = self._graph.readers.get(stream, ())
        rooms = [self._operators[name].room for name in readers if name not in full]
        return max(rooms, default=0 if readers else 1)

    def _bound(self, here: _Relay, full: list[str]) -> int:
        """Return the number of roots for which there is room, with the trees they make."""
        limits = self._limits
        tree = 1.0 if here.topic is None else self._visits.tree(here.topic)
        if not self._records and not len(self._spill):
            return max(1, int(limits.records / tree))  # at least one, however large its tree
        # Records wait in Kafka if the disk's share is used up, or if all paths lead through
        # full operators, so that spilling would help no other branch.
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
