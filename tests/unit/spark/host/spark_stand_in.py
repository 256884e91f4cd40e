"""A world around a part that can fail between any two steps: Spark, relays, a host, a disk.

Every step of a history is one method of `World`; none does two things that could be torn
apart by a crash.
"""

from collections import Counter, deque
from contextlib import nullcontext, suppress
from functools import partial
from itertools import count
from math import inf
from pathlib import Path
from random import Random
from zlib import crc32

import msgspec

from sojourn.app.operator import OnError
from sojourn.decide.plan import HERE
from sojourn.errors import DiskFull, EngineError, SojournError
from sojourn.spark.host.batch.batch_tasks import StageTasks
from sojourn.spark.host.batch.cut import Cut, CutId
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.host.batch.host_log import Did, HostLog
from sojourn.spark.host.batch.ledger import Ledger
from sojourn.spark.host.batch.spill import Spill
from sojourn.spark.host.batch.write_queue import HeldEvents, Room
from sojourn.spark.host.desk.admission import Limits
from sojourn.spark.host.desk.events import (
    CutSaved,
    DrainAsked,
    NodeCame,
    NodeLeft,
    PlacementAsked,
    ProcessorDone,
    ProcessorEnded,
    ProcessorReady,
    RelayCame,
    RelayEnded,
    RelayLeft,
    RelaysCaughtUp,
    RelaysCounted,
    RowsCame,
    TimePassed,
)
from sojourn.spark.host.desk.instructions import (
    AtOperator,
    FinishRelay,
    Give,
    GrantRelay,
    HandOver,
    KillProcessor,
    RefuseRelay,
    SaveCut,
    StartProcessor,
)
from sojourn.spark.host.desk.operator_desk import OperatorDesk
from sojourn.spark.host.desk.part_desk import PartDesk
from sojourn.spark.host.desk.part_graph import PartGraph
from sojourn.spark.host.state.keyed_state import KeyedState, MergeState
from sojourn.spark.host.state.part_clock import PartClock
from sojourn.spark.host.state.reminders import reminder_name
from sojourn.spark.wire.processor import OutputRecord, Result
from sojourn.spark.wire.record import Record
from sojourn.spark.wire.relay import Row
from sojourn.spark.wire.repetitions import Input, Provenance
from unit.spark.host.failing_disk import Crash

PARTITIONS = [("lines", 0), ("lines", 1), ("prices", 0)]
GRAPH = PartGraph(
    readers={
        "lines": ("split",),
        "prices": ("merge", "learn"),
        "words": ("merge",),
        "again": ("split",),
        "scored": ("score",),
    },
    emits={"split": ("words", "scored"), "merge": ("again",), "score": ("scores",)},
    leaving=frozenset(["words", "scores"]),
    everyone=frozenset([("learn", "prices")]),
    stateful=frozenset(["score", "merge"]),
)
KEYS = ("a", "b", "c")
REMINDERS = "score@reminders"
# What ids begin with that a producer gives to two records.
TWICE = "twice"
EXPIRING = "merge"
TTL_S = 1000.0
OPERATORS = ("split", "merge", "score", "learn")
NODES = (HERE, "node-1", "node-2")
# How many of its last commits Spark may lose in a power failure.
KEPT = 2
# So little that operators spill to disk all the time.
LIMITS = Limits(records=4, spilled=20)
# So much that many wait for one processor.
ROOMY = Limits(records=400)
# To another node and back, many times as long as a service.
SERVICE_S, WAY_S = 0.01, 0.05


def work(operator, name):
    """Return the streams to which a record sends others: a split, a loop, a stream that leaves.

    None if the function raises.
    """
    drawn, depth = crc32(f"{name} {operator}".encode()), name.count(".")
    if drawn % 11 == 0:
        return None
    return {
        "split": ["words"] * (drawn % 3) + ["scored"],
        "merge": ["again"] if drawn % 2 and depth < 6 else [],
        "score": ["scores"] * (drawn % 3),
        "learn": [],
    }[operator]


def key_of(parent, place):
    """Return the key by which what *parent* sends on is scored, or merged."""
    return KEYS[crc32(f"{parent} {place}".encode()) % len(KEYS)]


def reminders(name):
    """Return what a record asks for when it is scored; a reminder may ask for others.

    Those with the same id would ask for reminders with the same id.
    """
    if name.startswith(TWICE):
        return []
    drawn = crc32(f"remind {name}".encode())
    return [(drawn % 700, name)] * (drawn % 5 % 3)


def scored(state, name):
    """Return what a key keeps once *name* is scored: how many were, and a sum over them."""
    number, total = map(int, state.split()) if state else (0, 0)
    return f"{number + 1} {(total + crc32(name.encode())) % 2**32}".encode()


def expected_states(records):
    """Return the state of each key, once *records*, all that were to do, are done."""
    states, left = {}, []
    for record in records:
        name, _, operator = record.partition(" at ")
        if operator == "score" and not name.startswith(REMINDERS):
            parent, _, place = name.rpartition(".")
            left.append((name, key_of(parent.removesuffix(".split"), int(place))))
    while left:
        name, key = left.pop()
        if work("score", name) is not None:
            states[key] = scored(states.get(key, b""), name)
            left += [(asked, key) for asked in asked_by(name)]
    return states


