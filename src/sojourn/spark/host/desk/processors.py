"""The processors of one operator, on the nodes where they are wanted."""

from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush

from sojourn.decide.plan import ANYWHERE, HERE
from sojourn.spark.host.batch.cut import OpenRecord
from sojourn.spark.host.desk.starts import Starts
from sojourn.spark.wire.record import Record

__all__ = ["Processor", "Processors"]


@dataclass(slots=True)
class Processor:
    """A processor that starts, idles, works, or goes when it is done."""

    since_s: float
    """When it began to start, or with the first of its records."""
    node: str = HERE
    ready: bool = False
    lost: bool = False
    """It is gone, and not known yet why."""
    going: bool = False
    """It ends once it is done with its records."""
    records: list[OpenRecord] = field(default_factory=list)
    """Records that it was given and is not done with, in order."""
    forgotten: bool = False
    """Its records are not open any more: nothing may come of them."""
    waits_for_first: bool = False
    """It was given records when it had none, and is not done with the first."""
    lane: deque[OpenRecord] = field(default_factory=deque)
    """Broadcast records that wait for it."""
    tried: int = 0
    """How often it has tried the first of those."""
    to_know: deque[Record] = field(default_factory=deque)
    """Records that it only has to know, before its first."""
    learning: list[Record] = field(default_factory=list)
    """Those of them that it was given."""

    @property
    def here(self) -> bool:
        """Whether it takes records, now or when it has done those it has."""
        return self.ready and not (self.lost or self.going)


