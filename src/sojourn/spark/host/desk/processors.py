"""The processors of one operator, on the nodes where they are wanted."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush

from sojourn.decide.plan import ANYWHERE, HERE
from sojourn.spark.host.batch.cut import OpenRecord
from sojourn.spark.host.desk.starts import Starts
from sojourn.spark.wire.record import Record


@dataclass(slots=True)
class Processor:
    """The state of a processor: starting, idle, busy, or retiring."""

    since_s: float
    """When its start, or the work on the first of its records, began."""
    node: str = HERE
    ready: bool = False
    lost: bool = False
    """It is gone; the reason is not known yet."""
    going: bool = False
    """It retires: it ends once it is done with its records."""
    records: list[OpenRecord] = field(default_factory=list)
    """Records that it has and is not done with, in order."""
    forgotten: bool = False
    """Its records are not open any more, so their results are ignored."""
    waits_for_first: bool = False
    """It was idle when it got its records, and is not done with the first."""
    lane: deque[OpenRecord] = field(default_factory=deque)
    """Broadcast records that wait for it."""
    tried: int = 0
    """Failed tries of the broadcast record that it processes."""
    to_know: deque[Record] = field(default_factory=deque)
    """Backfill that it has not been sent yet."""
    learning: list[Record] = field(default_factory=list)
    """Backfill that it was sent and has not acknowledged."""

    @property
    def here(self) -> bool:
        """Whether it takes records, now or once it is done with those it has."""
        return self.ready and not (self.lost or self.going)


class Processors:
    """The processors of an operator by number, and the placement that is wanted.

    Processors wanted on a node that is not connected yet are started when it connects; those
    of a lost node run on other nodes until it is back, or until the next placement. While
    replacements are not ready, as many processors stay where they are not wanted any more, so
    that a move causes no gap.
    """

    def __init__(self) -> None:
        self._placed: Mapping[str, int] = {}
        # ANYWHERE counts as lost, so its processors are spread over the connected nodes.
        self._lost: set[str] = {ANYWHERE}
        # The placement with the processors of lost nodes on others.
        self._wanted: dict[str, int] = {}
        self._nodes = {HERE}
        self._number = 0
        self._all: dict[int, Processor] = {}
        self.here: set[int] = set()
        """Numbers of the processors that can take records."""
        self.by_node: Mapping[str, int] = {}
        """How many processors can take records, by node; a change makes a new mapping."""
        # A heap, with entries that may be outdated: `next_idle` skips those.
        self._idle: list[tuple[bool, int]] = []
        self._starts: dict[str, Starts] = {}
        self.changes = 0
        """A version: it grows when the running or the missing processors may have changed."""

    def __iter__(self) -> Iterator[tuple[int, Processor]]:
        return iter(self._all.items())

    def get(self, number: int) -> Processor | None:
        return self._all.get(number)

    # -- queries --------------------------------------------------------------------------

    @property
    def wanted(self) -> int:
        return sum(self._wanted.values())

    @property
    def running(self) -> int:
        """How many processors can take records."""
        return len(self.here)

    @property
    def missing(self) -> str:
        """Why fewer run than are wanted, if some cannot be started."""
        if len(self.here) >= self.wanted:
            return ""
        away = sorted(node for node, k in self._wanted.items() if k and node not in self._nodes)
        if away:
            return f"node {away[0]} is not connected" if away[0] else "no node is there"
        return next((starts.why for starts in self._starts.values() if starts.why), "")

    @property
    def failures(self) -> int:
        """Failed starts since the last that succeeded, on the node with most of them."""
        return max((starts.failures for starts in self._starts.values()), default=0)

    @property
    def hopeless(self) -> bool:
        """Whether no processor runs, and starts keep failing on all nodes."""
        wanted = [node for node, k in self._wanted.items() if k]
        there = [self._starts[node] for node in wanted if node in self._starts]
        if len(there) < len(wanted) or not there or self._staying():
            return False
        return all(starts.hopeless for starts in there)

    def late(self, now_s: float, limit_s: float) -> list[int]:
        """Return the processors that have worked on one record for longer than *limit_s*."""
        return [
            number
            for number, each in self._all.items()
            if (each.records or each.learning) and now_s - each.since_s > limit_s
        ]

    def unready(self, now_s: float, limit_s: float) -> list[int]:
        """Return the processors that have been starting for longer than *limit_s*."""
        return [
            number
            for number, each in self._all.items()
            if not each.ready and now_s - each.since_s > limit_s
        ]

    # -- nodes ----------------------------------------------------------------------------

    def place(self, on: Mapping[str, int]) -> None:
        """Set the number of processors wanted by node; elsewhere none are wanted."""
        self._placed = dict(on)
        self._replace_lost()

    def node_came(self, node: str) -> None:
        """Add a connected node: `to_start` then includes the processors wanted there."""
        self._nodes.add(node)
        self._lost.discard(node)
        self._replace_lost()

    def node_left(self, node: str) -> list[tuple[int, Processor]]:
        """Remove a lost node, and return the processors that were on it."""
        self._nodes.discard(node)
        self._lost.add(node)
        self._starts.pop(node, None)
        self._replace_lost()
        gone = [(number, each) for number, each in self._all.items() if each.node == node]
        for number, _ in gone:
            self.remove(number)
        return gone

    def _replace_lost(self) -> None:
        """Spread the processors of lost nodes over the connected nodes, the emptiest first."""
        self.changes += 1
        self._wanted = {n: k for n, k in self._placed.items() if n not in self._lost}
        lost = {n: k for n, k in self._placed.items() if n in self._lost}
        there = sorted(self._nodes - {HERE}, key=lambda node: (len(node), node))
        if not there:
            self._wanted |= lost
            return
        for _ in range(sum(lost.values())):
            least = min(there, key=lambda node: self._wanted.get(node, 0))
            self._wanted[least] = self._wanted.get(least, 0) + 1

    # -- starts and ends --------------------------------------------------------------------

    def to_start(self, now_s: float) -> list[tuple[int, str]]:
        """Create missing processors, except on nodes in back-off; return number and node."""
        asked: list[tuple[int, str]] = []
        for node, wanted in self._wanted.items():
            missing = wanted - len(self._staying(node))
            starts = self._starts.setdefault(node, Starts())
            if missing <= 0 or node not in self._nodes or starts.waits(now_s):
                continue
            for _ in range(missing):
                self._number += 1
                self._all[self._number] = Processor(now_s, node)
                asked.append((self._number, node))
        return asked

    def surplus(self) -> list[int]:
        """Return the processors to retire: idle before busy, the newest first.

        Ready ones are kept back while replacements elsewhere are not ready.
        """
        over: list[int] = []
        ready = 0
        for node in {each.node: None for each in self._all.values()}:
            staying = self._staying(node)
            wanted = self._wanted.get(node, 0)
            # processors that are not ready have no work, so they are retired first
            by_use = sorted(
                staying, key=lambda n: (self._all[n].ready, bool(self._all[n].records), -n)
            )
            over += by_use[: max(0, len(staying) - wanted)]
            ready += sum(self._all[n].ready for n in by_use[max(0, len(staying) - wanted) :])
        # Until replacements are ready, as many ready processors stay.
        lacking = max(0, self.wanted - ready)
        useful = [n for n in over if self._all[n].ready]
        kept = set(useful[len(useful) - lacking :]) if lacking else set()
        return [n for n in over if n not in kept]

    def _staying(self, node: str | None = None) -> list[int]:
        return [
            number
            for number, each in self._all.items()
            if not each.going and (node is None or each.node == node)
        ]

    def ready(self, number: int) -> None:
        processor = self._all[number]
        processor.ready = True
        self._starts.setdefault(processor.node, Starts()).succeeded()

    def not_started(self, node: str, reason: str, now_s: float, *, starved: bool) -> None:
        starts = self._starts.setdefault(node, Starts())
        starts.failed(reason, now_s, starved=starved)
        self.changes += 1

    def lost(self, number: int) -> None:
        """Withdraw a processor that is gone, while the cause of its end is not known yet."""
        if (processor := self._all.get(number)) is not None:
            processor.lost = True
            self.withdraw(number)

    def remove(self, number: int) -> Processor | None:
        self.withdraw(number)
        return self._all.pop(number, None)

    # -- work -----------------------------------------------------------------------------

    def enter(self, number: int) -> None:
        """Add a processor to those that take records."""
        self.here.add(number)
        self._count_nodes()
        self.idles(number)
        if len(self.here) >= self.wanted:
            for starts in self._starts.values():
                starts.why = ""

    def waits(self, number: int, now_s: float) -> None:
        """Restart the time limit of a processor that waits for an external system."""
        if (processor := self._all.get(number)) is not None:
            processor.since_s = now_s

    def withdraw(self, number: int) -> None:
        """Remove a processor from those that take records."""
        if number in self.here:
            self.here.discard(number)
            self._count_nodes()

    def _count_nodes(self) -> None:
        self.by_node = Counter(self._all[number].node for number in self.here)
        self.changes += 1

    def idles(self, number: int) -> None:
        """Add a processor to the idle ones, if it is known."""
        if (processor := self._all.get(number)) is not None:
            heappush(self._idle, (processor.node != HERE, number))

    def next_idle(self) -> tuple[int, Processor] | None:
        """Take the next idle processor, those on this machine first: they answer sooner."""
        while self._idle:
            _, number = heappop(self._idle)
            processor = self._all.get(number)
            if processor is not None and not processor.records and number in self.here:
                return number, processor
        return None