def asked_by(name):
    """Return the ids of the reminders that a record asks for."""
    return [reminder_name(REMINDERS, name, number) for number in range(len(reminders(name)))]


def expected(roots):
    """Return all records that operators have to do, and all results, of *roots*."""
    left = [(reader, name) for stream, name in roots for reader in GRAPH.readers[stream]]
    records, results = [], []
    while left:
        operator, name = left.pop()
        records.append(f"{name} at {operator}")
        streams = work(operator, name)
        if streams is None:
            results.append(f"{name} at {operator}: dead")
        elif operator == "score":
            left += [("score", asked) for asked in asked_by(name)]
        for place, stream in enumerate(streams or ()):
            child = f"{name}.{operator}.{place}"
            left += [(reader, child) for reader in GRAPH.readers.get(stream, ())]
            results += [child] if stream in GRAPH.leaving else []
    return sorted(records), sorted(results)


def called(leaving):
    """Return what a result is called."""
    if (letter := leaving.letter) is not None:
        return f"{letter.record.name} at {letter.operator}: dead"
    return leaving.record.name


class Folder:
    """The files of a log, by number; as the log of one ledger it has no entries."""

    is_own = True

    def __init__(self):
        self.files = {}

    def recover(self, _base):
        return []

    def numbers(self):
        return sorted(self.files)

    def create(self, number, content):
        if number in self.files:
            return False
        self.files[number] = content
        return True

    def append(self, number, content):
        if number in self.files:  # else it is written to a file without a name
            self.files[number] += content

    def read(self, number):
        return self.files.get(number, b"")

    def remove(self, number):
        self.files.pop(number, None)


_encode, _decode = msgspec.msgpack.encode, msgspec.msgpack.Decoder(Cut).decode
_NOTHING = Cut(id=CutId(-1, 0), taken={})
_NOWHERE = object()  # where a connection leads that was cut off


class Disk:
    """Cuts with the states and segments that they name, and logs, in memory.

    It can be the store of one ledger, which then finds nothing in its log.
    """

    def __init__(self):
        self.attempts = self.segments = self.state = self
        self.cuts, self.runs = {}, []
        self.spilled, self.names = {}, count()
        self.deltas, self.store, self.merged_upto = {}, {}, -1
        self.log = Folder()

    def number(self, run):
        if run not in self.runs:
            self.runs.append(run)
        return 1 + self.runs.index(run)

    def save(self, cut, changed):
        self.deltas[cut.id] = changed
        self.cuts[cut.id] = cut

    def drop_before(self, batch):
        self.cuts = {name: cut for name, cut in self.cuts.items() if name.batch >= batch}

    def prepare(self):
        """There is always room."""

    def merged(self):
        return self.merged_upto

    def look_up(self, operator, key):
        return self.store.get((operator, key), b"")

    def ordered(self, operator, start, end, most):
        found = [
            (key, state)
            for (of, key), state in sorted(self.store.items())
            if of == operator and start <= key < end and state
        ]
        return found[:most]

    def read_delta(self, cut):
        if cut not in self.deltas:
            raise FileNotFoundError(cut)
        return self.deltas[cut]

    def merge(self, merge):
        for cut, delta in merge.cuts:
            if cut.batch > self.merged_upto:
                for operator, states in delta.items():
                    self.store |= {(operator, key): state for key, state in states.items()}
        self.merged_upto = max(self.merged_upto, merge.upto)
        self.deltas = {
            cut: delta for cut, delta in self.deltas.items() if cut.batch > self.merged_upto
        }

    def last(self, batch):
        return max((cut for cut in self.cuts if cut.batch == batch), default=_NOTHING.id)

    def newest_attempt(self):
        return max((cut.attempt for cut in self.cuts), default=-1)

    def load(self, cut):
        """Return a cut as it is read from a file: what becomes of it is not in the file."""
        return _decode(_encode(_NOTHING if cut == _NOTHING.id else self.cuts[cut]))

    def write(self, batch, records):
        name = f"{batch}-{next(self.names)}"
        self.spilled[name] = tuple(records)
        return name

    def read(self, name):
        if name not in self.spilled:
            raise EngineError(f"{name} is gone")
        return self.spilled[name]

    def drop(self, batch, names):
        self.spilled = {
            name: records
            for name, records in self.spilled.items()
            if name in names or int(name.partition("-")[0]) >= batch
        }


class Store:
    """The disk, with a host's own way to the log."""

    def __init__(self, disk):
        self.disk, self.log = disk, HostLog(disk.log, "layout")

    def __getattr__(self, name):
        return getattr(self.disk, name)

    def flush(self):
        """All is written."""

    def close(self):
        """Nothing is open."""