class Processors:
    """Who starts, works and goes, by number; and which node each is on.

    Those that are wanted on a node which has not come yet are started when it comes; those of a
    node that was lost run on any others until it is back or the next placement. While they
    are not ready, as many others stay on nodes where they are not wanted any more: moving
    processors leaves no gap.
    """

    def __init__(self) -> None:
        self._placed: Mapping[str, int] = {}
        self._lost: set[str] = {ANYWHERE}
        self._wanted: dict[str, int] = {}
        self._nodes = {HERE}
        self._number = 0
        self._all: dict[int, Processor] = {}
        self._here: set[int] = set()
        self._by_node: Mapping[str, int] = {}
        self._idle: list[tuple[bool, int]] = []
        self._starts: dict[str, Starts] = {}
        self.changes = 0
        """How often it has changed who runs, or what is missing."""

    def __iter__(self) -> Iterator[tuple[int, Processor]]:
        return iter(self._all.items())

    def get(self, number: int) -> Processor | None:
        """Return a processor, if it is there."""
        return self._all.get(number)

    # -- what can be asked ----------------------------------------------------------------

    @property
    def wanted(self) -> int:
        """Processors that there should be."""
        return sum(self._wanted.values())

    @property
    def here(self) -> Collection[int]:
        """Those that can take a record."""
        return self._here

    @property
    def running(self) -> int:
        """How many can take a record."""
        return len(self._here)

    @property
    def by_node(self) -> Mapping[str, int]:
        """How many can take a record, by node: another mapping when that changes."""
        return self._by_node

    @property
    def missing(self) -> str:
        """Why fewer run than are wanted, if some cannot be started."""
        if len(self._here) >= self.wanted:
            return ""
        away = sorted(node for node, k in self._wanted.items() if k and not self._is_at(node))
        if away:
            return f"node {away[0]} is not connected" if away[0] else "no node is there"
        return next((starts.why for starts in self._starts.values() if starts.why), "")

    @property
    def failures(self) -> int:
        """Starts that failed since one succeeded, at the node with most of them."""
        return max((starts.failures for starts in self._starts.values()), default=0)

    @property
    def hopeless(self) -> bool:
        """Whether there is no processor, and none can be started anywhere."""
        wanted = [node for node, k in self._wanted.items() if k]
        there = [self._starts[node] for node in wanted if node in self._starts]
        if len(there) < len(wanted) or not there or self._staying():
            return False
        return all(starts.hopeless for starts in there)

    def late(self, now_s: float, limit_s: float) -> list[int]:
        """Return those that have worked on one record for longer than *limit_s*."""
        return [
            number
            for number, each in self._all.items()
            if (each.records or each.learning) and now_s - each.since_s > limit_s
        ]

    def unready(self, now_s: float, limit_s: float) -> list[int]:
        """Return those that have been starting for longer than *limit_s*."""
        return [
            number
            for number, each in self._all.items()
            if not each.ready and now_s - each.since_s > limit_s
        ]

    # -- nodes ----------------------------------------------------------------------------

    def place(self, on: Mapping[str, int]) -> None:
        """Want so many processors on each node, and none elsewhere."""
        self._placed = dict(on)
        self._replace_lost()

    def node_came(self, node: str) -> None:
        """Start processors on a node from now on, if they are wanted there."""
        self._nodes.add(node)
        self._lost.discard(node)
        self._replace_lost()

    def node_left(self, node: str) -> list[tuple[int, Processor]]:
        """Do without a node, and return the processors that were on it."""
        self._nodes.discard(node)
        self._lost.add(node)
        self._starts.pop(node, None)
        self._replace_lost()
        gone = [(number, each) for number, each in self._all.items() if each.node == node]
        for number, _ in gone:
            self.remove(number)
        return gone

    def _replace_lost(self) -> None:
        """Want those of lost nodes on the nodes that are there, where there are fewest."""
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

    def _is_at(self, node: str) -> bool:
        return node in self._nodes

    # -- starts and ends --------------------------------------------------------------------

    def to_start(self, now_s: float) -> list[tuple[int, str]]:
        """Return numbers and nodes of processors to start: not where that failed just now."""
        asked: list[tuple[int, str]] = []
        for node, wanted in self._wanted.items():
            missing = wanted - len(self._staying(node))
            starts = self._starts.setdefault(node, Starts())
            if missing <= 0 or not self._is_at(node) or starts.waits(now_s):
                continue
            for _ in range(missing):
                self._number += 1
                self._all[self._number] = Processor(now_s, node)
                asked.append((self._number, node))
        return asked

    def surplus(self) -> list[int]:
        """Return processors to let go: those that idle first, and those that came last."""
        over: list[int] = []
        ready = 0
        for node in {each.node: None for each in self._all.values()}:
            staying = self._staying(node)
            wanted = self._wanted.get(node, 0)
            # those that are not ready do no work that others could take over
            by_use = sorted(
                staying, key=lambda n: (self._all[n].ready, bool(self._all[n].records), -n)
            )
            over += by_use[: max(0, len(staying) - wanted)]
            ready += sum(self._all[n].ready for n in by_use[max(0, len(staying) - wanted) :])
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
        """Take note that a processor has been started."""
        self._starts_of(number).succeeded()
        self._all[number].ready = True

    def not_started(self, node: str, reason: str, now_s: float, *, starved: bool) -> None:
        """Take note that a processor could not be started on a node."""
        starts = self._starts.setdefault(node, Starts())
        starts.failed(reason, now_s, starved=starved)
        self.changes += 1

    def lost(self, number: int) -> None:
        """Give a processor that is gone nothing more, while it is asked what it died of."""
        if (processor := self._all.get(number)) is not None:
            processor.lost = True
            self.withdraw(number)

    def remove(self, number: int) -> Processor | None:
        """Forget a processor, and return it if it was there."""
        self.withdraw(number)
        return self._all.pop(number, None)

    def _starts_of(self, number: int) -> Starts:
        return self._starts.setdefault(self._all[number].node, Starts())

    # -- work -----------------------------------------------------------------------------

    def enter(self, number: int) -> None:
        """Let a processor take records from now on."""
        self._here.add(number)
        self._count_nodes()
        self.idles(number)
        if len(self._here) >= self.wanted:
            for starts in self._starts.values():
                starts.why = ""

    def waits(self, number: int, now_s: float) -> None:
        """Take note that a processor waits for something outside: that is not its own time."""
        if (processor := self._all.get(number)) is not None:
            processor.since_s = now_s

    def withdraw(self, number: int) -> None:
        """Give a processor no more records."""
        if number in self._here:
            self._here.discard(number)
            self._count_nodes()

    def _count_nodes(self) -> None:
        self._by_node = Counter(self._all[number].node for number in self._here)
        self.changes += 1

    def idles(self, number: int) -> None:
        """Take note that a processor has nothing to do."""
        if (processor := self._all.get(number)) is not None:
            heappush(self._idle, (processor.node != HERE, number))

    def next_idle(self) -> tuple[int, Processor] | None:
        """Return one that has nothing to do: near ones first, which are sooner back."""
        while self._idle:
            _, number = heappop(self._idle)
            processor = self._all.get(number)
            if processor is not None and not processor.records and number in self._here:
                return number, processor
        return None