class Memory:
    """A disk in memory: a process dies before it writes to the log, while it does, or after."""

    dead = full = False

    def __init__(self):
        self.disk, self._kills = Disk(), None

    def open(self):
        """Return the files as a process has them."""
        store = Store(self.disk)
        store.log.append = partial(self._logged, store.log.append)
        return store

    def use(self, store):
        """Let a process go on."""

    def kill_in(self, number):
        """Let the process die that writes next."""
        self._kills = number % 3

    def revive(self):
        """Let another process use the disk."""
        self._kills = None

    def fill(self, _number):
        """There is always room."""

    def interrupted(self, _meanwhile):
        """Return a context in which nothing happens: a write is one step."""
        return nullcontext()

    def _logged(self, append, entries):
        if self._kills is None:
            append(entries)
            return
        files = self.disk.log.files
        before = dict(files)
        if self._kills:
            append(entries)
        for number, content in files.items():
            if self._kills == 1 and len(content) > len(before.get(number, content)):
                files[number] = content[:-1]
        raise Crash


class Files:
    """Real files: a process dies before any system call, or in the middle of a write.

    The processes of a history are one process, which can open the store of states only once.
    """

    def __init__(self, disk):
        self.disk, self._used = disk, None

    def open(self):
        """Return the files as a process has them."""
        return CutFiles(Path(self.disk.root) / "part", "layout")

    def use(self, store):
        """Let a process go on."""
        if self._used is not None and self._used is not store:
            self._used.state.close()
        self._used = store

    def kill_in(self, number):
        """Let the process die after a few more system calls."""
        self.disk.crash_after(number, part=number % 4 / 3)

    def revive(self):
        """Let another process use the disk."""
        self.disk.revive()

    def kill(self):
        """Let the process that is at work do nothing more."""
        self.disk.kill()

    @property
    def full(self):
        """Whether there is no room."""
        return self.disk.full

    def fill(self, number):
        """Let the disk have no room for whole writes, or have room again if it is None."""
        self.disk.full, self.disk.fits = number is not None, (number or 0) % 4 / 4

    def interrupted(self, meanwhile):
        """Return a context in which other things happen between system calls."""
        return self.disk.interrupted(meanwhile)

    def power_fails(self, random):
        """Lose what is not on the disk for certain."""
        if self._used is not None:
            self._used.close()
        self.disk.power_fails(random)


class CountingLedger(Ledger):
    """A ledger that counts how often each record was done at each operator.

    *counted* has the numbers as of each cut.
    """

    def __init__(self, store, counted, clock):
        reminded = {"score": REMINDERS, EXPIRING: f"{EXPIRING}@reminders"}
        spill = Spill(store.segments, most=1)
        super().__init__(
            store,
            spill,
            most_handed=4,
            reminded=reminded,
            clock=clock,
            id_window=2,
            kept=KEPT,
        )
        self.counts, self.counted, self.replayed = {}, counted, 0

    def done(self, number, results):
        self._count(self.open[number])
        return super().done(number, results)

    def _recovered(self, base):
        self.counts = dict(self.counted[base])
        return super()._recovered(base)

    def _replay(self, entry, *more):
        self.replayed += 1
        if isinstance(entry, Did):
            self._count(self.open[entry.number])
        super()._replay(entry, *more)

    def _count(self, done):
        name = f"{done.record.name} at {done.operator}"
        self.counts[name] = self.counts.get(name, 0) + 1

    def comes_of(self, cut):
        """Return whether this memory goes on from a cut."""
        return cut in self._memory


class OrderedDesk(OperatorDesk):
    """A desk that sees that its queue gets records in the order of their numbers."""

    last = 0

    def put(self, record):
        if not record.record.everyone:
            assert record.number > self.last
            self.last = record.number
        super().put(record)

    def forget(self, latest=()):
        self.last = 0
        super().forget(latest)


class Host:
    """A life of the host: operators, their processors, and what is on its way to the disk.

    Where they are *away*, each operator begins with one processor on another node.
    """

    def __init__(self, store, counted, final, clock, *, away=False):
        self.store, self.counted, self.final = store, counted, final
        self.drained = False
        self.ledger = CountingLedger(store, counted, clock)
        on_error = OnError(retries=1, then="dead_letter")
        desks = {name: OrderedDesk(on_error=on_error) for name in OPERATORS}
        self.part = PartDesk(
            GRAPH,
            desks,
            self.ledger,
            limits=ROOMY if away else LIMITS,
            ttl_s={EXPIRING: TTL_S},
            clock=clock.now_s,
        )
        self.relays, self.writing, self.written = {}, deque(), deque()
        self.thread_is_busy = self.held_back = False
        self.starting, self.busy, self.now_s = [], {}, 0.0
        self.lent, self.node_of, self.nodes, self.dead = {}, {}, set(), set()
        self.hit = Counter()
        self.asking, self.tasks = deque(), StageTasks()
        self.catching_up = False
        self.held = HeldEvents(store.flush, Room(inf, lambda: 0.0, lambda _line: None))
        if away:
            self.node(0)
        for name in OPERATORS:
            self.decide(PlacementAsked(name, {NODES[1]: 1} if away else {HERE: 2}))

    def decide(self, event):
        """Let an event be decided, logged and done; where there is no room it waits."""
        self.decide_at(event, self.now_s)

    def decide_at(self, event, now_s):
        if self.held.waiting:
            self.held_back = True
            self.held.put(partial(self.decide_at, event, now_s))
            return
        instructions = self.part.handle(event, now_s)
        try:
            self.store.log.append(self.ledger.unlogged())
            self.store.flush()
        except DiskFull as error:
            self.held.hold(error, partial(self.do, instructions))
        else:
            self.do(instructions)

    def catch_up(self):
        """Try again to write what there was no room for; processors may have gone on since."""
        self.catching_up = True
        self.held.retry()
        self.catching_up = False

    def do(self, instructions):
        for instruction in instructions:
            match instruction:
                case HandOver(relay, leaving, floor):
                    assert (called(leaving), leaving.root) not in self.final
                    self.relays[relay].handed.append((called(leaving), leaving.root))
                    self.relays[relay].inbox.append(("result", leaving, floor))
                case SaveCut(cut):
                    self.counted[cut.id] = dict(self.ledger.counts)
                    self.writing.append(instruction)
                case MergeState():
                    self.writing.append(instruction)
                case FinishRelay(relay):
                    self.relays[relay].inbox.append(("finish",))
                case RefuseRelay(relay):
                    self.relays[relay].inbox.append(("refuse",))
                case GrantRelay(relay, number):
                    self.relays[relay].inbox.append(("credit", number))
                case AtOperator(operator, then):
                    self.do_at(operator, then)

    def do_at(self, operator, instruction):
        if (operator, getattr(instruction, "processor", None)) in self.dead:
            assert self.catching_up
            return
        match instruction:
            case StartProcessor(number, node):
                assert node == HERE or node in self.nodes
                self.node_of[operator, number] = node
                self.starting.append((operator, number))
            case Give(number, records, states=states, ahead=ahead):
                processor = operator, number
                # what it has answered may wait for room, so that it seems to have records yet
                waited = self.catching_up or (ahead and self.held_back)
                assert waited or ahead == (processor in self.busy)
                self.busy.setdefault(processor, []).extend(records)
                before = self.lent[processor] if ahead else {}
                self.lent[processor] = {**before, **(states or {})}
            case KillProcessor(number):
                self.busy.pop((operator, number), None)

    def heard(self, relay, message):
        match message:
            case ("hello", run, batch, stage):
                self.relays[relay.number] = relay
                self.held.put(partial(self.begin, relay, run, batch, stage))
            case ("row", offset, (name, provenance)):
                record = Record(name, b"", relay.partition[0], root=name)
                keys = {"merge": key_of(name, 0)}
                row = Row(relay.partition, offset, record, keys, provenance=provenance)
                self.decide(RowsCame(relay.number, [row]))
            case ("end",):
                self.decide(RelayEnded(relay.number))

    def begin(self, relay, run, batch, stage):
        """Let a relay begin, once files have the room that they need for it."""
        if self.tasks.is_outdated(stage):
            relay.inbox.append(("refuse",))
            return
        task = PARTITIONS.index(relay.partition)
        cut = CutId(batch, self.store.attempts.number(run))
        self.store.state.prepare()
        self.decide(RelayCame(relay.number, cut, task))
        self.held.put_next(partial(self.greeted, relay, cut, stage))

    def greeted(self, relay, cut, stage):
        if relay.number in self.ledger.relays:
            self.tasks.begins(cut, stage)
            self.asking.append(cut)

    def told_tasks(self, _number):
        """Let the host hear how many tasks a batch has."""
        self.decide(RelaysCounted(self.asking.popleft(), len(PARTITIONS)))

    def hands_on(self):
        """Tell whether results wait in the log, for relays that are there."""
        return self.ledger.leaving.in_log and len(self.ledger.relays) > 0

    def hand_on(self, _number):
        """Let the next of what leaves again from the log leave."""
        self.do(self.part.handle(RelaysCaughtUp(), self.now_s))

    def ready(self, number):
        """Let a processor be ready."""
        operator, processor = self.starting.pop(number)
        self.decide(ProcessorReady(operator, processor))

    def work(self, number):
        """Let a processor do the next of what it was given."""
        operator, processor = list(self.busy)[number]
        self.now_s += SERVICE_S + WAY_S
        record = self.busy[operator, processor].pop(0)
        if not self.busy[operator, processor]:
            del self.busy[operator, processor]
        streams = work(operator, record.name)
        error = "ValueError: no" if streams is None else ""
        state, asked = None, []
        if operator in GRAPH.stateful and not error:
            lent = self.lent[operator, processor]
            state = lent[record.key] = scored(lent[record.key], record.name)
        if operator == "score" and not error:
            asked = reminders(record.name)
        outputs = [
            OutputRecord(stream, (state or b"") * (operator == "score"), keys=_keys(record, at))
            for at, stream in enumerate(streams or ())
        ]
        result = Result(outputs, error, took_s=SERVICE_S, state=state, reminders=asked)
        self.decide(ProcessorDone(operator, processor, [result]))

    def kill_processor(self, number):
        if self.busy:
            operator, processor = list(self.busy)[number % len(self.busy)]
            records = {(operator, record.name) for record in self.busy[operator, processor]}
            if any(self.hit[each] == 2 for each in records):
                return  # a record that is hit a third time is a dead letter
            self.hit.update(records)
            del self.busy[operator, processor]
            self.dead.add((operator, processor))
            self.decide(ProcessorEnded(operator, processor, "was killed"))

    def rescale(self, number):
        """Place an operator on one or two nodes, be they there or not."""
        operator = OPERATORS[number % len(OPERATORS)]
        on = {NODES[number % 3]: 1 + number % 2, NODES[number % 5 % 3]: 1}
        self.decide(PlacementAsked(operator, on))

    def node(self, number):
        """Let a node come, or go with all that is on it."""
        node = NODES[1 + number % 2]
        if self.held.waiting:
            return
        if node not in self.nodes:
            self.nodes.add(node)
            self.decide(NodeCame(node))
            return
        self.nodes.discard(node)
        there = {processor for processor, on in self.node_of.items() if on == node}
        self.starting = [processor for processor in self.starting if processor not in there]
        self.busy = {name: jobs for name, jobs in self.busy.items() if name not in there}
        self.decide(NodeLeft(node))

    def time_passes(self, _number=0):
        self.now_s += 100.0
        if not self.held.waiting:
            self.decide(TimePassed())


def _keys(record, place):
    key = key_of(record.name, place)
    return {"score": key, "merge": key}


class Relay:
    """A task of Spark: it reads a partition, hands over rows, and writes what it gets."""

    numbers = count(1)

    def __init__(self, run, batch, stage, partition, position):
        self.number, self.host, self.position = next(self.numbers), None, position
        self.partition, self.state = partition, "reads"
        self.outbox, self.inbox = deque([("hello", run, batch, stage)]), deque()
        self.handed, self.unwritten, self.credit = [], deque(), 0


class Writer:
    """A part or a query of Spark's own: commits, and repeats what it had not committed."""

    def __init__(self, name, topic):
        self.name, self.topic = name, topic
        self.read, self.floor = 0, 0

    def inputs(self, end, number):
        """Return what entered, up to an offset, after a commit, a crash, or neither."""
        first = self.read
        match number % 4:
            case 1:
                self.floor = self.read
            case 2 | 3:
                first = self.floor
        self.read = end
        return [
            Input(
                writer=self.name, topic=self.topic, partition=0, offset=offset, floor=self.floor
            )
            for offset in range(first, end)
        ]


class Upstream:
    """What others write to the stream that this part reads; each may repeat what it wrote.

    Two parts read one topic. One writes to the stream, the other to a stream between, from
    which a query passes all on. A producer sends records again.
    """

    def __init__(self):
        self.orders, self.between, self.calls = 0, [], count()
        self.near, self.far = Writer("near", "orders@m"), Writer("far", "orders@m")
        self.query = Writer("query", "between@m")

    def writes(self, number):
        """Return what is written next."""
        drawn = crc32(f"{number} {next(self.calls)}".encode())
        how = drawn // 8
        self.orders += 1
        match drawn % 8:
            case 0:
                name = f"prices-named-{self.orders}"
                return [(name, Provenance(identity=name, named=True))] * 2
            case 1 | 2 | 3:
                return [_price(each) for each in self.near.inputs(self.orders, how)]
            case _:
                self.between += [_price(each) for each in self.far.inputs(self.orders, how)]
                passed = self.query.inputs(len(self.between), how // 4)
                return [_passed(self.between[each.offset], each) for each in passed]


def _price(entered):
    """Return what a part writes of a record."""
    name = f"prices-{entered.writer}-{entered.offset}"
    return name, Provenance(identity=name, inputs=(entered,))


def _passed(row, entered):
    """Return what a query writes of what a part has written."""
    name, provenance = row
    inputs = (*provenance.inputs, entered)
    return name, Provenance(identity=provenance.identity, inputs=inputs)


class World:
    """Spark, its relays and a host; `settle` lets all of it run until nothing is left."""

    def __init__(self, disk=None, *, away=False):
        self.away, self.disk = away, disk or Memory()
        self.topics = {partition: [] for partition in PARTITIONS}
        # Spark's own logs: ends of batches, the last that is committed, and its runs
        self.ended, self.committed, self.runs = {-1: dict.fromkeys(PARTITIONS, 0)}, -1, count(1)
        # results of batches that are committed, and records done as of each cut
        self.final, self.counted = set(), {CutId(-1, 0): {}}
        self.handed_in, self.survived = {}, -1
        self.sink, self.names, self.upstream = [], count(), Upstream()
        self.host, self.current, self.batch, self.relays = None, 0, 0, []
        self.fixed_ends, self.zombies, self.late = None, [], deque()
        self.silent, self.stage = deque(), 0
        self.cut_off, self.wall_s, self.running_s = None, 1e9, 0.0
        self.power_failed, self.works_from = False, -1

    # -- what happens outside ----------------------------------------------------------------

    def produce(self, number):
        partition = PARTITIONS[number % len(PARTITIONS)]
        if partition[0] == "prices":
            self.topics[partition] += self.upstream.writes(number)
        else:
            self.topics[partition].append((f"{partition[0]}-{next(self.names)}", None))

    def produce_twice(self, number):
        """Let a producer write two records with one id, one after the other or not."""
        name = f"{TWICE}-{next(self.names)}"
        for partition in (PARTITIONS[number % 2], PARTITIONS[number // 2 % 2]):
            self.topics[partition].append((name, None))

    def roots(self):
        """Return all that has to be done: its stream, and its name.

        What a part has written is to be done once, however often it was written.
        """
        rows = [
            (place, name, told) for place, rows in self.topics.items() for name, told in rows
        ]
        once = {(place[0], name) for place, name, told in rows if told is not None}
        return sorted(
            [*once, *((place[0], name) for place, name, told in rows if told is None)]
        )

    # -- steps of Spark ----------------------------------------------------------------------

    def start(self, number=0):
        """Start the query again if it does not run, or its next batch."""
        if self.relays:
            return
        if self.current == 0:
            self.current = next(self.runs)
        self.batch = self.committed + 1
        # it may run a batch again to where it once ended, or to anywhere else
        self.fixed_ends = self.ended.get(self.batch) if number % 2 else None
        self.stage += 1
        self.relays = [self.task(partition) for partition in PARTITIONS]

    def task(self, partition):
        """Return the task of a partition in the batch that runs."""
        start = self.ended[self.committed][partition]
        return Relay(f"run {self.current}", self.batch, self.stage, partition, start)

    def any_relay(self, number):
        every = [*self.relays, *self.zombies]
        return every[number % len(every)] if every else None

    def may_read(self, relay):
        rows = self.topics[relay.partition]
        end = self.fixed_ends[relay.partition] if self.fixed_ends else len(rows)
        return relay.state == "reads" and relay.position < end and relay.credit > 0

    def read(self, number):
        relay = self.any_relay(number)
        row = self.topics[relay.partition][relay.position]
        relay.outbox.append(("row", relay.position, row))
        relay.position += 1
        relay.credit -= 1

    def may_end(self, relay):
        return relay.state == "reads"

    def end(self, number):
        """End the input of a relay; what Spark has read by then comes without credit."""
        relay = self.any_relay(number)
        rows = self.topics[relay.partition]
        end = min(len(rows), relay.position + number % 3)
        if self.fixed_ends is not None:
            end = self.fixed_ends[relay.partition]
        for position in range(relay.position, end):
            relay.outbox.append(("row", position, rows[position]))
        relay.position = max(relay.position, end)
        relay.state = "ended"
        relay.outbox.append(("end",))

    def commit_ends(self, _number=0):
        self.ended[self.batch] = {r.partition: r.position for r in self.relays}

    def commit(self, _number=0):
        handed = {result for relay in self.relays for result in relay.handed}
        self.final |= handed
        self.committed, self.relays = self.batch, []
        self.handed_in[self.batch] = handed

    def write(self, number):
        """Write one of the results that a relay was handed."""
        self.sink.append(self.any_relay(number).unwritten.popleft())

    # -- steps between relays and the host ---------------------------------------------------

    def may_say(self, relay):
        return bool(relay.outbox) and relay.host in (None, self.host) and self.host is not None

    def say(self, number):
        """Let a relay's next message arrive at the host; the first one connects it."""
        relay = self.any_relay(number)
        relay.host = self.host
        self.host.heard(relay, relay.outbox.popleft())

    def may_notice(self, relay):
        return relay.state != "done" and relay.host not in (None, self.host)

    def notice(self, number):
        """Let a relay see that its host is gone."""
        self.fail(self.any_relay(number))

    def hear(self, number):
        """Let a relay hear the next of what its host says."""
        relay = self.any_relay(number)
        match relay.inbox.popleft():
            case ("credit", number):
                relay.credit += number
            case ("result", leaving, floor):
                relay.unwritten.append((leaving, floor))
            case ("finish",):
                self.sink.extend(relay.unwritten)
                relay.unwritten.clear()
                relay.state = "done"
                self.host_loses(relay)
            case ("refuse",):
                self.fail(relay)

    def host_loses(self, relay):
        if self.host is not None and relay.host is self.host:
            self.host.decide(RelayLeft(relay.number))

    def fail(self, relay):
        """Fail a task: Spark ends the run, and the other tasks a moment later."""
        self.host_loses(relay)
        relay.state = "dead"
        if relay in self.zombies:
            self.zombies.remove(relay)
        elif relay in self.relays:
            self.zombies += [other for other in self.relays if other.state != "dead"]
            self.relays, self.current = [], 0

    def stop_query(self, _number=0):
        """Stop the query and start it again; its tasks end some time later."""
        self.zombies += self.relays
        self.relays, self.current = [], 0

    def lose_executor(self, number):
        """Lose a task in a way that Spark runs it again in the same batch, from its start.

        The host is told by the end of the connection, or nobody tells it.
        """
        if not self.relays:
            return
        place = number % len(self.relays)
        lost = self.relays[place]
        self.relays[place] = self.task(lost.partition)
        lost.state = "dead"
        if number % 2:
            self.host_loses(lost)

    def vanish(self, number):
        """Lose a machine without a word: Spark runs its task again, its connection stays."""
        if self.relays:
            place = number % len(self.relays)
            self.silent.append(self.relays[place])
            self.relays[place] = self.task(self.relays[place].partition)

    def speak_again(self, _number=0):
        """Let a machine be reached again whose task still runs."""
        if self.silent:
            self.zombies.append(self.silent.popleft())

    # -- steps of the host -------------------------------------------------------------------

    def launch(self, _number=0):
        clock = PartClock(lambda: self.wall_s, lambda: self.running_s)
        store = self.disk.open()
        self.host = Host(store, self.counted, self.final, clock, away=self.away)

    def write_next(self, number=0):
        """Let the host's thread write what waits first, while other things happen."""
        host, write, random = self.host, self.host.writing[0], Random(number)
        host.thread_is_busy = True

        def meanwhile():
            for _ in range(random.randrange(3)):
                if able := self.steps():
                    self.happens(*random.choice(able))
            if host not in (self.host, self.cut_off):
                self.disk.kill()  # its thread ended with it

        try:
            with self.disk.interrupted(meanwhile if isinstance(write, SaveCut) else None):
                written(host.store, write)
        except DiskFull:
            host.thread_is_busy = False  # and it tries again
            return
        host.thread_is_busy = False
        host.written.append(write)

    def tell_written(self, _number=0):
        """Let the host hear that it is written; only then the next is."""
        host = self.host
        host.writing.popleft()
        match host.written.popleft():
            case SaveCut(cut):
                host.decide(CutSaved(cut.id))
            case MergeState(upto):
                host.ledger.state.merged(upto)

    def host_fails(self):
        """Let a host end that misses files: another one has gone on, and removed them.

        Or it finds that the log is another's, when there is room for what it had to write.
        """
        if self.host.store.log.is_own:
            assert not self.host.ledger.comes_of(self.files().last(self.committed))
        self.kill_host()

    def retry(self, _number=0):
        """Let the host try again to write what there was no room for."""
        self.host.catch_up()

    def files(self):
        """Return the files, as a process finds them that starts now."""
        store = self.disk.open()
        self.disk.use(store)
        return store

    # -- faults ------------------------------------------------------------------------------

    def kill_worker(self, number):
        relay = self.any_relay(number)
        if relay is not None:
            self.fail(relay)

    def kill_processor(self, number):
        if self.host is not None:
            self.host.kill_processor(number)

    def drain(self, _number=0):
        if self.host is not None:
            self.host.drained = True
            self.host.decide(DrainAsked())

    def stand_still(self, number):
        """Let processors do nothing while batches are committed: what waits outlives them."""
        self.works_from = self.committed + 1 + number % 4

    def rescale(self, number):
        if self.host is not None:
            self.host.rescale(number)

    def node(self, number):
        """Let a node come, or go with all that is on it."""
        if self.host is not None:
            self.host.node(number)

    def time_passes(self, number=0):
        self.wall_s += 100.0
        self.running_s += 100.0
        for relay in self.silent:  # there was no heartbeat for too long
            self.host_loses(relay)
            relay.host = _NOWHERE
        if self.host is not None:
            self.host.time_passes(number)

    def clock_jumps(self, number):
        """Let the wall clock be set, by minutes or by years."""
        self.wall_s += 500.0 * (number - 5) * (1 if number % 2 else 1e5)

    def kill_host(self, _number=0):
        if self.host is not None:
            self.host.store.close()
        self.host = None

    def kill_in_step(self, number):
        """Let the host die in one of its next steps, when it writes to the disk."""
        if self.host is not None:
            self.disk.kill_in(number)

    def fill_disk(self, number):
        """Let writes fail, or be carried out in part, until there is room again."""
        self.disk.fill(number)

    def make_room(self, _number=0):
        """Let the disk have room."""
        self.disk.fill(None)

    def power_fails(self, number):
        """End everything, and lose what nobody has waited for to be on the disk.

        Spark waits for none of its files, so it may have lost its last commits; not those that
        were there after the power failure before.
        """
        self.kill_driver(0)
        self.late.clear()
        self.cut_off, self.power_failed = None, True
        random = Random(number)
        self.disk.power_fails(random)
        for _ in range(random.randrange(KEPT + 1)):
            if self.committed > self.survived:
                self.final -= self.handed_in.pop(self.committed)
                self.committed -= 1
        self.survived = self.committed

    def swap_host(self, _number=0):
        """Cut the host off, and go on with another one; it may come back with an old memory."""
        for relay in (*self.relays, *self.zombies, *self.silent):
            if relay.host is not None:
                self.host_loses(relay)
                relay.host = _NOWHERE
        self.host, self.cut_off = self.cut_off, self.host

    def kill_driver(self, number):
        """Kill everything; what the host was writing may still get to the disk, much later."""
        if number % 2 and self.host is not None:
            left = list(self.host.writing)[len(self.host.written) :]
            self.late += [(self.host.store, write) for write in left]
        self.kill_host()
        self.relays, self.zombies, self.silent, self.current = [], [], deque(), 0

    def write_late(self, _number=0):
        store, write = self.late.popleft()
        self.disk.use(store)
        with suppress(SojournError):
            written(store, write)

    # -- histories ---------------------------------------------------------------------------

    def steps(self):
        """Return what may happen next where nothing fails."""
        relays = list(enumerate([*self.relays, *self.zombies]))
        able = [(self.say, n) for n, relay in relays if self.may_say(relay)]
        able += [(self.notice, n) for n, relay in relays if self.may_notice(relay)]
        able += [(self.hear, n) for n, relay in relays if relay.inbox]
        able += [(self.write, n) for n, relay in relays if relay.unwritten]
        able += [(self.read, n) for n, relay in relays if self.may_read(relay)]
        if self.host is None:
            able.append((self.launch, 0))
        else:
            able += [(self.host.ready, n) for n in range(len(self.host.starting))]
            able += [(self.retry, 0)] * self.host.held.waiting
            away = [n for n in range(2) if NODES[1 + n] not in self.host.nodes]
            able += [(self.host.node, n) for n in away if not self.host.held.waiting]
            if self.committed >= self.works_from:
                able += [(self.host.work, n) for n in range(len(self.host.busy))]
            able += [(self.host.told_tasks, 0)] * bool(self.host.asking)
            able += [(self.host.hand_on, 0)] * self.host.hands_on()
            if self.host.written:
                able.append((self.tell_written, 0))
            elif self.host.writing and not self.host.thread_is_busy:
                able.append((self.write_next, len(self.sink)))
        able += [(self.write_late, 0)] * bool(self.late)
        if not self.relays:
            able.append((self.start, 0))
        elif all(relay.state == "done" for relay in self.relays):
            ends = {relay.partition: relay.position for relay in self.relays}
            logged = self.ended.get(self.batch) == ends
            able.append((self.commit if logged else self.commit_ends, 0))
        return able

    def ends(self):
        """Return the ends of input that relays may come to: of those, when is for Spark."""
        relays = enumerate([*self.relays, *self.zombies])
        return [(self.end, n) for n, relay in relays if self.may_end(relay)]

    def run(self, number, random, often=0.1):
        """Let so many things happen, in any order; input ends now and then, or more *often*."""
        for _ in range(number):
            able, ends = self.steps(), self.ends()
            if not (able or ends):  # all wait for processors
                self.works_from = self.committed
                able = self.steps()
            if ends and (not able or random.random() < often):
                able = ends
            able = able or [(self.give_up, 0)]  # after a while, in which nothing happened
            self.happens(*random.choice(able))

    def give_up(self, _number=0):
        """Let the host fail a batch some of whose tasks do not begin: they ended before it."""
        assert self.host.ledger.relays.missing
        for relay in (*self.relays, *self.zombies):
            if relay.host is self.host:
                relay.inbox.append(("refuse",))

    def happens(self, step, argument):
        """Let something happen; a host may end on it."""
        host = self.host
        if host is not None:
            self.disk.use(host.store)
        try:
            step(argument)
        except (SojournError, OSError):
            if self.host is host:
                self.host_fails()
        except Crash:
            self.disk.revive()
            if self.host is host:
                self.kill_host()

    def settle(self, random):
        """Let everything run, without faults, until nothing is left to do."""
        self.make_room()
        self.disk.revive()
        self.works_from = -1
        for _ in range(100_000):
            if self.is_quiet():
                return
            if self.host is not None and self.host.drained and self.is_done():
                self.kill_driver(0)  # it has ended in order; reminders wait for the next start
            self.run(1, random)
            self.happens(self.time_passes, 0)
        raise AssertionError("something waits for ever")

    def states(self, operator="score"):
        """Return the state of each key, as a host would find it that starts now."""
        state = self.restored_state()
        return {key: found for key in KEYS if (found := state.of(operator, key))}

    def pending(self):
        """Return what is to happen yet by the clock."""
        state, last = self.restored_state(), chr(0x10FFFF)
        beside = (REMINDERS, f"{EXPIRING}@expiry")
        return [due for name in beside for due in state.ordered(name, "", last, most=10**6)[0]]

    def restored_state(self):
        store = self.files()
        state = KeyedState(store.state)
        state.restore(store.load(store.last(self.committed)).changed)
        return state

    def close(self):
        """Close all files."""
        for host in (self.host, self.cut_off):
            if host is not None:
                host.store.close()
        self.disk.use(None)

    def is_quiet(self):
        return self.is_done() and not self.pending()

    def is_done(self):
        ends = self.ended[self.committed]
        if self.relays or any(ends[place] != len(rows) for place, rows in self.topics.items()):
            return False
        store = self.files()
        cut = store.load(store.last(self.committed))
        return not cut.open and not cut.spilled


def written(store, write):
    """Write what a host's thread writes."""
    match write:
        case SaveCut(cut, changed):
            store.save(cut, changed)
            store.drop_before(cut.id.batch - 1 - KEPT)
        case MergeState():
            store.state.merge(write)
